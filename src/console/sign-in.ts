/**
 * Signs users of the console in and out. Their sessions are kept in memory: a restart signs
 * everybody out. Who guesses passwords is slowed down; only attempts that fail are counted:
 *
 *   of one account from one address   5 a minute
 *   from one address                  30 a minute
 *   of one account, from addresses    20 in ten minutes
 *   from which nobody has signed in
 *
 * An attempt counts from its beginning, so that many at once are no way around it.
 */
import { isIP } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { FastifySessionOptions } from '@fastify/session';
import type { Clock } from '../domain/clock.ts';
import {
  isSame,
  type AccessRules,
  type SessionUser,
  passwordMark,
  plainAddress,
} from './access/access-rules.ts';
import { formOf, sendPage } from './view/layout.ts';
import { html } from '../views/render/html.ts';
import { isPassword } from './access/users-file.ts';

const given = z.object({
  name: z.string().max(200).default(''),
  password: z.string().max(1000).default(''),
  to: z.string().max(2000).catch('/').default('/'),
});
const query = z.object({
  to: z.string().catch('/').default('/'),
  key: z.string().catch('').default(''),
});

/** Adds the routes to sign in, by a password or by the link of `crm-mirror console`, and out. */
export function serveSignIn(
  scope: FastifyInstance,
  rules: AccessRules,
  attempts: ReturnType<typeof createSignInAttempts>,
): void {
  const attempt = (request: FastifyRequest, account: string) =>
    attempts.begin(account, addressOf(request, rules.proxies));
  scope.get('/sign-in', async (request, reply) => {
    const { to, key } = query.parse(request.query);
    const { link } = rules;
    if (link && key !== '') {
      const begun = attempt(request, '');
      if (!begun) return showForm(request, reply, { to, code: 429 });
      if (!isSame(key, link.key)) return showForm(request, reply, { to, code: 200 });
      begun.succeed();
      return begin(request, reply, { name: link.user.name, isByLink: true, mark: '', to });
    }
    return showForm(request, reply, { to, code: 200 });
  });
  scope.post('/sign-in', async (request, reply) => {
    const { name, password, to } = formOf(request, given);
    // Only a page of this server may send the form, as far as the browser says.
    const { origin, host } = request.headers;
    const isFromHere = origin === undefined || URL.parse(origin)?.host === host;
    if (!isFromHere) return showForm(request, reply, { to, code: 403 });
    const begun = attempt(request, name);
    if (!begun) return showForm(request, reply, { to, code: 429 });
    const known = rules.users?.find(name);
    const isRight = await isPassword(password, known?.password);
    if (!known || !isRight) return showForm(request, reply, { to, code: 401 });
    begun.succeed();
    return begin(request, reply, { name, isByLink: false, mark: passwordMark(known), to });
  });
  scope.post('/sign-out', { preHandler: scope.csrfProtection }, async (request, reply) => {
    await request.session.destroy();
    return reply.redirect('/', 303);
  });
}

async function begin(
  request: FastifyRequest,
  reply: FastifyReply,
  { to, ...user }: SessionUser & { to: string },
) {
  await request.session.regenerate();
  request.session.set('user', user);
  return reply.redirect(pathOf(to), 303);
}

/** Returns a path on this server, as a header can carry it; the start page for anything else. */
export function pathOf(to: string): string {
  if (!/^\/(?![/\\])[^\\\p{Cc}]*$/u.test(to)) return '/';
  return to.toWellFormed().replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent);
}

const reasons = {
  401: 'Name or password is wrong.',
  403: 'Another site has sent this form.',
  429: 'Too many attempts have failed. Wait a few minutes, then try again.',
} as const;

async function showForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { to, code }: { to: string; code: 200 | keyof typeof reasons },
): Promise<void> {
  const wrong = code === 200 ? '' : html`<p class="flash bad" role="alert">${reasons[code]}</p>`;
  const body = html`${wrong}
    <form class="sign-in" method="post" action="/sign-in">
      <input type="hidden" name="to" value="${pathOf(to)}" />
      <label>Name <input name="name" autocomplete="username" required autofocus /></label>
      <label
        >Password
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      <button>Sign in</button>
    </form>`;
  await sendPage(request, reply, { title: 'Sign in', body, code });
}

