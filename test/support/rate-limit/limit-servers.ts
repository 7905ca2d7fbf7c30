import {
  findAlgorithm,
  type Limit,
  limitHeaders,
} from '../../../src/emulator/limits/route-limits.ts';
import type { Job } from './limit-scenario.ts';
import type { Budget } from '../../../src/http/rate-limit/route-budget.ts';
import type { Observation } from '../../../src/http/rate-limit-headers.ts';

// One limited route of the platform in virtual time: its own counting, its own headers.

export interface Answered {
  status: number;
  headers: Record<string, string>;
}

export interface Server {
  /** One request that comes at this time, in milliseconds. */
  take(atMs: number): Answered;
  /** From now on; what was used begins anew. */
  change(limit: Limit): void;
}

/** `epochMs`: the server's time of day at 0. */
export function createServer(
  algorithm: string,
  { limit, epochMs }: { limit: Limit; epochMs: number },
): Server {
  let now = limit;
  let meter = findAlgorithm(algorithm)(now);
  return {
    take(atMs) {
      const reading = meter({ monotonic: atMs, epoch: epochMs + atMs });
      const nowMs = epochMs + atMs;
      const headers = limitHeaders({ limit: now, reading }, { sends: false, nowMs });
      const date = new Date(nowMs).toUTCString();
      return { status: reading.allowed ? 200 : 429, headers: { ...headers, date } };
    },
    change(other) {
      now = other;
      meter = findAlgorithm(algorithm)(other);
    },
  };
}

/**
 * The least time in which `requests` can pass, in milliseconds: without latency, each sent in the
 * instant in which it is allowed.
 */
export function leastMs(
  algorithm: string,
  job: { limit: Limit; epochMs: number; requests: number },
): number {
  const meter = findAlgorithm(algorithm)(job.limit);
  let atMs = 0;
  for (let done = 0; done < job.requests;) {
    const reading = meter({ monotonic: atMs, epoch: job.epochMs + atMs });
    if (reading.allowed) done += 1;
    // A little later than exactly: sums of fractions are not exact.
    else atMs += Math.max(0.01, reading.resetMs);
  }
  return atMs;
}

// What servers, networks and machines do wrong, by name.

type Headers = Record<string, string>;
type Part = Partial<Pick<Job, 'fault' | 'latencyMs' | 'used'>>;

const told = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-window'];
const garbage = ['', '-1', 'x', '1e3', 'NaN', '1.5.2', '99999999999999999999', ' '];

const headers = (change: (headers: Headers, nth: number) => Headers): Part => {
  return { fault: { headers: change } };
};
const without = (...names: string[]): Part =>
  headers((all) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name))),
  );
const malformed = (...names: string[]): Part =>
  headers((all, nth) => {
    const text = garbage[nth % garbage.length]!;
    const changed = names.filter((name) => name in all).map((name) => [name, text]);
    return { ...all, ...Object.fromEntries(changed) };
  });
const retryAfter = (text: (headers: Headers) => string): Part =>
  headers((all) => ('retry-after' in all ? { ...all, 'retry-after': text(all) } : all));

const change = (requests: number, windowSeconds: number): Part => {
  return { fault: { change: { atMs: 100_000, limit: { requests, windowSeconds } } } };
};

/** Under a limit of 60 requests per 60 s. */
export const faults: Record<string, Part> = {
  'no headers': without(...told),
  'nor Retry-After': without(...told, 'retry-after'),
  'no Limit': without('x-ratelimit-limit'),
  'no Remaining': without('x-ratelimit-remaining'),
  'no Window': without('x-ratelimit-window'),
  'no Retry-After': without('retry-after'),
  'no Date': without('date'),
  'bad Limit': malformed('x-ratelimit-limit'),
  'bad Remaining': malformed('x-ratelimit-remaining'),
  'bad Window': malformed('x-ratelimit-window'),
  'bad Retry-After': malformed('retry-after'),
  'bad Date': malformed('date'),
  'now and then bad': headers((all, nth) =>
    nth % 7 === 0 ? malformed(...told, 'retry-after', 'date').fault!.headers!(all, nth) : all,
  ),
  'Remaining > Limit': headers((all) => {
    return { ...all, 'x-ratelimit-remaining': `1${all['x-ratelimit-remaining']}00` };
  }),
  'Retry-After 0': retryAfter(() => '0'),
  'Retry-After a date': retryAfter((all) => {
    const waitMs = Number(all['retry-after']) * 1000;
    return new Date(Date.parse(all['date']!) + waitMs).toUTCString();
  }),
  'limit 200/60 s': change(200, 60),
  'limit 20/60 s': change(20, 60),
  'limit 60/300 s': change(60, 300),
  'limit 60/10 s': change(60, 10),
  'half was used': { used: 30 },
  'all was used': { used: 60 },
  reordered: { latencyMs: [0, 500] },
  'lost 2 %': { fault: { lost: 0.02 } },
  'lost 20 %': { fault: { lost: 0.2 } },
  'asleep, waiting': { fault: { sleep: { atMs: 70_000, forMs: 45_000 } } },
  'asleep, sending': { fault: { sleep: { atMs: 60, forMs: 30_000 } } },
  'clock asleep, too': {
    fault: { sleep: { atMs: 70_000, forMs: 45_000 }, leap: { atMs: 115_000, byMs: -45_000 } },
  },
  'clock leaps': { fault: { leap: { atMs: 100_000, byMs: 45_000 } } },
};

