/**
 * Shares one limit among all processes of an organization. The budget requests a handful of permits
 * from Redis at a time, uses them immediately, and reports what the responses showed. Reports are
 * collected briefly and sent with the next request for permits.
 *
 * A local budget of this process learns from the same responses. It decides while Redis is away,
 * with its share divided by the last known number of workers, so that no request waits for Redis to
 * come back.
 *
 * What Redis has may be damaged or forged. A process asks again every minute, however long it is
 * told to wait, and if it was granted nothing for a whole window and an hour, all begin anew. The
 * name of the organization to which a limit belongs comes last.
 */
import { type Allowance, rest } from '../permit-decision.ts';
import { type Budget, CEILING, createBudget, type Ticket } from '../route-budget.ts';
import type { Clock, Random } from '../../../domain/clock.ts';
import type { Reply, Report } from './fleet-budget.ts';
import { openLink, type Link, type OpenLink } from './redis-connection.ts';
import { type BudgetLog, budgetLog } from './budget-log.ts';
import { createHmac } from 'node:crypto';

/** The maximum number of permits requested at once. */
const MOST_AT_ONCE = 16;
/** How long to wait for the reports of further responses. */
const GATHER_MS = 5;
/** Permits older than this are returned instead of used. */
const FRESH_MS = 1250;
/** The longest time after which permits are requested again. */
const LOOK_MS = 60_000;
/** Nothing may be granted for so long, or for a window if that is longer. */
const MOST_DENIED_MS = 3_600_000;
const NEVER = Number.POSITIVE_INFINITY;

interface SharedOptions {
  /** A redis:// or rediss:// URL. */
  url: string;
  /** The name of the organization to which the limits belong; see organizationOf. */
  organization: string;
  /** An id that is unique to this process. */
  worker: string;
  clock: Clock;
  random: Random;
  /** The share of every limit left to other programs, from 0 to 1. */
  reserve?: number;
  /** Called with the reason when Redis is lost, and with undefined when it is restored. */
  notice?(lost: string | undefined): void;
  /** Opens the connection; by default one of its own. */
  openLink?: OpenLink | undefined;
}

export type SharedBudgets = ReturnType<typeof sharedBudgets>;

/** Creates the budgets of all routes. Never throws: Redis may be away from the beginning. */
export function sharedBudgets(options: SharedOptions) {
  const { url, clock, notice = () => undefined } = options;
  const buckets: Bucket[] = [];
  const changed = () => buckets.forEach((bucket) => bucket.changed());
  const open = options.openLink ?? openLink;
  const link = open({ url, clock, notice, changed });
  return {
    budgetOf(route: string, ask: () => void): Budget {
      const bucket = createBucket({ ...options, link, route, ask });
      buckets.push(bucket);
      return bucket.budget;
    },
    /** Sends the last reports and closes the connection. */
    async close(): Promise<void> {
      await Promise.all(buckets.map((bucket) => bucket.close()));
      link.close();
    },
  };
}

type Bucket = ReturnType<typeof createBucket>;

interface Setting extends SharedOptions {
  link: Link;
  route: string;
  ask(): void;
}

/** Permits that were granted and not yet used. */
interface Hand {
  lease: string;
  n: number;
  atMs: number;
}

/** A report whose response arrived at `atMs`. */
interface Landed {
  report: Report;
  atMs: number;
}

interface State extends Setting {
  log: BudgetLog;
  local: Budget;
  hand: Hand | undefined;
  /** The leases of the requests in flight; '' for those that left without one. */
  leases: WeakMap<Ticket, string>;
  flying: number;
  reports: Landed[];
  /** The last known number of waiting requests. */
  waiting: number;
  /** Whether a request for permits is in flight, or will be in a moment. */
  asking: 'no' | 'soon' | 'now';
  askAtMs: number;
  /** Since when nothing is granted; undefined if it was, or nothing is wanted. */
  deniedMs: number | undefined;
  /** How many times Redis had been lost and restored at the last request for permits. */
  times: number;
  told: Reply | undefined;
  /** The last request to Redis. */
  running: Promise<void> | undefined;
  leaving: boolean;
}

function createBucket(setting: Setting) {
  const { organization, route, random, reserve = 0 } = setting;
  // Processes that share a budget must compute in the same way, so other rules need another number.
  const key = `crm-mirror:limit:5:{${organization}:${route}}`;
  const sharers = (): number => state.told?.workers ?? 1;
  const state: State = {
    ...setting,
    log: budgetLog({ link: setting.link, key }),
    local: createBudget({ random, reserve, sharers }),
    hand: undefined,
    leases: new WeakMap(),
    flying: 0,
    reports: [],
    waiting: 0,
    asking: 'no',
    askAtMs: 0,
    deniedMs: undefined,
    times: 0,
    told: undefined,
    running: undefined,
    leaving: false,
  };
  return {
    budget: budgetOver(state),
    changed: () => state.ask(),
    close: async () => {
      await state.running;
      state.leaving = true;
      giveBack(state);
      if (state.told) await step(state, 0);
    },
  };
}