const minuteMs = 60_000;
const ofBoth = { most: 5, windowMs: minuteMs };
const ofAddress = { most: 30, windowMs: minuteMs };
const ofAccount = { most: 20, windowMs: 10 * minuteMs };
const mostKeys = 10_000;

/** Creates the counter, which a restart empties. */
export function createSignInAttempts({ monotonic }: Clock) {
  const failures = new Map<string, { count: number; until: number }>();
  const trusted = new Set<string>();
  const countOf = (key: string): number => {
    const found = failures.get(key);
    if (found && found.until > monotonic()) return found.count;
    failures.delete(key);
    return 0;
  };
  const count = (key: string, windowMs: number): void => {
    const known = countOf(key);
    const until = failures.get(key)?.until ?? monotonic() + windowMs;
    failures.set(key, { count: known + 1, until });
    dropOldest(failures);
  };
  const uncount = (key: string): void => {
    const found = failures.get(key);
    if (found) found.count -= 1;
  };
  return {
    /**
     * Begins an attempt; returns undefined if there were too many. '' is the account of a link.
     * `succeed` says that it did not fail.
     */
    begin(account: string, address: string): { succeed(): void } | undefined {
      const pair = JSON.stringify([account, address]);
      const rules: [key: string, rule: typeof ofBoth][] = [
        [pair, ofBoth],
        [`from ${address}`, ofAddress],
      ];
      if (!trusted.has(pair)) rules.push([`of ${account}`, ofAccount]);
      if (rules.some(([key, { most }]) => countOf(key) >= most)) return undefined;
      for (const [key, { windowMs }] of rules) count(key, windowMs);
      return {
        succeed() {
          for (const [key] of rules) uncount(key);
          trusted.add(pair);
          dropOldest(trusted);
        },
      };
    },
  };
}

function dropOldest(kept: Set<string> | Map<string, unknown>): void {
  for (const key of kept.keys()) {
    if (kept.size <= mostKeys) return;
    kept.delete(key);
  }
}

/**
 * Returns the address of who sends a request. Proxies add the address that they see to
 * X-Forwarded-For, which counts only as far as these proxies have written it.
 */
function addressOf(
  { socket, headers }: FastifyRequest,
  proxies: ReadonlySet<string> = new Set(),
): string {
  const hops = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
  let address = plainAddress(socket.remoteAddress ?? '');
  while (proxies.has(address)) {
    const hop = plainAddress(hops.pop()?.trim() ?? '');
    if (isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

type Store = NonNullable<FastifySessionOptions['store']>;

/** How long a session lasts after it was last used, in milliseconds. */
export const sessionMs = 12 * 3_600_000;
const mostOfUser = 50;

/** Creates the store. Beyond 50 sessions of a user, the one that was not used for longest ends. */
export function createSessionStore(monotonic: () => number): Store {
  const sessions = new Map<
    string,
    { kept: Parameters<Store['set']>[1]; owner: string; usedAt: number }
  >();
  const isOver = (usedAt: number): boolean => monotonic() - usedAt > sessionMs;
  return {
    set(id, kept, done) {
      sessions.delete(id);
      kept.usedAt ??= monotonic();
      const { user, proxied, usedAt } = kept;
      // It differs between users, and between the ways in which they are let in.
      const owner = JSON.stringify(user ? [user.name, user.isByLink] : [proxied]);
      sessions.set(id, { kept, owner, usedAt });
      for (const [old, one] of sessions) if (isOver(one.usedAt)) sessions.delete(old);
      const own = [...sessions].filter(([, one]) => one.owner === owner);
      for (const [old] of own.slice(0, -mostOfUser)) sessions.delete(old);
      done();
    },
    get(id, done) {
      const found = sessions.get(id);
      if (found && isOver(found.usedAt)) sessions.delete(id);
      done(undefined, found && !isOver(found.usedAt) ? found.kept : null);
    },
    destroy(id, done) {
      sessions.delete(id);
      done();
    },
  };
}
