/** Registers the pages, the live updates and the actions of one mirror. */
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
} from './view/page.ts';
import { pages } from './pages.ts';
import { csrfOf, sendPage } from './view/send-page.ts';

interface MirrorRoutesOptions {
  access: AccessRules;
  clock: Clock;
  /** Counts the live pages of all mirrors. */
  livePages: ReturnType<typeof limitPages>;
  failed(error: unknown): void;
}

const query = z.record(z.string(), z.string().or(z.array(z.string()).transform(([one]) => one)));
const params = z.object({ id: z.string().max(500).default('') });

/** Adds the routes of a mirror, below `/m/<mirror>`. */
export function serveMirror(
  scope: FastifyInstance,
  mirror: ConsoleMirror,
  options: MirrorRoutesOptions,
): void {
  const { clock } = options;
  const base = linkTo({ mirror });
  for (const page of pages) {
    const path = page.path === '' ? base : `${base}/${page.path}`;
    scope.get(path, async (request, reply) => {
      const asked = inside(request, reply, mirror);
      const content = await page.show(asked);
      if (!reply.sent) await answer(request, reply, { page, asked, content });
    });
    const { ask, search } = page;
    if (ask) {
      scope.post(path, { preHandler: scope.csrfProtection }, async (request, reply) => {
        const asked = inside(request, reply, mirror);
        await answer(request, reply, { page, asked, content: await ask(asked) });
      });
    }
    if (search) {
      scope.post(path, async (request, reply) => {
        const values = formOf(request, form);
        const asked = inside(request, reply, mirror);
        const content = await search(asked, values);
        await answer(request, reply, { page, asked, content });
      });
    }
  }
  serveLive(scope, mirror, options);
  const guards = { preHandler: scope.csrfProtection };
  for (const name of [...Object.keys(actions), stopAction]) {
    scope.post(`${base}/do/${name}`, guards, async (request, reply) => {
      const { visitor } = request;
      if (visitor?.role === 'operator') {
        await act(request, reply, { name, user: visitor, mirror, clock });
        return;
      }
      const lines = ['You are signed in as a viewer.'];
      const title = 'Only operators can do this';
      await sendPage(request, reply, { title, code: 403, lines, ...frameOf(mirror, '') });
    });
  }
}

function serveLive(
  scope: FastifyInstance,
  mirror: ConsoleMirror,
  { access, clock, livePages, failed }: MirrorRoutesOptions,
): void {
  const base = linkTo({ mirror });
  const watch = watchMirror(mirror, { clock, failed });
  scope.get(`${base}/live`, { sse: 'only' }, async (request, reply) => {
    const { user, ...asked } = inside(request, reply, mirror);
    const uncount = livePages(user.name);
    if (!uncount) return reply.code(429).send({ error: 'too many pages of this user are open' });
    reply.sse.onClose(uncount);
    reply.sse.keepAlive();
    reply.sse.sendHeaders();
    const stop = watch({
      request: { ...asked, user, here: base },
      send: (event) => reply.sse.send(event),
      close: () => reply.sse.close(),
      async isLetIn() {
        const now = await visitorNow(request, access);
        return isDeepStrictEqual(now, user);
      },
    });
    reply.sse.onClose(stop);
    return reply;
  });
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
