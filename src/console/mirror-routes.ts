/**
 * Registers the pages of the mirrors, in the order of the navigation, their live updates and their
 * actions.
 */
import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../domain/clock.ts';
import { type AccessRules, visitorNow } from './access/access-rules.ts';
import { act, actions, stopAction } from './actions.ts';
import type { ConsoleMirror } from './view/console-mirror.ts';
import { readerOf } from './view/console-text.ts';
import { type limitPages, watchMirror } from './live.ts';
import { csrfOf, formOf, type NavLink, sendOperatorsOnly, sendPage } from './view/layout.ts';
import { html } from '../views/render/html.ts';
import { openCount, problemCount } from '../views/status/status-sections.ts';
import {
  linkTo,
  orFault,
  type Page,
  type PageElsewhere,
  type PageRequest,
  type Shown,
} from './view/page.ts';
import { approvalsFile, approvalsPage, changesPage } from './pages/approvals.ts';
import { auditPage } from './pages/audit.ts';
import { configurationPage } from './pages/configuration.ts';
import { eventsPage } from './pages/events.ts';
import { limitsPage, overviewPage } from './pages/overview.ts';
import { rehearsalPage } from './pages/rehearsal.ts';
import { runPage, runsPage } from './pages/runs.ts';
import { peoplePage, personFile, personNowPage, personPage } from './pages/people.ts';
import { problemsFile, problemsPage } from './pages/problems.ts';
import { undoPage } from './pages/undo.ts';
import { templatePage, templatePreview, templatesPage } from './pages/templates.ts';

/** The pages of a mirror. */
export const pages: readonly Page[] = [
  overviewPage,
  rehearsalPage,
  approvalsPage,
  changesPage,
  approvalsFile,
  problemsPage,
  problemsFile,
  peoplePage,
  personPage,
  personNowPage,
  personFile,
  runsPage,
  runPage,
  undoPage,
  limitsPage,
  templatesPage,
  templatePage,
  templatePreview,
  eventsPage,
  auditPage,
  configurationPage,
];

interface MirrorRoutesOptions {
  /** Returns the mirrors, which may come and go. Each stays the same object while it is there. */
  mirrors(): readonly ConsoleMirror[];
  access: AccessRules;
  clock: Clock;
  livePages: ReturnType<typeof limitPages>;
  failed(error: unknown): void;
}

const query = z.record(z.string(), z.string().or(z.array(z.string()).transform(([one]) => one)));
const params = z.object({ id: z.string().max(500).default('') });
const mirrorParam = z.object({ mirror: z.string() });

const base = '/m/:mirror';

type Answer = ReturnType<Page['show']> | Promise<Shown | PageElsewhere>;
type Work = (
  request: FastifyRequest,
  reply: FastifyReply,
  mirror: ConsoleMirror,
) => Promise<unknown>;

/** Responds that there is no such page, for which the server would ask for its token. */
export async function nothingHere(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  if (!request.headers.accept?.includes('text/html')) {
    return reply.code(404).send({ error: 'not found' });
  }
  const body = html`<p>This console shows no such page: the mirror or the page has another name.</p>
    <p><a href="/">To the console</a></p>`;
  return sendPage(request, reply, { title: 'Nothing is here', code: 404, body });
}

/** Returns a route that does the work for the mirror in its path, or responds with 404. */
type InMirror = (work: Work) => (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** Adds the routes of all mirrors, below `/m/<mirror>`. */
export function serveMirrors(scope: FastifyInstance, options: MirrorRoutesOptions): void {
  const { mirrors, clock } = options;
  const guards = { preHandler: scope.csrfProtection };
  const inMirror: InMirror = (work) => async (request, reply) => {
    const { mirror: name } = mirrorParam.parse(request.params);
    const mirror = mirrors().findLast(({ config }) => config.mirror === name);
    return mirror ? work(request, reply, mirror) : nothingHere(request, reply);
  };
  for (const page of pages) {
    const path = page.path === '' ? base : `${base}/${page.path}`;
    const answered = (show: (asked: PageRequest, request: FastifyRequest) => Answer) =>
      inMirror(async (request, reply, mirror) => {
        const asked = inside(request, reply, mirror);
        const content = await show(asked, request);
        if (!reply.sent) await answer(request, reply, { page, asked, content });
      });
    const { ask, search } = page;
    scope.get(path, answered(page.show));
    if (ask) scope.post(path, guards, answered(ask));
    if (search) {
      scope.post(
        path,
        answered((asked, request) => search(asked, formOf(request, form))),
      );
    }
  }
  serveLive(scope, inMirror, options);
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

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  { page, asked, content }: { page: Page; asked: PageRequest; content: Awaited<Answer> },
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
  const seen = orFault(() => mirror.status());
  const counts: Readonly<Record<string, number>> =
    'fault' in seen
      ? {}
      : { approvals: openCount(seen.status), problems: problemCount(seen.status) };
  const nav = pages.flatMap(({ nav: text, path }): NavLink[] => {
    if (text === undefined) return [];
    const isCurrent = current === path || (path !== '' && current.startsWith(`${path}/`));
    return [{ text, href: linkTo({ mirror }, path), isCurrent, count: counts[path] ?? 0 }];
  });
  const { mirror: name } = mirror.config;
  return { mirror: { name, href: linkTo({ mirror }) }, reader: readerOf({ mirror }), nav };
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
