/** Registers the pages, the live updates and the actions of the mirrors. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../domain/clock.ts';
import { act } from './act.ts';
import { actions, stopAction } from './actions.ts';
import type { ConsoleMirror } from './view/console-mirror.ts';
import { watchMirror } from './live.ts';
import type { NavLink } from './view/layout.ts';
import {
  linkTo,
  type Page,
  type PageElsewhere,
  type Shown,
  type PageRequest,
} from './view/page.ts';
import { pages } from './pages.ts';
import { csrfOf, sendPage } from './view/send-page.ts';

interface MirrorRoutesOptions {
  /** Returns the mirrors, which may come and go. */
  mirrors(): readonly ConsoleMirror[];
  clock: Clock;
}

const query = z.record(z.string(), z.string().or(z.array(z.string()).transform(([one]) => one)));
const params = z.object({ id: z.string().max(500).default('') });
const mirrorParam = z.object({ mirror: z.string() });

type Work = (
  request: FastifyRequest,
  reply: FastifyReply,
  mirror: ConsoleMirror,
) => Promise<unknown>;

/** Adds the routes of all mirrors, below `/m/<mirror>`. */
export function serveMirrors(
  scope: FastifyInstance,
  { mirrors, clock }: MirrorRoutesOptions,
): void {
  const base = '/m/:mirror';
  const inMirror = (work: Work) => async (request: FastifyRequest, reply: FastifyReply) => {
    const { mirror: name } = mirrorParam.parse(request.params);
    const mirror = mirrors().findLast(({ config }) => config.mirror === name);
    return mirror ? work(request, reply, mirror) : reply.callNotFound();
  };
  for (const page of pages) {
    const path = page.path === '' ? base : `${base}/${page.path}`;
    const show = async (request: FastifyRequest, reply: FastifyReply, mirror: ConsoleMirror) => {
      const asked = inside(request, reply, mirror);
      const content = await page.show(asked);
      if (!reply.sent) await answer(request, reply, { page, asked, content });
    };
    scope.get(path, inMirror(show));
    const { search } = page;
    if (search) {
      const find = async (request: FastifyRequest, reply: FastifyReply, mirror: ConsoleMirror) => {
        const values = form.parse(request.body ?? {});
        const asked = inside(request, reply, mirror);
        const content = await search(asked, values);
        await answer(request, reply, { page, asked, content });
      };
      scope.post(path, inMirror(find));
    }
  }
  serveLive(scope, { base, clock, inMirror });
  serveActions(scope, { base, clock, inMirror });
}

interface InMirrorOptions {
  base: string;
  clock: Clock;
  inMirror(work: Work): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;
}

/** Adds the actions, which only operators can do. */
function serveActions(scope: FastifyInstance, { base, clock, inMirror }: InMirrorOptions): void {
  const guards = { preHandler: scope.csrfProtection };
  for (const name of [...Object.keys(actions), stopAction]) {
    const work: Work = async (request, reply, mirror) => {
      const { visitor } = request;
      if (visitor?.role === 'operator') {
        await act(request, reply, { name, user: visitor, mirror, clock });
        return;
      }
      const lines = ['You are signed in as a viewer.'];
      const title = 'Only operators can do this';
      await sendPage(request, reply, { title, code: 403, lines, ...frameOf(mirror, '') });
    };
    scope.post(`${base}/do/${name}`, guards, inMirror(work));
  }
}

/** Adds the live updates. All visitors of one mirror share what is read for them. */
function serveLive(scope: FastifyInstance, { base, clock, inMirror }: InMirrorOptions): void {
  const watches = new WeakMap<ConsoleMirror, ReturnType<typeof watchMirror>>();
  const tell: Work = async (request, reply, mirror) => {
    const watch = watches.get(mirror) ?? watchMirror(mirror, clock);
    watches.set(mirror, watch);
    reply.sse.keepAlive();
    reply.sse.sendHeaders();
    const here = linkTo({ mirror });
    const stop = watch({ ...inside(request, reply, mirror), here }, (event) =>
      reply.sse.send(event),
    );
    reply.sse.onClose(stop);
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
