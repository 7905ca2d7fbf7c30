/**
 * Registers the console:
 *
 *   GET   /                          all mirrors, or those of a state
 *   GET   /mirrors.json              their names
 *   POST  /people                    the mirrors that know a person
 *   GET   /since                     what has happened in all of them since a day
 *   GET   /audit, POST /audit        their audit logs, which operators have verified
 *   POST  /steer                     pauses or resumes the mirrors shown
 *   GET   /users, POST /users        the users of the console, for operators
 *   GET   /fleet, POST /fleet/drain  the workers that share the mirrors of a folder
 *   GET   /m/<mirror>/…              the pages of one (mirror-routes.ts)
 *   GET   /m/<mirror>/live           what is going on, as server-sent events
 *   POST  /m/<mirror>/do/<action>    what operators can do (actions.ts)
 *   GET   /sign-in, POST /sign-in, POST /sign-out
 *   GET   /assets/…                  style, scripts
 *
 * Every page is rendered here. The policy of content allows nothing but files of this server.
 */
import { fileURLToPath } from 'node:url';
import { dirname, join } from 'node:path';
import cookie from '@fastify/cookie';
import csrf from '@fastify/csrf-protection';
import formBody from '@fastify/formbody';
import session from '@fastify/session';
import { fastifySSE } from '@fastify/sse';
import files from '@fastify/static';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../domain/clock.ts';
import { Busy, isExpected } from '../domain/errors.ts';
import { explain, isBug } from '../compose/output/failure-report.ts';
import {
  answerFaults,
  denial,
  type AccessRules,
  type User,
  visitorOf,
} from './access/access-rules.ts';
import { createSessionStore, createSignInAttempts, serveSignIn, sessionMs } from './sign-in.ts';
import { type ConsoleMirror, limitMirrors, limitWork } from './view/console-mirror.ts';
import { assetsAt, forOperators, sendPage } from './view/layout.ts';
import { limitPages } from './live.ts';
import { nothingHere, serveMirrors } from './mirror-routes.ts';
import { changeUsers, showUsers } from './pages/users.ts';
import {
  type ConsoleFleet,
  drainInFleet,
  findInMirrors,
  type RefusedConfiguration,
  showFleet,
  showMirrors,
  steerMirrors,
} from './pages/mirrors.ts';
import { showLogs, showSince, verifyLogs } from './pages/all-mirrors.ts';

/** The parts of the console. */
export interface ConsoleOptions {
  /** Returns the mirrors, which may come and go. */
  mirrors(): readonly ConsoleMirror[];
  /** Returns the files whose mirrors are stopped because they cannot be used. */
  refused?: (() => readonly RefusedConfiguration[]) | undefined;
  /** Returns the fleets in which this process serves mirrors. */
  fleets?: (() => readonly ConsoleFleet[]) | undefined;
  access: AccessRules;
  clock: Clock;
  /** Signs the cookies: 32 unpredictable bytes in hexadecimal. */
  secret: string;
  /** Returns unpredictable bytes, for passwords. */
  random(bytes: number): Buffer;
  /** Called with each bug that occurs while a request is served. */
  failed(error: unknown): void;
  /** Registers other routes, which see `request.visitor` and decide themselves who is let in. */
  beside?(scope: FastifyInstance): void;
}

const policy = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:",
  "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
].join('; ');

const searchesAtOnce = 2;

const coded = z.object({ statusCode: z.number().optional() }).catch({});

declare module 'fastify' {
  interface FastifyRequest {
    visitor: User | undefined;
  }
}

/** Adds the routes of the console, with their own access. */
export function serveConsole(app: FastifyInstance, options: ConsoleOptions): void {
  app.register(async (scope) => {
    scope.addHook('onRoute', (route) => {
      route.config = { ...route.config, hasOwnAccess: true };
    });
    // Style and scripts need no user.
    const uplot = join(dirname(fileURLToPath(import.meta.resolve('uplot/package.json'))), 'dist');
    const own = fileURLToPath(new URL('./assets', import.meta.url));
    for (const [name, root] of Object.entries({ uplot, own })) {
      scope.register(files, {
        root,
        prefix: `${assetsAt}/${name}/`,
        index: false,
        decorateReply: false,
        cacheControl: false,
        setHeaders: (answer) => void answer.header('cache-control', 'public, max-age=3600'),
      });
    }
    await scope.register(cookie);
    await scope.register(session, {
      secret: options.secret,
      cookieName: 'crm-mirror-session',
      // Strict would ask a user who follows the link of a notification to sign in again. Lax is
      // enough, because a link changes nothing and asks nobody: forms do, with a token.
      cookie: { secure: false, httpOnly: true, sameSite: 'lax', path: '/', maxAge: sessionMs },
      store: createSessionStore(options.clock.monotonic),
      saveUninitialized: false,
    });
    // The server itself speaks plain HTTP, so the session marks no cookie as Secure.
    const { secureHost } = options.access;
    scope.addHook('onSend', async ({ headers }, reply) => {
      const cookies = reply.getHeader('set-cookie');
      if (!secureHost || headers.host !== secureHost || cookies === undefined) return;
      const secure = [cookies].flat().map((one) => `${one}; Secure`);
      reply.removeHeader('set-cookie').header('set-cookie', secure);
    });
    await scope.register(formBody);
    await scope.register(csrf, {
      sessionPlugin: '@fastify/session',
      getToken: ({ body }: FastifyRequest) => form.safeParse(body).data?.csrf,
    });
    await scope.register(fastifySSE);
    serveAll(scope, options);
  });
}

