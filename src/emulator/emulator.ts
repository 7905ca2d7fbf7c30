import type { Clock, Random } from '../domain/clock.ts';
import { Invalid } from '../domain/errors.ts';
import type { Answer } from '../domain/exchange.ts';
import { refuse, timestamp, toAnswer } from './shared/api-answer.ts';
import { arrange } from './seed/initial-world.ts';
import { type AnyRequest, ask, permits, read, routeOf } from './request-handler.ts';
import { CONSOLE, createConsole, foreign, isForeign } from './ui/console.ts';
import { createFaults, createReceive } from './faults/faults.ts';
import type { Delivery } from './faults/fault-kinds.ts';
import { findAlgorithm } from './limits/algorithms.ts';
import { createMeters, type Meters } from './limits/route-limits.ts';
import { answerPage } from './docs/reference-page.ts';
import { createQuirks } from './quirks/quirks.ts';
import { letters } from './shared/seeded-random.ts';
import type { SeedFile } from './seed/seed-file.ts';
import { type Accounts, createAccounts } from './store/accounts.ts';
import type { Channel } from './shared/row-types.ts';
import type { PlatformBehaviour } from './store/organization.ts';
import { type Recent, remember } from './store/recent-entries.ts';
import { createMemory, type Storage } from './store/storage.ts';
import { createWorld, type LoggedRequest, type World } from './ui/emulated-world.ts';
import { createDashboard, type Dashboard } from './ui/dashboard.ts';
import { createSeed, type Seed } from './seed/seed-records.ts';

/**
 * The options of an emulator. `createEmulator` throws Invalid if a limit, quirk or fault cannot be
 * parsed.
 */
export interface EmulatorOptions {
  clock: Pick<Clock, 'now' | 'monotonic'>;
  /**
   * The only source of randomness. The same sequence of numbers gives the same ids and the same
   * key.
   */
  random: Random;
  /** The API key; generated from `random` if omitted. */
  apiKey?: string | undefined;
  channels?: readonly Channel[] | undefined;
  /** Limits, such as `contacts.enrol=30/60` or `*=1000/1`. */
  limits?: readonly string[] | undefined;
  /**
   * The name of the algorithm that counts requests against limits. The default is fixed windows.
   */
  algorithm?: string | undefined;
  /** Differences from the specification, such as `no-flip`. */
  quirks?: readonly string[] | undefined;
  /** Faults, such as `500=0.05@contacts.enrol`. */
  faults?: readonly string[] | undefined;
  /** The minimum number of recent entries that the request log keeps. The default is 100,000. */
  keepRequests?: number | undefined;
  /** The storage of the world; the default is memory. */
  storage?: Storage | undefined;
  /** The initial world. Ignored if the storage already contains a world. */
  seedFile?: SeedFile | undefined;
}

/**
 * An email platform whose state changes only on request. Its own functions act on its first
 * organization.
 */
export interface Emulator extends Player {
  /**
   * Responds to a request immediately and without faults. The response is JSON, except for /docs.
   * Never throws.
   */
  handle(request: AnyRequest): Answer;
  /** Responds to a request over a simulated connection on which faults occur. */
  receive(request: AnyRequest): Delivery;
  /** Replaces the set of faults. Throws Invalid if one cannot be parsed. */
  fail(faults: readonly string[]): void;
  /** Returns the rate limit of an operation. */
  limitOf: Meters['limitOf'];
  /** Returns the ids of all organizations. The first one is the emulator's own. */
  organizations(): string[];
  /**
   * Returns a player that acts on another organization. Throws Invalid if no organization has this
   * id.
   */
  player(organizationId: string): Player;
  /**
   * Returns the session of the first user who is not a member of any organization, or undefined if
   * there is no such user.
   */
  guest(): string | undefined;
  /**
   * Restores the world as it was when the first request arrived. Limits, the request log, the
   * counters of quirks and the random sequence of faults start again. The chosen faults stay in
   * place.
   */
  reset(): void;
  /** Writes all pending changes and closes the storage. */
  close(): void;
}

/**
 * Creates a local, strict platform with all operations of the specification. A request passes these
 * checks in order: its path and method (404, 405), its key or session (401, 403), the limit of its
 * organization and route (429), the key's permissions (403), and the operation's schemas (400).
 * Then the operation runs. A request with a valid key counts against the limit.
 */
