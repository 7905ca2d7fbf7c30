import type { Clock, Random } from '../model/clock.ts';
import { Invalid } from '../model/errors.ts';
import type { Answer, Request } from '../model/exchange.ts';
import { admit, forbidden, permits } from './access.ts';
import { refuse, timestamp, toAnswer, type Outcome } from './answer.ts';
import { arrange } from './arrange.ts';
import { CONSOLE, createConsole } from './console/console.ts';
import { createDashboard, type Dashboard } from './dashboard/dashboard.ts';
import { createLimits, limitHeaders, type Route } from './limit/limits.ts';
import { fixedWindow } from './limit/meter.ts';
import { answerPage } from './openapi/pages.ts';
import { findOperation } from './operation/router.ts';
import { operations } from './operation/table.ts';
import { letters } from './random.ts';
import type { SeedFile } from './seed-file.ts';
import { createSeed, type Seed } from './seed.ts';
import { createAccounts, type Accounts } from './store/accounts.ts';
import type { Channel } from './store/contact.ts';
import type { Organization } from './store/organization.ts';
import { remember, type Recent } from './store/recent.ts';
import { createMemory, type Storage } from './store/storage.ts';
import type { UserRow } from './store/users.ts';
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
  /** The request log keeps at least so many of the newest entries; default 100,000. */
  keepRequests?: number | undefined;
  /** Where the world is kept; in memory when left out. */
  storage?: Storage | undefined;
  /** What is there from the beginning. Not looked at when the storage brings a world. */
  seedFile?: SeedFile | undefined;
}

/** A request with any method at all, so that a wrong one can be refused. */
type AnyRequest = Omit<Request, 'method'> & { method: string };

/** One organization, from behind the scenes. */
export interface Player {
  readonly organizationId: string;
  /** A key that may read and write, if there is one; else any. */
  readonly apiKey: string;
  /** Arranges the world before the story begins. */
  readonly seed: Seed;
  /** Acts as the people on the platform. */
  readonly dashboard: Dashboard;
  /** Looks at what there is, and at what was asked. */
  readonly world: World;
}

/** An email platform: nothing happens but what is asked of it. It plays its first organization. */
export interface Emulator extends Player {
  /** Answers one request at once, in JSON (but for the page /docs); never throws. */
  handle(request: AnyRequest): Answer;
  /** The ids of all organizations; the first is its own. */
  organizations(): string[];
  /** Throws Invalid when there is no such organization. */
  player(organizationId: string): Player;
  /** The session of the first user who is a member of no organization, if there is one. */
  guest(): string | undefined;
  /** Back to how the world was when the first request came; limits and the request log begin anew. */
  reset(): void;
  /** Writes what is not yet written, and lets go of the storage. */
  close(): void;
}

/**
 * A local, strict platform: all operations of its specification. A request passes, in this order:
 * its path and method (404, 405), its key or session (401, 403), the limit of its organization and
 * route (429), the key's permissions (403), the operation's schemas (400), the operation. What
 * comes after the key is counted.
 */
export function createEmulator(options: EmulatorOptions): Emulator {
  const { clock, storage = createMemory() } = options;
  const accounts = openAccounts(options, storage);
  const requests = remember<LoggedRequest>(options.keepRequests ?? 100_000);
  const meters = createMeters(options.limits ?? []);
  const player = createPlayers(accounts, requests);
  let hasBegun = false;

  function begin(): void {
    if (hasBegun) return;
    storage.save();
    storage.begin(accounts.rows());
    hasBegun = true;
  }

  const emulator: Emulator = {
    ...player([...accounts.organizations.keys()][0] ?? ''),
    handle(request) {
      const unready = writing(begin);
      if (unready) return unready;
      const asked = read(request);
      const date = new Date(clock.now()).toUTCString();
      const page = answerPage(asked);
      if (page) return { ...page, headers: { date, ...page.headers } };
      if (asked.path.startsWith(CONSOLE)) {
        const outcome = playWith(asked);
        return writing(storage.save) ?? toAnswer(outcome, { date });
      }
      const { route, outcome, headers } = ask(asked, { accounts, meters, clock });
      const { method, path } = request;
      const { status, about } = outcome;
      requests.add({ at: timestamp(clock.now()), method, path, route, status, ...about });
      return writing(storage.save) ?? toAnswer(outcome, { date, ...headers });
    },
    organizations: () => [...accounts.organizations.keys()],
    player,
    guest: () => [...accounts.users.rows()].find(isGuest)?.session,
    reset() {
      begin();
      accounts.restore(storage.rewind());
      requests.clear();
      meters.clear();
    },
    close() {
      storage.save();
      storage.close();
    },
  };
  const playWith = createConsole(emulator);
  return emulator;
}

