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
import { createMeters } from './limits/route-limits.ts';
import { answerPage } from './docs/reference-page.ts';
import { createQuirks } from './quirks/quirks.ts';
import { letters } from './shared/seeded-random.ts';
import type { SeedFile } from './seed/seed-file.ts';
import { type Accounts, createAccounts } from './store/accounts.ts';
import type { Channel, UserRow } from './shared/row-types.ts';
import type { Organization, PlatformBehaviour } from './store/organization.ts';
import { type Recent, remember } from './store/recent-entries.ts';
import { createMemory, type Storage } from './store/storage.ts';
import { createWorld, type LoggedRequest, type World } from './ui/emulated-world.ts';
import { createDashboard, type Dashboard } from './ui/dashboard.ts';
import { createSeed, type Seed } from './seed/seed-records.ts';

/**
 * The options of an emulator. Creating it throws Invalid for a limit, quirk or fault that cannot be
 * read.
 */
export interface EmulatorOptions {
  clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The only source of chance: the same numbers give the same ids and the same key. */
  random: Random;
  /** Drawn from `random` when left out. */
  apiKey?: string | undefined;
  channels?: readonly Channel[] | undefined;
  /** Limits such as `contacts.enrol=30/60` or `*=1000/1`. */
  limits?: readonly string[] | undefined;
  /** The name of the algorithm that counts limits; fixed windows when left out. */
  algorithm?: string | undefined;
  /** Differences from the specification, such as `no-flip`. */
  quirks?: readonly string[] | undefined;
  /** Faults such as `500=0.05@contacts.enrol`. */
  faults?: readonly string[] | undefined;
  /** The request log keeps at least this many of the newest entries; default 100,000. */
  keepRequests?: number | undefined;
  /** The storage of the world; memory when left out. */
  storage?: Storage | undefined;
  /** The first world. Ignored if the storage holds a world. */
  seedFile?: SeedFile | undefined;
}

/**
 * An email platform on which nothing happens but what is asked of it. Its own functions act on its
 * first organization.
 */
export interface Emulator extends Player {
  /** Answers a request at once, without faults; in JSON except for /docs. Never throws. */
  handle(request: AnyRequest): Answer;
  /** Answers a request over a connection on which faults happen. */
  receive(request: AnyRequest): Delivery;
  /** Replaces the faults that happen. Throws Invalid if one cannot be read. */
  fail(faults: readonly string[]): void;
  /** Returns the ids of all organizations; the first is the emulator's own. */
  organizations(): string[];
  /** Acts on another organization. Throws Invalid if there is none with this id. */
  player(organizationId: string): Player;
  /** Returns the session of the first user who is a member of no organization; undefined: none. */
  guest(): string | undefined;
  /**
   * Returns to the world as it was when the first request came. Limits, the request log, the counts
   * of quirks and the chance of faults begin anew; the chosen faults stay.
   */
  reset(): void;
  /** Writes what is not yet written, and closes the storage. */
  close(): void;
}

/**
 * Creates a local, strict platform with all operations of the specification. A request passes, in
 * this order: its path and method (404, 405), its key or session (401, 403), the limit of its
 * organization and route (429), the key's permissions (403), the operation's schemas (400), the
 * operation. A request with a valid key counts against the limit.
 */
export function createEmulator(options: EmulatorOptions): Emulator {
  const { clock, storage = createMemory() } = options;
  // Mistakes in the options are refused before anything is stored.
  const quirks = createQuirks(options.quirks ?? []);
  const meters = createMeters(options.limits ?? [], findAlgorithm(options.algorithm));
  const faults = createFaults(options.faults ?? [], options.random);
  const accounts = openAccounts(options, { storage, behaviour: quirks.behaviour });
  const requests = remember<LoggedRequest>(options.keepRequests ?? 100_000);
  const player = createPlayers(accounts, requests);
  const begin = once(() => {
    storage.save();
    storage.begin(accounts.rows());
  });

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
    organizations: () => [...accounts.organizations.keys()],
    player,
    guest: () => [...accounts.users.rows()].find(isGuest)?.session,
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

/** Returns a function that acts once; an act that throws is repeated by the next call. */
function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    act();
    done = true;
  };
}

/** Opens the world of an earlier process, or makes a new one. Throws Invalid for an unknown key. */
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

function isGuest({ organizationId }: UserRow): boolean {
  return organizationId === null;
}

/** Writes to the storage; returns the refusal if that fails. */
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

/** One organization, as a player of the emulator acts on it. */
export interface Player {
  readonly organizationId: string;
  /** A key that may read and write; if there is none, any usable key. */
  readonly apiKey: string;
  /** Prepares the world before requests come. */
  readonly seed: Seed;
  /** Acts as the people on the platform. */
  readonly dashboard: Dashboard;
  /** Shows the world and the request log. */
  readonly world: World;
}

/**
 * Returns a function that gives the player of an organization by id; it throws Invalid for an
 * unknown id.
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
