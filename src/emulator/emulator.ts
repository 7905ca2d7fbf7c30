import type { Clock, Random } from '../model/clock.ts';
import type { Answer, Request } from '../model/exchange.ts';
import { refuse, timestamp, toAnswer, type Outcome } from './answer.ts';
import { CONSOLE, createConsole } from './console.ts';
import { createDashboard, type Dashboard } from './dashboard.ts';
import { createFaults } from './fault/faults.ts';
import type { Delivery } from './fault/kinds.ts';
import { createReceive } from './fault/receive.ts';
import { findAlgorithm } from './limit/algorithms.ts';
import { createLimits, limitHeaders, rateLimited, type Route } from './limit/limits.ts';
import { findOperation } from './operation/router.ts';
import { operations } from './operation/table.ts';
import type { Reply } from './quirk/quirk.ts';
import { createQuirks } from './quirk/quirks.ts';
import { createIds, letters } from './random.ts';
import { createSeed, type Seed } from './seed.ts';
import type { Channel } from './store/contact.ts';
import { createOrganization } from './store/organization.ts';
import { remember } from './store/recent.ts';
import { createWorld, type LoggedRequest, type World } from './world.ts';

export interface EmulatorOptions {
  clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The one source of chance: the same numbers give the same ids, and the same key. */
  random: Random;
  /** Drawn from `random` when left out. */
  apiKey?: string | undefined;
  channels?: readonly Channel[] | undefined;
  /** Such as `contacts.enrol=30/60` or `*=1000/1`; Invalid when one cannot be read. */
  limits?: readonly string[] | undefined;
  /** How they are counted, by name; fixed unless told otherwise. */
  algorithm?: string | undefined;
  /** Differences from the specification, such as `no-flip`; Invalid when one is not known. */
  quirks?: readonly string[] | undefined;
  /** Such as `500=0.05@contacts.enrol`; Invalid when one cannot be read. */
  faults?: readonly string[] | undefined;
  /** The request log keeps at least so many of the newest entries; default 100,000. */
  keepRequests?: number | undefined;
}

/** A request with any method at all, so that a wrong one can be refused. */
type AnyRequest = Omit<Request, 'method'> & { method: string };

/** An email platform with one organization, in memory: nothing happens but what is asked of it. */
export interface Emulator {
  /** Answers one request at once, always in JSON and without faults; never throws. */
  handle(request: AnyRequest): Answer;
  /** The same, over a connection on which faults happen. */
  receive(request: AnyRequest): Delivery;
  /** From now on these faults happen, and no others; Invalid when one cannot be read. */
  fail(faults: readonly string[]): void;
  readonly apiKey: string;
  readonly organizationId: string;
  /** Arranges the world before the story begins. */
  readonly seed: Seed;
  /** Acts as the people on the platform. */
  readonly dashboard: Dashboard;
  /** Looks at what there is, and at what was asked. */
  readonly world: World;
}

/**
 * A local, strict platform: the operations of its specification over one organization in memory.
 * A request passes, in this order: its path and method (404, 405), its key (401), the limit of its
 * route (429), the operation's schemas (400), the operation. What comes after the key is counted.
 */
export function createEmulator(options: EmulatorOptions): Emulator {
  const { clock, random } = options;
  const apiKey = options.apiKey ?? `key_live_${letters(random)}${letters(random)}`;
  const quirks = createQuirks(options.quirks ?? []);
  const now = () => clock.now();
  const organization = createOrganization(createIds(random), now, quirks.manner);
  const limits = createLimits(options.limits ?? [], findAlgorithm(options.algorithm));
  const faults = createFaults(options.faults ?? [], random);
  const requests = remember<LoggedRequest>(options.keepRequests ?? 100_000);
  const seed = createSeed(organization);
  const dashboard = createDashboard(organization);
  const world = createWorld(organization, requests);
  const playWith = createConsole(dashboard, world.state);
  for (const channel of options.channels ?? []) seed.channel(channel);

  function ask(asked: Asked): Reply {
    const found = findOperation(operations, asked);
    if ('allowed' in found) return noOperation(asked, found.allowed);
    const { operation, id } = found;
    const { route } = operation;
    if (asked.key !== apiKey) return { route, outcome: unauthorized(asked.key), headers: {} };

    const taken = limits.take(route, { epoch: clock.now(), monotonic: clock.monotonic() });
    const headers = limitHeaders(taken, { sends: operation.sends, nowMs: clock.now() });
    const { reading } = taken;
    if (!reading.allowed) {
      return { route, outcome: rateLimited(route, headers['retry-after']), headers, reading };
    }
    const question = quirks.rewrites({ ...asked, route, id });
    const outcome =
      quirks.answers(question, organization) ?? operation.answer(organization, question);
    return { route, outcome, headers, question, reading };
  }

  function handle(request: AnyRequest, fault?: string): Answer {
    const asked = read(request);
    const date = new Date(clock.now()).toUTCString();
    if (asked.path.startsWith(CONSOLE)) return toAnswer(playWith(asked), { date });
    const { route, outcome, headers } = quirks.turns(ask(asked), organization);
    const { status, about } = outcome;
    log(request, { route, status, ...about, ...(fault !== undefined && { fault }) });
    return toAnswer(outcome, { date, ...headers });
  }

  function log({ method, path }: AnyRequest, seen: Omit<LoggedRequest, 'at' | 'method' | 'path'>) {
    requests.add({ at: timestamp(clock.now()), method, path, ...seen });
  }

  return {
    handle: (request) => handle(request),
    receive: createReceive(faults, { routeOf, handle, lose: log }),
    fail: faults.choose,
    apiKey,
    organizationId: organization.id,
    seed,
    dashboard,
    world,
  };
}

interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  key: string | undefined;
  body: string;
  headers: Record<string, string>;
}

function read({ method, path, headers, body = '' }: AnyRequest): Asked {
  const mark = path.indexOf('?');
  const end = mark < 0 ? path.length : mark;
  const query = new URLSearchParams(path.slice(end + 1));
  const key = headers['x-api-key'];
  return { method, path: path.slice(0, end), query, key, body, headers };
}

function routeOf(request: AnyRequest): Route | undefined {
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

function unauthorized(key: string | undefined): Outcome {
  return key === undefined
    ? refuse(401, 'Missing API key', {
        why: 'The request has no x-api-key header.',
        fix: 'Send the API key of your organization in the x-api-key header.',
      })
    : refuse(401, 'Invalid API key', {
        why: 'The key in the x-api-key header belongs to no organization.',
        fix: 'Compare the key with the one the emulator printed when it started.',
      });
}
