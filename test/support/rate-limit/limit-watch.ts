/**
 * Holds a budget to its promises at every step. Knows only what it is told: when
 * requests left, and what their answers said.
 */
import type { Budget } from '../../../src/rate-limit/route-budget.ts';
import type { Observation } from '../../../src/http/rate-limit-headers.ts';

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