function budgetOver(state: State): Budget {
  const { local, leases } = state;
  const land = (ticket: Ticket, nowMs: number, tell: (lease: string) => Report): void => {
    state.flying -= 1;
    const lease = leases.get(ticket);
    if (lease !== undefined) report(state, { report: tell(lease), atMs: nowMs });
  };
  return {
    decide: (nowMs, waiting) => decide(state, nowMs, waiting),
    ticket(nowMs) {
      const ticket = local.ticket(nowMs);
      state.flying += 1;
      const { hand } = state;
      leases.set(ticket, hand?.lease ?? '');
      if (hand) hand.n -= 1;
      if (hand?.n === 0) state.hand = undefined;
      return ticket;
    },
    answer(ticket, seen, nowMs) {
      local.answer(ticket, seen, nowMs);
      const tripMs = nowMs - ticket.sentMs;
      // After a refusal, none of the granted permits may be used.
      if (seen.refused) giveBack(state);
      land(ticket, nowMs, (lease) => ({ is: 'answer', lease, n: 1, ageMs: 0, tripMs, seen }));
    },
    lose(ticket, nowMs) {
      local.lose(ticket, nowMs);
      land(ticket, nowMs, (lease) => ({ is: 'lost', lease, n: 1 }));
    },
    withdraw(ticket) {
      local.withdraw(ticket);
      land(ticket, state.clock.monotonic(), (lease) => ({ is: 'back', lease, n: 1 }));
    },
    limit: () =>
      state.told && state.link.times() !== undefined ? state.told.limit : local.limit(),
  };
}

function decide(state: State, nowMs: number, waiting: number): Allowance {
  const { link, local, hand } = state;
  state.waiting = waiting;
  if (waiting === 0) state.deniedMs = undefined;
  if (link.times() === undefined) {
    state.hand = undefined;
    const againMs = link.tend();
    const own = local.decide(nowMs, waiting);
    return own.leave > 0 || waiting === 0 ? own : rest(Math.min(own.waitMs, againMs));
  }
  if (hand && waiting > 0 && nowMs - hand.atMs < FRESH_MS)
    return { leave: Math.min(hand.n, waiting), waitMs: 0 };
  if (hand) giveBack(state);
  if (waiting === 0 || state.asking !== 'no') return rest();
  if (nowMs < state.askAtMs) return rest(state.askAtMs - nowMs);
  const own = askLocal(state, nowMs);
  const want = countWanted(state, own);
  if (want > 0) state.running = step(state, want);
  return rest(want > 0 ? NEVER : own?.waitMs);
}

/**
 * Returns the decision of the local budget after Redis was away, which states when to probe.
 * Returns undefined if Redis was not away since the last request for permits.
 */
function askLocal({ link, local, times, waiting }: State, nowMs: number): Allowance | undefined {
  return link.times() === times ? undefined : local.decide(nowMs, waiting);
}

function countWanted({ waiting, flying }: State, own: Allowance | undefined): number {
  return Math.max(0, Math.min(waiting, MOST_AT_ONCE, CEILING - flying, own?.leave ?? NEVER));
}

function giveBack(state: State): void {
  const { hand } = state;
  state.hand = undefined;
  if (!hand) return;
  const { lease, n, atMs } = hand;
  report(state, { report: { is: 'back', lease, n }, atMs });
}

/** Adds a report to those that are sent in the next moment. */
function report(state: State, one: Landed): void {
  if (state.link.times() === undefined) return;
  state.reports.push(one);
  if (state.asking === 'no') soon(state);
}

function soon(state: State): void {
  state.asking = 'soon';
  const go = (): void => {
    const own = askLocal(state, state.clock.monotonic());
    state.running = step(state, countWanted(state, own));
  };
  state.clock.sleep(GATHER_MS).then(go, go);
}

/** Sends the reports and requests permits; then the gate decides again. Never throws. */
async function step(state: State, want: number): Promise<void> {
  const { link, clock, log } = state;
  const times = link.times();
  const away = times !== state.times;
  state.asking = 'now';
  const atMs = clock.monotonic();
  const sent = state.reports.length;
  const mostMs = Math.max(MOST_DENIED_MS, state.local.limit().windowMs ?? 0);
  if (atMs - (state.deniedMs ?? atMs) > mostMs) {
    state.deniedMs = undefined;
    await log.forget();
  }
  const nowMs = clock.monotonic();
  const reports = state.reports.map(({ report, atMs: landedMs }) =>
    report.is === 'answer' ? { ...report, ageMs: Math.max(0, nowMs - landedMs) } : report,
  );
  const { worker, random, reserve = 0, leaving } = state;
  const jitter = random();
  const reply = await log.send({ worker, reports, want, reserve, jitter, away, leaving });
  state.asking = 'no';
  if (reply) {
    state.reports = state.reports.slice(sent);
    if (want > 0) state.times = times ?? state.times;
    if (want > 0) state.deniedMs = reply.n > 0 ? undefined : (state.deniedMs ?? atMs);
    state.told = reply;
    state.askAtMs = clock.monotonic() + Math.min(reply.waitMs, LOOK_MS);
    if (reply.lease !== undefined) {
      giveBack(state);
      state.hand = { lease: reply.lease, n: reply.n, atMs };
      const isRefused = ({ report }: Landed) => report.is === 'answer' && report.seen.refused;
      if (state.reports.some(isRefused)) giveBack(state);
    }
  } else state.reports = [];
  if (state.reports.length > 0) soon(state);
  state.ask();
}

/**
 * Returns the name under which processes share limits. It is the same for all processes that use
 * the same key of the same platform, and reveals neither of them: it is half of the HMAC-SHA-256 of
 * the URL under the API key.
 */
export function organizationOf({ url, apiKey }: { url: string; apiKey: string }): string {
  const text = `crm-mirror budget 1\n${url}`;
  return createHmac('sha256', apiKey).update(text).digest('hex').slice(0, 32);
}
