/** The budget of one route for one process, without clock, timer or queue: the gate waits. */
import type { Random } from '../../domain/clock.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import type { Observation } from '../rate-limit-headers.ts';
import { type Lease, nothingLearned, known, depart, land } from './learned-limits.ts';
import { learn, miss } from './limit-learning.ts';
import { type Allowance, decide, rest } from './permit-decision.ts';

/** The maximum number of requests of one process in flight on one route. */
export const CEILING = 32;
const NEVER = Number.POSITIVE_INFINITY;

/** Taken when a request leaves, returned with its response. */
export type Ticket = Lease;

/** Manages the budget of one route. Times are monotonic milliseconds. */
export interface Budget {
  decide(nowMs: number, waiting: number): Allowance;
  ticket(nowMs: number): Ticket;
  answer(ticket: Ticket, seen: Observation, nowMs: number): void;
  /** Records that a request left and no response arrived. */
  lose(ticket: Ticket, nowMs: number): void;
  /** Records that a request did not leave after all. */
  withdraw(ticket: Ticket): void;
  limit(): RouteLimit;
}

export interface BudgetOptions {
  random: Random;
  reserve?: number;
  ceiling?: number;
  /** Returns how many processes share the limit unseen; if set, others are always assumed. */
  sharers?: () => number;
}

/** Creates the budget of one process, without any knowledge. */
export function createBudget(options: BudgetOptions): Budget {
  const { random, reserve = 0, ceiling = CEILING, sharers } = options;
  const memory = nothingLearned(ceiling, reserve);
  if (sharers) memory.companyUntilMs = NEVER;
  return {
    decide(nowMs, waiting) {
      if (waiting === 0) return rest();
      const { leave, waitMs } = decide(memory, { nowMs, waiting, sharers: sharers?.() ?? 1 });
      return { leave: Math.min(leave, waiting), waitMs };
    },
    ticket: (nowMs) => depart(memory, { id: `${memory.sent + 1}`, n: 1, sentMs: nowMs }),
    answer(ticket, seen, nowMs) {
      land(memory, ticket.id, 1);
      learn(memory, { lease: ticket, sentMs: ticket.sentMs, seen, nowMs, random });
    },
    lose(ticket, nowMs) {
      land(memory, ticket.id, 1);
      miss(memory, ticket.sentMs, nowMs, 1);
    },
    withdraw: (ticket) => void land(memory, ticket.id, 1),
    limit: () => known(memory),
  };
}
