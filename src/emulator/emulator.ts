import type { Clock, Random } from '../model/clock.ts';
import { Invalid } from '../model/errors.ts';
import type { Answer, Request } from '../model/exchange.ts';
import { admit, forbidden, permits, type Guest } from './access.ts';
import { refuse, timestamp, toAnswer } from './answer.ts';
import { arrange } from './arrange.ts';
import { CONSOLE, createConsole } from './console/console.ts';
import { createFaults } from './fault/faults.ts';
import type { Delivery } from './fault/kinds.ts';
import { createReceive } from './fault/receive.ts';
import { findAlgorithm } from './limit/algorithms.ts';
import { createLimits, limitHeaders, rateLimited, type Route } from './limit/limits.ts';
import { answerPage } from './openapi/pages.ts';
import type { Operation } from './operation/operation.ts';
import { findOperation } from './operation/router.ts';
import { operations } from './operation/table.ts';
import { createPlayers, type Player } from './player.ts';
import type { Quirk, Reply } from './quirk/quirk.ts';
import { createQuirks } from './quirk/quirks.ts';
import { letters } from './random.ts';
import type { SeedFile } from './seed-file.ts';
import { createAccounts, type Accounts } from './store/accounts.ts';
import type { Channel } from './store/contact.ts';
import type { Manner } from './store/manner.ts';
import type { Organization } from './store/organization.ts';
import { remember } from './store/recent.ts';
import { createMemory, type Storage } from './store/storage.ts';
import type { UserRow } from './store/users.ts';
import type { LoggedRequest } from './world.ts';

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
  /** Where the world is kept; in memory when left out. */
  storage?: Storage | undefined;
  /** What is there from the beginning. Not looked at when the storage brings a world. */
  seedFile?: SeedFile | undefined;
}

/** A request with any method at all, so that a wrong one can be refused. */
type AnyRequest = Omit<Request, 'method'> & { method: string };

/** An email platform: nothing happens but what is asked of it. It plays its first organization. */
export interface Emulator extends Player {
  /** Answers one request at once, in JSON but for /docs, and without faults; never throws. */
  handle(request: AnyRequest): Answer;
  /** The same, over a connection on which faults happen. */
  receive(request: AnyRequest): Delivery;
  /** From now on these faults happen, and no others; Invalid when one cannot be read. */
  fail(faults: readonly string[]): void;
  /** The ids of all organizations; the first is its own. */
  organizations(): string[];
  /** Throws Invalid when there is no such organization. */
  player(organizationId: string): Player;
  /** The session of the first user who is a member of no organization, if there is one. */
  guest(): string | undefined;
  /** Back to how the world was when the first request came, with new limits and an empty log. */
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
  const quirks = createQuirks(options.quirks ?? []);
  const accounts = openAccounts(options, { storage, manner: quirks.manner });
  const requests = remember<LoggedRequest>(options.keepRequests ?? 100_000);
  const meters = createMeters(options);
  const faults = createFaults(options.faults ?? [], options.random);
  const player = createPlayers(accounts, requests);
  const begin = once(() => {
    storage.save();
    storage.begin(accounts.rows());
  });

  function handle(request: AnyRequest, fault?: string): Answer {
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
    const { route, outcome, headers } = ask(asked, { accounts, meters, clock, quirks });
    const { status, about } = outcome;
    log(request, { route, status, ...about, ...(fault !== undefined && { fault }) });
    return writing(storage.save) ?? toAnswer(outcome, { date, ...headers });
  }

  function log({ method, path }: AnyRequest, seen: Omit<LoggedRequest, 'at' | 'method' | 'path'>) {
    requests.add({ at: timestamp(clock.now()), method, path, ...seen });
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
  quirks: Required<Quirk>;
}

function ask(asked: Asked, ground: Ground): Reply {
  const { accounts, quirks } = ground;
  const found = findOperation(operations, asked);
  if ('allowed' in found) return quirks.turns(noOperation(asked, found.allowed), undefined);
  const { operation, id } = found;
  const admitted = admit(accounts, operation, asked.headers);
  if ('refusal' in admitted) {
    const reply = { route: operation.route, outcome: admitted.refusal, headers: {} };
    return quirks.turns(reply, undefined);
  }
  const reply = askAs(admitted, { operation, asked: { ...asked, id } }, ground);
  return quirks.turns(reply, admitted.organization);
}

function askAs(
  { organization, key }: Guest,
  { operation, asked }: { operation: Operation; asked: Asked & { id: string } },
  { meters, clock, quirks }: Ground,
): Reply {
  const { route, sends, method } = operation;
  if (key) organization.keys.count(key);
  const now = { epoch: clock.now(), monotonic: clock.monotonic() };
  const taken = meters.of(organization).take(route, now);
  const headers = limitHeaders(taken, { sends, nowMs: now.epoch });
  const { reading } = taken;
  if (!reading.allowed) {
    return { route, outcome: rateLimited(route, headers['retry-after']), headers, reading };
  }
  if (key && !permits(key, method)) {
    return { route, outcome: forbidden(key, operation), headers, reading };
  }
  const question = quirks.rewrites({ ...asked, route });
  const outcome =
    quirks.answers(question, organization) ?? operation.answer(organization, question);
  return { route, outcome, headers, question, reading };
}

/** The world an earlier process left, or a new one. */
function openAccounts(
  options: EmulatorOptions,
  { storage, manner }: { storage: Storage; manner: Partial<Manner> },
): Accounts {
  const { clock, random, apiKey, channels = [], seedFile } = options;
  const drawnKey = apiKey ?? `key_live_${letters(random)}${letters(random)}`;
  const accounts = createAccounts(storage, { random, now: () => clock.now(), manner });
  const stored = storage.load();
  if (stored.length === 0) arrange(accounts, { apiKey, drawnKey, channels, seedFile });
  else accounts.restore(stored);
  if (accounts.byKey(drawnKey) === undefined && apiKey !== undefined) {
    throw new Invalid('the data file has no such API key: use one of its own, or a new file');
  }
  storage.save();
  return accounts;
}

/** Every organization has limits of its own. */
interface Meters {
  of(organization: Organization): ReturnType<typeof createLimits>;
  clear(): void;
}

function createMeters({ limits = [], algorithm }: EmulatorOptions): Meters {
  const create = () => createLimits(limits, findAlgorithm(algorithm));
  // What cannot be read is refused now, and not by the first request.
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

function isGuest({ organizationId }: UserRow): boolean {
  return organizationId === null;
}

/** Does it the first time only; again when it failed. */
function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (!done) act();
    done = true;
  };
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

function read({ method, path, headers, body = '' }: AnyRequest): Asked {
  const mark = path.indexOf('?');
  const end = mark < 0 ? path.length : mark;
  const query = new URLSearchParams(path.slice(end + 1));
  return { method, path: path.slice(0, end), query, headers, body };
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
