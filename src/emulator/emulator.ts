/**
 * The emulator: a strict, local platform. It gives access to each organization of its world, and
 * below handles a request: finds the operation, admits a key or a session, counts the limit and
 * runs it.
 */
import type { Clock, Random } from '../domain/clock.ts';
import { Invalid } from '../domain/errors.ts';
import type { Answer, Request } from '../domain/exchange.ts';
import {
  type ApiOutcome,
  type Asked,
  refuse,
  refuseBriefly,
  timestamp,
  toAnswer,
} from './shared/api-answer.ts';
import { arrange, createSeed, type SeedFile } from './seed/seed-file.ts';
import { CONSOLE, createConsole, foreign, isForeign } from './ui/console.ts';
import { createFaults, type Delivery } from './faults/faults.ts';
import {
  findAlgorithm,
  createMeters,
  limitHeaders,
  type Meters,
  rateLimited,
  type Route,
} from './limits/route-limits.ts';
import { answerPage } from './docs/openapi-document.ts';
import { createQuirks, type Quirk, type Reply } from './quirks/quirks.ts';
import { letters } from './shared/seeded-random.ts';
import {
  type Accounts,
  createAccounts,
  type Organization,
  type PlatformBehaviour,
} from './store/organization.ts';
import type { Channel, KeyRow } from './shared/row-types.ts';
import { createMemory, type Storage } from './store/table.ts';
import {
  createWorld,
  type LoggedRequest,
  type Recent,
  remember,
  createDashboard,
} from './ui/dashboard.ts';
import { decode, findOperation, type Operation } from './api/operation-table.ts';

/** The options of an emulator. Throws Invalid for a limit, quirk or fault of another form. */
export interface EmulatorOptions {
  clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The only source of randomness: the same numbers give the same ids and the same key. */
  random: Random;
  /** The API key; generated from `random` if omitted. */
  apiKey?: string | undefined;
  channels?: readonly Channel[] | undefined;
  /** Limits, such as `contacts.enrol=30/60` or `*=1000/1`. */
  limits?: readonly string[] | undefined;
  /** The algorithm that counts requests against limits; by default fixed windows. */
  algorithm?: string | undefined;
  /** Differences from the specification, such as `no-flip`. */
  quirks?: readonly string[] | undefined;
  /** Faults, such as `500=0.05@contacts.enrol`. */
  faults?: readonly string[] | undefined;
  /** The minimum number of recent entries that the request log keeps. The default is 100,000. */
  keepRequests?: number | undefined;
  storage?: Storage | undefined;
  seedFile?: SeedFile | undefined;
}

/** An email platform that changes on request only. It also plays its first organization. */
export type Emulator = ReturnType<typeof createEmulator>;

/**
 * Creates a local, strict platform with all operations of the specification. A request passes these
 * checks in order: its path and method (404, 405), its key or session (401, 403), the limit of its
 * organization and route (429), the key's permissions (403), and the operation's schemas (400).
 * Then the operation runs. A request with a valid key counts against the limit.
 */