interface Ground {
  accounts: Accounts;
  meters: Meters;
  clock: EmulatorOptions['clock'];
}

function ask(asked: Asked, { accounts, meters, clock }: Ground): Reply {
  const found = findOperation(operations, asked);
  if ('allowed' in found) return noOperation(asked, found.allowed);
  const { operation, id } = found;
  const { route, method } = operation;
  const admitted = admit(accounts, operation, asked.headers);
  if ('refusal' in admitted) return { route, outcome: admitted.refusal, headers: {} };
  const { organization, key } = admitted;
  if (key) organization.keys.count(key);

  const taken = meters.of(organization).take(route, clock.monotonic());
  const headers = limitHeaders(taken, { sends: operation.sends, nowMs: clock.now() });
  if (!taken.reading.allowed) {
    return { route, outcome: rateLimited(route, headers['retry-after']), headers };
  }
  const outcome =
    key && !permits(key, method)
      ? forbidden(key, operation)
      : operation.answer(organization, { ...asked, id });
  return { route, outcome, headers };
}

/** The world an earlier process left, or a new one. */
function openAccounts(options: EmulatorOptions, storage: Storage): Accounts {
  const { clock, random, apiKey, channels = [], seedFile } = options;
  const drawnKey = apiKey ?? `key_live_${letters(random)}${letters(random)}`;
  const accounts = createAccounts(storage, { random, now: () => clock.now() });
  const stored = storage.load();
  if (stored.length > 0) accounts.restore(stored);
  else arrange(accounts, { apiKey, drawnKey, channels, seedFile });
  storage.save();
  return accounts;
}

/** Every organization has limits of its own. */
interface Meters {
  of(organization: Organization): ReturnType<typeof createLimits>;
  clear(): void;
}

function createMeters(limits: readonly string[]): Meters {
  const create = () => createLimits(limits, fixedWindow);
  // One that cannot be read is refused now, and not by the first request.
  const meters = new Map([['', create()]]);
  return {
    of({ id }) {
      const known = meters.get(id) ?? create();
      meters.set(id, known);
      return known;
    },
    clear: () => meters.clear(),
  };
}

function createPlayers(
  accounts: Accounts,
  requests: Recent<LoggedRequest>,
): (organizationId: string) => Player {
  return (organizationId) => {
    const organization = accounts.organizations.get(organizationId);
    if (organization === undefined) {
      const known = [...accounts.organizations.keys()].join(', ');
      throw new Invalid(`no organization "${organizationId}": use one of ${known}`);
    }
    return {
      organizationId,
      apiKey: bestKey(organization),
      seed: createSeed(accounts, organization),
      dashboard: createDashboard(organization),
      world: createWorld(organization, { accounts, requests }),
    };
  };
}

function bestKey({ keys }: Organization): string {
  const usable = [...keys.rows()].filter(({ enabled, revoked }) => enabled && !revoked);
  const best = usable.find((key) => permits(key, 'GET') && permits(key, 'POST'));
  return (best ?? usable[0])?.secret ?? '';
}

function isGuest({ organizationId }: UserRow): boolean {
  return organizationId === null;
}

/** Writes to the storage; the refusal when that cannot be done. */
function writing(write: () => void): Answer | undefined {
  try {
    write();
    return undefined;
  } catch (error) {
    const why = `The data file could not be written: ${error instanceof Error ? error.message : ''}`;
    const fix = 'Make room for it; the change is written with the next request.';
    return toAnswer(refuse(500, 'Internal error', { why, fix }), {});
  }
}

interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: string;
}

interface Reply {
  route: Route | null;
  outcome: Outcome;
  headers: Record<string, string>;
}

function read({ method, path, headers, body = '' }: AnyRequest): Asked {
  const mark = path.indexOf('?');
  const end = mark < 0 ? path.length : mark;
  const query = new URLSearchParams(path.slice(end + 1));
  return { method, path: path.slice(0, end), query, headers, body };
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

function rateLimited(route: Route, retryAfter: string | undefined): Outcome {
  return refuse(429, 'Rate limit exceeded', {
    why: `The organization has used up its limit for ${route} in this window.`,
    fix: `Wait ${retryAfter} s, as Retry-After says, and send the request again.`,
  });
}
