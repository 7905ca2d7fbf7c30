/**
 * Decides who may see the server's pages, answers the failures of its routes, and finds out who
 * sends a request to the console, by the rules of the `server` block:
 *
 *   a session                         the user who signed in, or who followed the link of `console`
 *   a header of a proxy               only from the addresses that the configuration names
 *   no users are configured:
 *     the token of the server         a viewer
 *     no token, on this machine only  a viewer
 *   anything else                     nobody
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import type { FastifyRequest, FastifyError, FastifyInstance } from 'fastify';
import { Invalid, Unavailable } from '../../domain/errors.ts';
import type { Config } from '../../config/config.ts';
import { type KnownUser, openUsers, type Role, type Users } from './users-file.ts';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../../domain/values/config-value.ts';
import type { Section } from '../../views/sections.ts';

/** Who uses the console. */
export interface User {
  name: string;
  role: Role;
  /** Whether pages name people by their address. */
  seesAddresses: boolean;
}

/** Who is let in. */
export interface AccessRules {
  /** Undefined if the configuration names no file of users. */
  users: Users | undefined;
  /** The header in which a proxy names the user it has signed in, lower case. */
  proxy: { header: string; operators: ReadonlySet<string>; from: ReadonlySet<string> } | undefined;
  /** The addresses of proxies, whose X-Forwarded-For says who sends a request. */
  proxies?: ReadonlySet<string>;
  token: string | undefined;
  /** The key in the link that `crm-mirror console` prints, and the user it signs in. */
  link: { key: string; user: User } | undefined;
  viewersSeeAddresses: boolean;
  /** The host under which a proxy with TLS serves the console; undefined if none is known. */
  secureHost: string | undefined;
}

/** What an action has answered: it is done, failed, or neither. */
export interface Flash {
  kind: 'good' | 'bad' | 'busy';
  sections: readonly Section[];
}

/** What a session remembers of a user. */
export interface SessionUser {
  name: string;
  isByLink: boolean;
  /** Stands for the password with which the user signed in (passwordMark); '' without one. */
  mark: string;
}

declare module 'fastify' {
  interface Session {
    user?: SessionUser;
    /** When the user last asked for something, in milliseconds of the monotonic clock. */
    usedAt?: number;
    /** The user that a proxy has named, for the limit of sessions only. */
    proxied?: string;
    /** Shown once. */
    flash?: Flash;
  }
}

/** Returns who sends the request, or undefined. Throws Invalid if the file of users is unusable. */
export function visitorOf(
  { session, headers, socket }: FastifyRequest,
  rules: AccessRules,
): User | undefined {
  const { users, proxy, link, token, viewersSeeAddresses } = rules;
  const userOf = (name: string, role: Role): User => {
    return { name, role, seesAddresses: role === 'operator' || viewersSeeAddresses };
  };
  const { user } = session;
  if (user?.isByLink && link) return link.user;
  const known = user && !user.isByLink ? users?.find(user.name) : undefined;
  if (known && passwordMark(known) === user?.mark) return userOf(known.name, known.role);
  if (proxy?.from.has(plainAddress(socket.remoteAddress ?? ''))) {
    const name = headers[proxy.header];
    if (typeof name === 'string' && name !== '') {
      return userOf(name, proxy.operators.has(name) ? 'operator' : 'viewer');
    }
  }
  if (users || proxy || link || !mayEnter(headers, token)) return undefined;
  return userOf(token === undefined ? 'this machine' : 'the token', 'viewer');
}

/**
 * Returns who sends the request if it was sent now: a connection may outlive the session. Throws as
 * `visitorOf` does.
 */
export async function visitorNow(
  request: FastifyRequest,
  rules: AccessRules,
): Promise<User | undefined> {
  const { session, sessionStore } = request;
  if (session.user) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    sessionStore.get(session.sessionId, (error, kept) => resolve(!error && Boolean(kept?.user)));
    if (!(await promise)) return undefined;
  }
  return visitorOf(request, rules);
}

/** Returns a text that changes with the password of a user: a new password ends the sessions. */
export function passwordMark({ password }: KnownUser): string {
  return createHash('sha256').update(password).digest('base64url');
}

