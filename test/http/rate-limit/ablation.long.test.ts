/** Without what a budget holds back, the same jobs cost more: these tests measure something. */
import { describe, expect, test } from 'vitest';
import { createBudget } from '../../../src/http/rate-limit/route-budget.ts';
import { measure } from '../../support/rate-limit/limit-scenario.ts';

/** Sends at once whatever is left: no taper, no sensors, no slow start. */
const greedy: typeof createBudget = (options) => {
  const budget = createBudget(options);
  let flying = 0;
  return {
    ...budget,
    decide(nowMs, waiting) {
      const decision = budget.decide(nowMs, waiting);
      // Blocked, nothing counts as left.
      const most = Math.min((budget.limit().left ?? 0) - flying, 32 - flying, waiting);
      return most > decision.leave ? { leave: most, waitMs: 0 } : decision;
    },
    ticket(nowMs) {
      flying += 1;
      return budget.ticket(nowMs);
    },
    answer(ticket, seen, nowMs) {
      flying -= 1;
      budget.answer(ticket, seen, nowMs);
    },
    lose(ticket, nowMs) {
      flying -= 1;
      budget.lose(ticket, nowMs);
    },
    withdraw(ticket) {
      flying -= 1;
      budget.withdraw(ticket);
    },
  };
};

const fast = { limit: { requests: 200, windowSeconds: 2 }, requests: 1950 };
const slow = { limit: { requests: 100, windowSeconds: 60 }, requests: 980 };

describe.each(['fixed', 'aligned', 'sliding-log', 'sliding-counter', 'gcra'])('%s', (algorithm) => {
  test.each([
    ['200 per 2 s', fast],
    ['100 per 60 s', slow],
  ])('two processes, %s: without the taper many more are refused', (_, job) => {
    const ours = measure({ ...job, algorithm, clients: 2 });
    const theirs = measure({ ...job, algorithm, clients: 2, make: greedy });
    expect(ours.refused).toBeLessThan(1);
    expect(theirs.refused).toBeGreaterThan(6);
  });
});

test.each([
  ['aligned', 1.05],
  ['gcra', 1.02],
  ['sliding-counter', 1.2],
])('alone, %s, windows of a minute: without sensors it takes %d', (algorithm, least) => {
  const ours = measure({ ...slow, algorithm });
  const theirs = measure({ ...slow, algorithm, make: greedy });
  expect(theirs.ratio).toBeGreaterThan(least);
  expect(ours.ratio).toBeLessThan(least - 0.015);
});