export function createEmulator(options: EmulatorOptions) {
  const { clock, storage = createMemory() } = options;
  // Errors in the options must be reported before anything is stored.
  const quirks = createQuirks(options.quirks ?? []);
  const meters = createMeters(options.limits ?? [], findAlgorithm(options.algorithm));
  const faults = createFaults(options.faults ?? [], options.random);
  const accounts = openAccounts(options, { storage, behaviour: quirks.behaviour });
  const requests = remember<LoggedRequest>(options.keepRequests ?? 100_000);
  const player = createPlayers(accounts, requests);
  let hasBegun = false;
  const begin = (): void => {
    if (hasBegun) return;
    storage.save();
    storage.begin(accounts.rows());
    hasBegun = true;
  };

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

  const emulator = {
    ...player([...accounts.organizations.keys()][0] ?? ''),
    /** Responds at once and without faults, in JSON except for /docs. Never throws. */
    handle: (request: AnyRequest): Answer => handle(request),
    /** Responds to a request over a simulated connection on which faults occur. */
    receive: (request: AnyRequest): Delivery =>
      faults.receive(
        routeOf(request),
        (fault) => handle(request, fault),
        (seen) => log(request, seen),
      ),
    fail: faults.choose,
    limitOf: meters.limitOf,
    organizations: () => [...accounts.organizations.keys()],
    /** Returns a player of another organization. Throws Invalid if there is none with this id. */
    player,
    /** Returns the session of the first user without an organization, if there is one. */
    guest: () =>
      accounts.users.rows().find(({ organizationId }) => organizationId === null)?.session,
    /**
     * Restores the world as it was when the first request arrived. Limits, the request log, the
     * counters of quirks and the random sequence of faults begin again; the chosen faults stay.
     */
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

/** Opens the world of an earlier process, or a new one. Throws Invalid for an unknown key. */
function openAccounts(
  options: EmulatorOptions,
  { storage, behaviour }: { storage: Storage; behaviour: Partial<PlatformBehaviour> },
): Accounts {
  const { clock, random, apiKey, channels = [], seedFile } = options;
  const drawnKey = apiKey ?? `key_live_${letters(random)}${letters(random)}`;
  const accounts = createAccounts(storage, { random, now: () => clock.now(), behaviour });
  const stored = storage.load();
  if (stored.length === 0) arrange(accounts, seedFile, drawnKey, { apiKey, channels });
  else accounts.restore(stored);
  if (accounts.byKey(drawnKey) === undefined && apiKey !== undefined) {
    throw new Invalid('the data file has no such API key: use one of its own, or a new file');
  }
  storage.save();
  return accounts;
}

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

/** Returns a function that gives access to one organization. Throws Invalid for other ids. */
function createPlayers(accounts: Accounts, requests: Recent<LoggedRequest>) {
  return (organizationId: string) => {
    const organization = accounts.organizations.get(organizationId);
    if (organization === undefined) {
      const known = [...accounts.organizations.keys()].join(', ');
      throw new Invalid(`no organization "${organizationId}": use one of ${known}`);
    }
    const usable = organization.keys.rows().filter((key) => key.enabled && !key.revoked);
    const best = usable.find((key) => permits(key, 'GET') && permits(key, 'POST'));
    return {
      organizationId,
      /** A key that may read and write. If there is none, this is any usable key. */
      apiKey: (best ?? usable[0])?.secret ?? '',
      seed: createSeed(accounts, organization),
      dashboard: createDashboard(organization),
      world: createWorld(organization, { accounts, requests }),
    };
  };
}

type AnyRequest = Omit<Request, 'method'> & { method: string };

interface Ground extends Pick<EmulatorOptions, 'clock'> {
  accounts: Accounts;
  meters: Meters;
  quirks: Required<Quirk>;
}

function ask(asked: Asked, { accounts, meters, quirks, clock }: Ground): Reply {
  const found = findOperation(asked);
  if ('allowed' in found) return { route: null, ...refusePath(asked, found.allowed) };
  const { operation, id } = found;
  const { route, method } = operation;
  const admitted = admit(accounts, operation, asked.headers);
  if ('refusal' in admitted) return { route, outcome: admitted.refusal, headers: {} };
  const { organization, key } = admitted;
  if (key) organization.keys.change(key, { requestCount: key.requestCount + 1 });

  const at = { epoch: clock.now(), monotonic: clock.monotonic() };
  const taken = meters.take(organization.id, route, at);
  const headers = limitHeaders(taken, { sends: operation.sends, nowMs: at.epoch });
  const { reading } = taken;
  const known = { route, organization, headers, reading };
  if (!reading.allowed) return { ...known, outcome: rateLimited(route, headers['retry-after']) };
  if (key && !permits(key, method)) return { ...known, outcome: forbidden(key, operation) };

  const question = { ...asked, route, id };
  const outcome =
    quirks.answers(question, organization) ?? operation.answer(organization, question);
  return { ...known, outcome, question };
}

function refusePath({ method, path }: Asked, allowed: readonly string[]) {
  const allow = allowed.join(', ');
  if (allowed.length === 0) {
    const why = `The API has no path ${path}.`;
    const fix = 'Compare the path with the API reference.';
    return { outcome: refuse(404, 'Not found', { why, fix }), headers: {} };
  }
  const why = `${path} does not accept ${method}.`;
  const outcome = refuse(405, 'Method not allowed', { why, fix: `Use ${allow}.` });
  return { outcome, headers: { allow } };
}

function read({ method, path, headers, body = '' }: AnyRequest): Asked {
  const mark = path.indexOf('?');
  const end = mark < 0 ? path.length : mark;
  const query = new URLSearchParams(path.slice(end + 1));
  return { method, path: path.slice(0, end), query, headers, body };
}

/** Returns the route of a request, or undefined if no operation has this method and path. */
export function routeOf(request: AnyRequest): Route | undefined {
  const found = findOperation(read(request));
  return 'operation' in found ? found.operation.route : undefined;
}

/** The organization that a request acts on, and its key; a session has none. */
type Admitted = { organization: Organization; key?: KeyRow } | { refusal: ApiOutcome };

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

function permits({ permissions }: KeyRow, method: string): boolean {
  return permissions.split(',').some((permission) => permission.trim() === neededFor(method));
}

function neededFor(method: string): 'read' | 'write' {
  return method === 'GET' ? 'read' : 'write';
}

function forbidden(key: KeyRow, { method, brief }: Operation): ApiOutcome {
  const message = 'Unauthorized access';
  if (brief) return refuseBriefly(403, message);
  const needed = neededFor(method);
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
    const session = value.join('=').trim();
    const user = accounts.users.bySession(decode(session) ?? session);
    if (user === undefined) continue;
    const organization = accounts.organizations.get(user.organizationId ?? '');
    if (organization !== undefined) return { organization };
    return { refusal: refuseBriefly(403, 'User is not a member of an organization') };
  }
  return undefined;
}