// Holds a budget to its promises at every step. Knows only what it is told: when
// requests left, and what their answers said.

interface Terms {
  /** In flight at most. */
  ceiling?: number;
  /** A promise is broken: throws. */
  fail(why: string): never;
}

/** From a 429 until the clean answer to a request that left after it. */
interface Block {
  /** Before this nothing may leave, by the wait asked for alone. */
  askedMs: number;
  /** …and by what the budget made of it. */
  untilMs: number;
  /** The first request that leaves after it. */
  from: number;
}

const UNKNOWN_WINDOW_MS = 60_000;
const ROUNDING_MS = 1e-6;

type Held = ReturnType<Budget['ticket']>;

export function watch(budget: Budget, { ceiling = 32, fail }: Terms): Budget {
  /** In flight, each with its number. */
  const flying = new Map<Held, number>();
  let departed = 0;
  let heard = false;
  let block: Block | undefined;
  let longest = { windowMs: 0, retryAfterMs: 1000 };

  const land = (ticket: Held): number => {
    const number = flying.get(ticket) ?? fail('one request came back twice');
    flying.delete(ticket);
    return number;
  };
  /** With half a second for what is told in whole ones, and 2 % or 50 ms of jitter. */
  const mostMs = (): number => {
    const { windowMs: guessed = 0 } = budget.limit();
    const windowMs = longest.windowMs || Math.max(guessed, UNKNOWN_WINDOW_MS);
    return Math.max(longest.retryAfterMs, windowMs) + 500 + Math.max(50, 0.02 * windowMs);
  };
  const refuse = (number: number, seen: Observation, nowMs: number): void => {
    const isNew = !block || number >= block.from;
    const askedMs = Math.max(block?.askedMs ?? 0, nowMs + (seen.retryAfterMs || 1000));
    const from = isNew || !block ? departed : block.from;
    block = { untilMs: block?.untilMs ?? 0, askedMs, from };
  };

  return {
    ...budget,
    decide(nowMs, waiting) {
      const decision = budget.decide(nowMs, waiting);
      const { leave, waitMs } = decision;
      if (leave > waiting) fail(`${leave} may leave, and ${waiting} wait`);
      if (leave > 0 || waiting === 0) return decision;
      const isTimed = waitMs !== Number.POSITIVE_INFINITY;
      if (!isTimed && flying.size === 0) fail('nothing in flight, and no time to ask again');
      if (waitMs <= 0) fail('a wait of no time');
      if (isTimed && waitMs > mostMs()) fail(`a wait of ${waitMs} ms, above ${mostMs()}`);
      if (block && isTimed) {
        if (nowMs + waitMs < block.untilMs - ROUNDING_MS) fail('the block moved earlier');
        block.untilMs = nowMs + waitMs;
      }
      return decision;
    },
    ticket(nowMs) {
      const ticket = budget.ticket(nowMs);
      flying.set(ticket, departed);
      departed += 1;
      const { from = 0, askedMs = 0 } = block ?? {};
      if (nowMs < askedMs) fail(`sent ${askedMs - nowMs} ms before the wait asked for was over`);
      if (flying.size > ceiling) fail(`${flying.size} in flight, above ${ceiling}`);
      if (!heard && flying.size > 1) fail('two in flight, and nothing is known');
      const probes = block ? [...flying.values()].filter((number) => number >= from).length : 0;
      if (probes > 1) fail('two in flight after a block');
      return ticket;
    },
    answer(ticket, seen, nowMs) {
      const number = land(ticket);
      heard = true;
      const { windowMs = 0, retryAfterMs = 0 } = seen;
      longest = {
        windowMs: Math.max(longest.windowMs, windowMs),
        retryAfterMs: Math.max(longest.retryAfterMs, retryAfterMs),
      };
      if (seen.refused) refuse(number, seen, nowMs);
      else if (block && number >= block.from) block = undefined;
      budget.answer(ticket, seen, nowMs);
    },
    lose(ticket, nowMs) {
      land(ticket);
      budget.lose(ticket, nowMs);
    },
    withdraw(ticket) {
      land(ticket);
      budget.withdraw(ticket);
    },
  };
}