/** Returns the rules of the configuration. Throws Invalid if the file of users cannot be used. */
export function accessRulesOf(config: Config): AccessRules {
  const { server } = config;
  const { proxyUser, token, publicUrl = '', viewersSeeAddresses = false } = server ?? {};
  const address = URL.parse(publicUrl);
  const file = usersFileOf(config);
  return {
    users: file === undefined ? undefined : openUsers(file),
    proxy: proxyUser && {
      header: proxyUser.header.toLowerCase(),
      operators: new Set(proxyUser.operators),
      from: new Set(proxyUser.from),
    },
    proxies: new Set([...(server?.proxies ?? []), ...(proxyUser?.from ?? [])]),
    token,
    link: undefined,
    viewersSeeAddresses,
    secureHost: address?.protocol === 'https:' ? address.host : undefined,
  };
}

/**
 * Returns the rules for a console of several mirrors. If one of them names users, all have these
 * users; viewers see addresses only if every configuration says so. Throws Invalid if two name
 * different users.
 */
export function sharedAccessRules(configs: readonly Config[]): AccessRules {
  const usersOf = (config: Config): string =>
    JSON.stringify([usersFileOf(config), config.server?.proxyUser]);
  const none = JSON.stringify([undefined, undefined]);
  const [first, ...others] = configs.filter((config) => usersOf(config) !== none);
  const other = others.find((config) => first && usersOf(config) !== usersOf(first));
  if (first && other) {
    const what = 'name different users, and a console has the same for all mirrors';
    throw new Invalid(`${first.file} and ${other.file} ${what}`, {
      fix: 'write the same server.users and server.proxyUser, or serve each mirror by itself',
    });
  }
  const shared = first ?? configs[0];
  if (!shared) throw new Invalid('no configuration is named', { fix: 'name one with -c' });
  const viewersSeeAddresses = configs.every(({ server }) => server?.viewersSeeAddresses);
  return { ...accessRulesOf(shared), viewersSeeAddresses };
}

/** Returns the absolute path of the file of users; undefined if the configuration names none. */
export function usersFileOf({ file, server }: Config): string | undefined {
  return server?.users === undefined ? undefined : resolve(dirname(file), server.users);
}

/** Writes an IPv4 address that a socket of both families shows as IPv6. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:/, '');
}

/**
 * Returns whether a request is allowed. With a token, the request must contain it, either as
 * `Authorization: Bearer …` or as the password of HTTP Basic, which browsers send. Without a token,
 * the server listens on this machine only, and serves only requests that name it by a loopback
 * address, so that no web page can send requests under another name.
 */
export function mayEnter(headers: IncomingHttpHeaders, token: string | undefined): boolean {
  if (token === undefined) return isLoopback(`http://${headers.host ?? ''}`);
  return isSame(credentialOf(headers.authorization ?? ''), token);
}

/** Returns what answers a request without the right token: the HTTP status, a reason, headers. */
export function denial(token: string | undefined): {
  code: number;
  error: string;
  headers: Record<string, string>;
} {
  if (token === undefined) {
    const error = 'without a token only localhost is answered: add server.token';
    return { code: 403, error, headers: {} };
  }
  const headers = { 'www-authenticate': 'Basic realm="crm-mirror", charset="UTF-8"' };
  return { code: 401, error: 'the token is missing or wrong', headers };
}

/** Compares two texts in constant time, regardless of their lengths. */
export function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

function credentialOf(authorization: string): string {
  const [scheme = '', credential = ''] = authorization.split(' ', 2);
  if (/^bearer$/i.test(scheme)) return credential;
  if (!/^basic$/i.test(scheme)) return '';
  const pair = Buffer.from(credential, 'base64').toString('utf8');
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : '';
}

/** The largest body of a request. */
export const mostBytes = 1024 * 1024;

const retryAfterSeconds = 5;

/** Answers failures in a scope with one line of JSON. `failed` is called with each bug. */
export function answerFaults(app: FastifyInstance, failed: (error: unknown) => void): void {
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    if (error instanceof Unavailable) {
      reply.code(503).header('retry-after', retryAfterSeconds);
      return reply.send({ error: 'not now: Redis cannot be asked' });
    }
    const { statusCode = 500 } = error;
    if (statusCode < 500)
      return reply.code(statusCode).send({ error: words[statusCode] ?? 'bad request' });
    failed(error);
    return reply.code(500).send({ error: 'internal error' });
  });
}

const words: Record<number, string> = {
  413: `the body is larger than ${mostBytes} bytes`,
  415: 'the body is not application/json',
};
