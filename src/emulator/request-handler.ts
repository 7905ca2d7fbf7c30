import type { Clock } from '../domain/clock.ts';
import type { Request } from '../domain/exchange.ts';
import { type ApiOutcome, refuse, refuseBriefly } from './shared/api-answer.ts';
import { limitHeaders, type Meters, rateLimited, type Route } from './limits/route-limits.ts';
import { findOperation, type Operation } from './api/operation.ts';
import { operations } from './api/operation-table.ts';
import type { Quirk, Reply } from './quirks/quirk.ts';
import type { Accounts } from './store/accounts.ts';
import type { KeyRow } from './shared/row-types.ts';
import type { Organization } from './store/organization.ts';

/** A request with any method, so that an unsupported method can be refused. */
export type AnyRequest = Omit<Request, 'method'> & { method: string };

/** A parsed request. */
export interface Asked {
  method: string;
  /** The path without the query. */
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: string;
}

/** The parts of the emulator that a request passes through. */
interface Ground {
  accounts: Accounts;
  meters: Meters;
  quirks: Required<Quirk>;
  clock: Pick<Clock, 'now' | 'monotonic'>;
}

/** Handles a request in the order described at `createEmulator`. */
export function ask(asked: Asked, ground: Ground): Reply {
  const { accounts, meters, quirks, clock } = ground;
  const found = findOperation(operations, asked);
  if ('allowed' in found) return noOperation(asked, found.allowed);
  const { operation, id } = found;
  const { route, method } = operation;
  const admitted = admit(accounts, operation, asked.headers);
  if ('refusal' in admitted) return { route, outcome: admitted.refusal, headers: {} };
  const { organization, key } = admitted;
  if (key) organization.keys.count(key);

  const at = { epoch: clock.now(), monotonic: clock.monotonic() };
  const taken = meters.of(organization).take(route, at);
  const headers = limitHeaders(taken, { sends: operation.sends, nowMs: at.epoch });
  const { reading } = taken;
  const known = { route, organization, headers, reading };
  if (!reading.allowed) return { ...known, outcome: rateLimited(route, headers['retry-after']) };
  if (key && !permits(key, method)) return { ...known, outcome: forbidden(key, operation) };

  const question = quirks.rewrites({ ...asked, route, id });
  const outcome =
    quirks.answers(question, organization) ?? operation.answer(organization, question);
  return { ...known, outcome, question };
}

/** Parses a request. */
export function read({ method, path, headers, body = '' }: AnyRequest): Asked {
  const mark = path.indexOf('?');
  const end = mark < 0 ? path.length : mark;
  const query = new URLSearchParams(path.slice(end + 1));
  return { method, path: path.slice(0, end), query, headers, body };
}

/** Returns the route of a request, or undefined if no operation has this method and path. */
export function routeOf(request: AnyRequest): Route | undefined {
  const found = findOperation(operations, read(request));
  return 'operation' in found ? found.operation.route : undefined;
}

function noOperation({ method, path }: Asked, allowed: readonly string[]): Reply {
  if (allowed.length === 0) {
    const outcome = refuse(404, 'Not found', {
      why: `The API has no path ${path}.`,
      fix: 'Compare the path with the API reference.',
    });
    return { route: null, outcome, headers: {} };
  }
  const allow = allowed.join(', ');
  const outcome = refuse(405, 'Method not allowed', {
    why: `${path} does not accept ${method}.`,
    fix: `Use ${allow}.`,
  });
  return { route: null, outcome, headers: { allow } };
}

/**
 * The organization that a request acts on, and the key that it came with. A request with a session
 * has no key.
 */
export type Admitted = { organization: Organization; key?: KeyRow } | { refusal: ApiOutcome };

/**
 * Decides who may send a request ("Authentication").
 *
 *   operation    the request has                   result
 *   by key       no key, or an unknown one         401
 *   by key       a revoked or disabled key         401
 *   by session   the session of a member           accepted, whatever key came with it
 *   by session   any other session                 403
 *   by session   only a valid key                  403: keys are not accepted there
 *   by session   neither                           401
 */
function admit(
  accounts: Accounts,
  { session }: Pick<Operation, 'session'>,
  headers: Readonly<Record<string, string>>,
): Admitted {
  const known = session ? bySession(accounts, headers['cookie'] ?? '') : undefined;
  if (known) return known;
  const admitted = byKey(accounts, headers['x-api-key']);
  if (!session || ('refusal' in admitted && headers['x-api-key'] !== undefined)) return admitted;
  if ('refusal' in admitted) return { refusal: refuseBriefly(401, 'No valid session') };
  return { refusal: refuseBriefly(403, 'API keys are not accepted here: a session is required') };
}

/** Returns whether a key may use a method. GET needs read, and any other method needs write. */
export function permits({ permissions }: KeyRow, method: string): boolean {
  const needed = method === 'GET' ? 'read' : 'write';
  return permissions.split(',').some((permission) => permission.trim() === needed);
}

/** Returns the error response for a key without the required permission. */
function forbidden(key: KeyRow, { method, brief }: Operation): ApiOutcome {
  const message = 'Unauthorized access';
  if (brief) return refuseBriefly(403, message);
  const needed = method === 'GET' ? 'read' : 'write';
  return refuse(403, message, {
    why: `The API key "${key.name}" may ${key.permissions || 'nothing'}; this needs ${needed}.`,
    fix: `Use a key with the permission ${needed}.`,
  });
}

function byKey(accounts: Accounts, secret: string | undefined): Admitted {
  if (secret === undefined) {
    return unauthorized('Missing API key', {
      why: 'The request has no x-api-key header.',
      fix: 'Send the API key of your organization in the x-api-key header.',
    });
  }
  const found = accounts.byKey(secret);
  if (found === undefined) {
    return unauthorized('Invalid API key', {
      why: 'The key in the x-api-key header belongs to no organization.',
      fix: 'Compare the key with the one the emulator printed when it started.',
    });
  }
  const { id, revoked, enabled } = found.key;
  if (revoked) {
    return unauthorized('API key revoked', {
      why: `The key ${id} was revoked, which is for good.`,
      fix: 'Use another key of the organization.',
    });
  }
  if (enabled) return found;
  return unauthorized('API key disabled', {
    why: `The key ${id} is disabled, and cannot enable itself.`,
    fix: `Enable it with another key of the organization: POST /api/api-key/v1/enable/${id}.`,
  });
}

function unauthorized(message: string, detail: { why: string; fix: string }): Admitted {
  return { refusal: refuse(401, message, detail) };
}

/** Looks for a session in the cookies. Returns undefined if no cookie matches a user's session. */
function bySession(accounts: Accounts, cookies: string): Admitted | undefined {
  for (const cookie of cookies.split(';')) {
    const [name = '', ...value] = cookie.split('=');
    if (!name.trim().endsWith('.session_token')) continue;
    const user = accounts.users.bySession(decode(value.join('=').trim()));
    if (user === undefined) continue;
    const organization = accounts.organizations.get(user.organizationId ?? '');
    if (organization !== undefined) return { organization };
    return { refusal: refuseBriefly(403, 'User is not a member of an organization') };
  }
  return undefined;
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