export function createEmulator(options: EmulatorOptions): Emulator {
  const { clock, storage = createMemory() } = options;
  // Errors in the options must be reported before anything is stored.
  const quirks = createQuirks(options.quirks ?? []);
  const meters = createMeters(options.limits ?? [], findAlgorithm(options.algorithm));
  const faults = createFaults(options.faults ?? [], options.random);
  const accounts = openAccounts(options, { storage, behaviour: quirks.behaviour });
  const requests = remember<LoggedRequest>(options.keepRequests ?? 100_000);
  const player = createPlayers(accounts, requests);
  const begin = once(() => storeBeginning(storage, accounts));

  function log({ method, path }: AnyRequest, seen: Omit<LoggedRequest, 'at' | 'method' | 'path'>) {
    requests.add({ at: timestamp(clock.now()), method, path, ...seen });
  }

  function handle(request: AnyRequest, fault?: string): Answer {
    const unready = writing(begin);
    if (unready) return unready;
    const asked = read(request);
    const date = new Date(clock.now()).toUTCString();
    const page = answerPage(asked);
    if (page) return { ...page, headers: { date, ...page.headers } };
    if (asked.path.startsWith(CONSOLE)) {
      const outcome = isForeign(request.headers) ? foreign : playWith(asked);
      return writing(storage.save) ?? toAnswer(outcome, { date });
    }
    const reply = quirks.turns(ask(asked, { accounts, meters, quirks, clock }));
    const { route, outcome, headers } = reply;
    const { status, about } = outcome;
    log(request, { route, status, ...about, ...(fault !== undefined && { fault }) });
    return writing(storage.save) ?? toAnswer(outcome, { date, ...headers });
  }

  const emulator: Emulator = {
    ...player([...accounts.organizations.keys()][0] ?? ''),
    handle: (request) => handle(request),
    receive: createReceive(faults, { routeOf, handle, lose: log }),
    fail: faults.choose,
    limitOf: meters.limitOf,
    organizations: () => [...accounts.organizations.keys()],
    player,
    guest: () =>
      [...accounts.users.rows()].find(({ organizationId }) => organizationId === null)?.session,
    reset() {
      begin();
      accounts.restore(storage.rewind());
      requests.clear();
      meters.clear();
      faults.restart();
      quirks.restart();
    },
    close() {
      storage.save();
      storage.close();
    },
  };
  const playWith = createConsole(emulator);
  return emulator;
}

function storeBeginning(storage: Storage, accounts: Accounts): void {
  storage.save();
  storage.begin(accounts.rows());
}

/** Returns a function that runs `act` once. If `act` throws, the next call repeats it. */
function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    act();
    done = true;
  };
}

/**
 * Opens the world of an earlier process, or creates a new one. Throws Invalid for an unknown key.
 */
function openAccounts(
  options: EmulatorOptions,
  { storage, behaviour }: { storage: Storage; behaviour: Partial<PlatformBehaviour> },
): Accounts {
  const { clock, random, apiKey, channels = [], seedFile } = options;
  const drawnKey = apiKey ?? `key_live_${letters(random)}${letters(random)}`;
  const accounts = createAccounts(storage, { random, now: () => clock.now(), behaviour });
  const stored = storage.load();
  if (stored.length === 0) arrange(accounts, { apiKey, drawnKey, channels, seedFile });
  else accounts.restore(stored);
  if (accounts.byKey(drawnKey) === undefined && apiKey !== undefined) {
    throw new Invalid('the data file has no such API key: use one of its own, or a new file');
  }
  storage.save();
  return accounts;
}

/** Writes to the storage. Returns the error response if the write fails. */
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

/** Gives access to one organization of the emulator. */
export interface Player {
  readonly organizationId: string;
  /** A key that may read and write. If there is none, this is any usable key. */
  readonly apiKey: string;
  /** Prepares the world before requests arrive. */
  readonly seed: Seed;
  /** Performs the actions of people on the platform. */
  readonly dashboard: Dashboard;
  /** Shows the world and the request log. */
  readonly world: World;
}

/**
 * Returns a function that returns the player of an organization by its id, and throws Invalid for
 * an unknown id.
 */
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
    const usable = [...organization.keys.rows()].filter(
      ({ enabled, revoked }) => enabled && !revoked,
    );
    const best = usable.find((key) => permits(key, 'GET') && permits(key, 'POST'));
    return {
      organizationId,
      apiKey: (best ?? usable[0])?.secret ?? '',
      seed: createSeed(accounts, organization),
      dashboard: createDashboard(organization),
      world: createWorld(organization, { accounts, requests }),
    };
  };
}
