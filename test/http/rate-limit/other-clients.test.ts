/** What a budget says of other programs: `status` shows it, and forecasts go by it. */
import { describe, expect, test } from 'vitest';
import { algorithms } from '../../../src/emulator/limits/route-limits.ts';
import { sayUsage } from '../../../src/domain/route-limit.ts';
import { createBudget } from '../../../src/http/rate-limit/route-budget.ts';
import { play, type Job } from '../../support/rate-limit/limit-scenario.ts';

/** The share of others, as it was said on average once two windows were used up. */
function said(job: Pick<Job, 'algorithm' | 'foreign' | 'reserve'>): number {
  const shares: number[] = [];
  const limit = { requests: 200, windowSeconds: 2 };
  const make: typeof createBudget = (options) => {
    const budget = createBudget(options);
    return {
      ...budget,
      answer(...answered) {
        budget.answer(...answered);
        shares.push(budget.limit().others);
      },
    };
  };
  play({ ...job, limit, requests: 1950, seed: 3, make });
  const late = shares.slice(2 * limit.requests);
  return late.reduce((sum, share) => sum + share, 0) / late.length;
}

describe.each(algorithms)('$name', ({ name: algorithm }) => {
  test('alone, next to nothing is attributed to others', () => {
    expect(said({ algorithm })).toBeLessThan(0.02);
  });

  test('a client that takes 30 % is never overestimated, and hardly underestimated', () => {
    const share = said({ algorithm, foreign: 0.3 });
    expect(share).toBeLessThan(0.32);
    // Under a window that stands, it takes the most of its share after ours was used up.
    expect(share).toBeGreaterThan(0.08);
  });

  test('with half reserved, the share is still one of the whole limit', () => {
    const share = said({ algorithm, foreign: 0.3, reserve: 0.5 });
    expect(share).toBeLessThan(0.32);
  });
});

test.each([
  { limit: 30, remaining: 3, reserve: 0.1, says: '27 of 30 (90 %), 3 left to others' },
  { limit: 600, remaining: 598, reserve: 0.1, says: '2 of 600 (0 %), 60 left to others' },
  { limit: 600, remaining: 598, reserve: 0, says: '2 of 600 (0 %)' },
])('the reserve does not count as used: $says', ({ limit, remaining, reserve, says }) => {
  const budget = createBudget({ random: () => 0.5, reserve });
  const seen = { refused: false, limit, remaining, windowMs: 60_000 };
  budget.answer(budget.ticket(0), seen, 10);
  expect(sayUsage(budget.limit(), reserve)).toBe(says);
  expect(sayUsage({ ...budget.limit(), left: undefined }, reserve)).toBeUndefined();
});
