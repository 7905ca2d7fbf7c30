/** Registers the pages, the live updates and the actions of the mirrors. */
import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../domain/clock.ts';
import { type AccessRules, visitorNow } from './access/visitor.ts';
import { act } from './act.ts';
import { actions, stopAction } from './actions.ts';
import type { ConsoleMirror } from './view/console-mirror.ts';
import { type limitPages, watchMirror } from './live.ts';
import { formOf } from './view/form-values.ts';
import type { NavLink } from './view/layout.ts';
import {
  linkTo,
  type Page,
  type PageElsewhere,
  type Shown,
  type PageRequest,
  html,
} from './view/page.ts';
import { pages } from './pages.ts';
import { csrfOf, sendOperatorsOnly, sendPage } from './view/send-page.ts';

interface MirrorRoutesOptions {
  /** Returns the mirrors, which may come and go. Each stays the same object while it is there. */
  mirrors(): readonly ConsoleMirror[];
  access: AccessRules;
  clock: Clock;
  /** Counts the live pages of all mirrors. */
  livePages: ReturnType<typeof limitPages>;
  failed(error: unknown): void;
}

const query = z.record(z.string(), z.string().or(z.array(z.string()).transform(([one]) => one)));
const params = z.object({ id: z.string().max(500).default('') });
const mirrorParam = z.object({ mirror: z.string() });

const base = '/m/:mirror';

type Work = (
  request: FastifyRequest,
  reply: FastifyReply,
  mirror: ConsoleMirror,
) => Promise<unknown>;

/** Returns a route that does the work for the mirror in its path, or responds with 404. */
type InMirror = (work: Work) => (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * Responds that there is no such page. Otherwise, the server would ask for its token, which a user
 * of the console has not.
 */
export async function nothingHere(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  if (!request.headers.accept?.includes('text/html')) {
    return reply.code(404).send({ error: 'not found' });
  }
  const body = html`<p>This console shows no such page: the mirror or the page has another name.</p>
    <p><a href="/">To the console</a></p>`;
  return sendPage(request, reply, { title: 'Nothing is here', code: 404, body });
}

/** Adds the routes of all mirrors, below `/m/<mirror>`. */
export function serveMirrors(scope: FastifyInstance, options: MirrorRoutesOptions): void {
  const { mirrors, clock } = options;
  const inMirror: InMirror = (work) => async (request, reply) => {
    const { mirror: name } = mirrorParam.parse(request.params);
    const mirror = mirrors().findLast(({ config }) => config.mirror === name);
    return mirror ? work(request, reply, mirror) : nothingHere(request, reply);
  };
  for (const page of pages) servePage(scope, page, inMirror);
  serveLive(scope, inMirror, options);
  const guards = { preHandler: scope.csrfProtection };
  for (const name of [...Object.keys(actions), stopAction]) {
    const work: Work = async (request, reply, mirror) => {
      const { visitor } = request;
      if (visitor?.role === 'operator') {
        await act(request, reply, { name, user: visitor, mirror, clock });
        return;
      }
      await sendOperatorsOnly(request, reply, frameOf(mirror, ''));
    };
    scope.post(`${base}/do/${name}`, guards, inMirror(work));
  }
}

function servePage(scope: FastifyInstance, page: Page, inMirror: InMirror): void {
  const path = page.path === '' ? base : `${base}/${page.path}`;
  const show: Work = async (request, reply, mirror) => {
    const asked = inside(request, reply, mirror);
    const content = await page.show(asked);
    if (!reply.sent) await answer(request, reply, { page, asked, content });
  };
  scope.get(path, inMirror(show));
  const { ask, search } = page;
  if (ask) {
    const work: Work = async (request, reply, mirror) => {
      const asked = inside(request, reply, mirror);
      await answer(request, reply, { page, asked, content: await ask(asked) });
    };
    scope.post(path, { preHandler: scope.csrfProtection }, inMirror(work));
  }
  if (search) {
    const work: Work = async (request, reply, mirror) => {
      const values = formOf(request, form);
      const asked = inside(request, reply, mirror);
      const content = await search(asked, values);
      await answer(request, reply, { page, asked, content });
    };
    scope.post(path, inMirror(work));
  }
}

/**
 * Adds the live updates. All visitors of one mirror share what is read for them. A page of a mirror
 * that has gone or was opened anew is closed; the browser then asks again.
 */
function serveLive(
  scope: FastifyInstance,
  inMirror: InMirror,
  { mirrors, access, clock, livePages, failed }: MirrorRoutesOptions,
): void {
  const watches = new WeakMap<ConsoleMirror, ReturnType<typeof watchMirror>>();
  const tell: Work = async (request, reply, mirror) => {
    const watch = watches.get(mirror) ?? watchMirror(mirror, { clock, failed });
    watches.set(mirror, watch);
    const { user, ...asked } = inside(request, reply, mirror);
    const uncount = livePages(user.name);
    if (!uncount) return reply.code(429).send({ error: 'too many pages of this user are open' });
    reply.sse.onClose(uncount);
    reply.sse.keepAlive();
    reply.sse.sendHeaders();
    const stop = watch({
      request: { ...asked, user, here: linkTo({ mirror }) },
      send: (event) => reply.sse.send(event),
      close: () => reply.sse.close(),
      async isLetIn() {
        const now = await visitorNow(request, access);
        return mirrors().includes(mirror) && isDeepStrictEqual(now, user);
      },
    });
    reply.sse.onClose(stop);
    return reply;
  };
  scope.get(`${base}/live`, { sse: 'only' }, inMirror(tell));
}

interface Answered {
  page: Page;
  asked: PageRequest;
  content: Shown | PageElsewhere;
}

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  { page, asked, content }: Answered,
): Promise<void> {
  if ('to' in content) {
    await reply.redirect(content.to, 303);
    return;
  }
  if ('body' in content) {
    const { csrf, mirror } = asked;
    await sendPage(request, reply, { ...content, csrf, ...frameOf(mirror, page.path) });
    return;
  }
  const { type, text, name, policy } = content;
  if (name !== undefined) reply.header('content-disposition', `attachment; filename="${name}"`);
  if (policy !== undefined) reply.header('content-security-policy', policy);
  await reply.type(`${type}; charset=utf-8`).send(text);
}

/** Returns what surrounds each page of a mirror; `current` is the path of one of `pages`. */
function frameOf(mirror: ConsoleMirror, current: string) {
  const nav = pages.flatMap(({ nav: text, path }): NavLink[] => {
    if (text === undefined) return [];
    const isCurrent = current === path || (path !== '' && current.startsWith(`${path}/`));
    return [{ text, href: linkTo({ mirror }, path), isCurrent }];
  });
  return { mirror: { name: mirror.config.mirror, href: linkTo({ mirror }) }, nav };
}

function inside(request: FastifyRequest, reply: FastifyReply, mirror: ConsoleMirror): PageRequest {
  const { visitor } = request;
  if (!visitor) throw new Error('nobody is let in without a name');
  return {
    mirror,
    user: visitor,
    csrf: csrfOf(reply, visitor),
    here: request.url,
    query: query.parse(request.query),
    id: params.parse(request.params).id,
  };
}

const form = z.record(z.string(), z.string());
