import type { Clock } from '../domain/clock.ts';
import type { Request } from '../domain/exchange.ts';
import { admit, forbidden, permits } from './request-access.ts';
import { refuse } from './shared/api-answer.ts';
import { limitHeaders, rateLimited, type Meters, type Route } from './limits/route-limits.ts';
import { findOperation } from './api/router.ts';
import { operations } from './api/operation-table.ts';
import type { Quirk, Reply } from './quirks/quirk.ts';
import type { Accounts } from './store/accounts.ts';

/** A request with any method, so that a wrong one can be refused. */
export type AnyRequest = Omit<Request, 'method'> & { method: string };

/** A request, taken apart. */
export interface Asked {
  method: string;
  /** The path without the query. */
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: string;
}

/** What a request passes through. */
interface Ground {
  accounts: Accounts;
  meters: Meters;
  quirks: Required<Quirk>;
  clock: Pick<Clock, 'now' | 'monotonic'>;
}

/** Answers a request, in the order that `createEmulator` states. */
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

/** Takes a request apart. */
export function read({ method, path, headers, body = '' }: AnyRequest): Asked {
  const mark = path.indexOf('?');
  const end = mark < 0 ? path.length : mark;
  const query = new URLSearchParams(path.slice(end + 1));
  return { method, path: path.slice(0, end), query, headers, body };
}

/** Returns the route of a request; undefined: no operation has this method and path. */
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