function serveAll(scope: FastifyInstance, options: ConsoleOptions): void {
  const { refused = () => [], fleets = () => [], access, clock, failed, beside } = options;
  const mirrors = limitMirrors(options.mirrors);
  const searches = limitWork(searchesAtOnce);
  scope.decorateRequest('visitor');
  scope.addHook('onRequest', async (request, reply) => {
    // With no-referrer, browsers would not say which page sends a form.
    reply.headers({ 'content-security-policy': policy, 'referrer-policy': 'same-origin' });
    request.visitor = visitorOf(request, access);
    // A page that renews itself does not show that somebody uses it.
    const { session } = request;
    if (session.user && request.headers['x-renews'] === undefined)
      session.set('usedAt', clock.monotonic());
  });
  scope.setErrorHandler(async (error, request, reply) => {
    const { code, lines } = faultOf(error);
    if (code === 500) failed(error);
    return sendPage(request, reply, { title: 'This did not work', code, lines });
  });
  if (beside) {
    scope.register(async (other) => {
      answerFaults(other, failed);
      beside(other);
    });
  }
  serveSignIn(scope, access, createSignInAttempts(clock));
  scope.register(async (inside) => {
    inside.addHook('onRequest', async (request, reply) => {
      if (request.visitor) return;
      const { users, link, proxy, token } = access;
      if (users && request.method === 'GET') {
        await reply.redirect(`/sign-in?to=${encodeURIComponent(request.url)}`, 303);
      } else if (users || link || proxy) {
        const line = link ? 'open the link that `crm-mirror console` has printed' : 'sign in first';
        await sendPage(request, reply, { title: 'Who are you?', code: 401, lines: [line] });
      } else {
        const { code, error, headers } = denial(token);
        await reply.code(code).headers(headers).send({ error });
      }
    });
    inside.get('/', async (request, reply) =>
      showMirrors(request, reply, mirrors(), { refused: refused(), fleets: fleets(), clock }),
    );
    inside.get('/mirrors.json', async () => mirrors().map(({ config }) => config.mirror));
    const { users } = access;
    const guards = { preHandler: scope.csrfProtection };
    if (users) {
      const show = forOperators(async (request, reply) => showUsers(request, reply, users));
      const change = forOperators(async (request, reply, by) => {
        const { random } = options;
        await changeUsers(request, reply, { users, by, random, mirrors: mirrors(), clock });
      });
      inside.get('/users', show);
      inside.post('/users', guards, change);
    }
    inside.post('/people', async (request, reply) =>
      searches(() => findInMirrors(request, reply, mirrors(), clock)),
    );
    inside.get('/since', async (request, reply) =>
      searches(() => showSince(request, reply, mirrors(), clock)),
    );
    inside.get('/audit', async (request, reply) => showLogs(request, reply, mirrors()));
    const verify = forOperators(async (_, reply, by) => {
      void verifyLogs(by, mirrors());
      await reply.redirect('/audit', 303);
    });
    inside.post('/audit', guards, verify);
    const steer = forOperators(async (request, reply, by) =>
      steerMirrors(request, reply, by, mirrors()),
    );
    inside.post('/steer', guards, steer);
    inside.get('/fleet', async (request, reply) =>
      fleets().length === 0 ? nothingHere(request, reply) : showFleet(request, reply, fleets()),
    );
    const drain = forOperators(async (request, reply) => drainInFleet(request, reply, fleets()));
    inside.post('/fleet/drain', guards, drain);
    serveMirrors(inside, { ...options, mirrors, livePages: limitPages() });
    inside.get('/m/*', nothingHere);
  });
}

function faultOf(error: unknown): { code: number; lines: string[] } {
  const { statusCode = 500 } = coded.parse(error);
  if (statusCode === 403 && error instanceof Error && /csrf/i.test(error.message)) {
    return { code: 403, lines: ['This form is too old: go back and reload the page.'] };
  }
  if (statusCode < 500 && error instanceof Error) {
    return { code: statusCode, lines: [error.message] };
  }
  if (isBug(error)) {
    return { code: 500, lines: ['This is a bug. The log of this process describes it.'] };
  }
  if (error instanceof Busy) {
    const reasons = error.problems.map(({ reason }) => `${reason}.`);
    return { code: 503, lines: [...reasons, 'Reload this page in a moment.'] };
  }
  return { code: isExpected(error) ? 400 : 503, lines: explain(error).text.split('\n') };
}

/** Returns what the pages of a worker need to know of the console's users. */
export function pagesFor<Parts>({ users, proxy, token }: AccessRules, parts: Parts) {
  const roleOf = ({ visitor }: FastifyRequest) => visitor?.role;
  return { ...parts, token, hasUsers: users !== undefined || proxy !== undefined, roleOf };
}

const form = z.object({ csrf: z.string() });
