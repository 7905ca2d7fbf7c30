/** The budget that decides where Redis is away: one of several that do not see each other. */
import { expect, test } from 'vitest';
import { createBudget } from '../../src/http/rate-limit/route-budget.ts';
import { observe } from '../../src/http/rate-limit-headers.ts';
import type { Link } from '../../src/http/rate-limit/shared/redis-connection.ts';
import { sharedBudgets } from '../../src/http/rate-limit/shared/shared-budget.ts';
import { virtualClock } from '../support/waiting.ts';

const shows = (remaining: number) =>
  observe(
    200,
    {
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': String(remaining),
      'x-ratelimit-window': '60',
    },
    0,
  );

/** So many answers came, one after the other; then this many may be in flight. */
function after(sharers: (() => number) | undefined, answers: number): number {
  const budget = createBudget({ random: () => 0, ...(sharers && { sharers }) });
  for (let at = 1; at <= answers; at += 1) {
    budget.answer(budget.ticket(at), shows(100 - at), at);
  }
  return budget.decide(answers, 100).leave;
}

test('the share is divided by the number of workers', () => {
  expect(after(undefined, 30)).toBe(31);
  // 70 are left, and one is held back: half of a share of 69.
  expect([1, 2, 4, 8].map((workers) => after(() => workers, 30))).toEqual([31, 17, 8, 4]);
});

test('a fallback budget assumes other clients for good: one probe after a window', () => {
  const budget = createBudget({ random: () => 0, sharers: () => 2 });
  budget.answer(budget.ticket(0), shows(0), 10);
  const { leave, waitMs } = budget.decide(20, 5);
  expect(leave).toBe(0);
  expect(waitMs).toBeGreaterThan(59_900);
  expect(budget.decide(20 + waitMs, 5)).toEqual({ leave: 1, waitMs: 0 });
});

test('a Redis that is lost is not asked for the reports that waited for it', async () => {
  const clock = virtualClock();
  const lost = { isLost: false, asked: 0 };
  const link: Link = {
    run: async () => {
      lost.asked += 1;
      await clock.sleep(1);
      return undefined;
    },
    times: () => (lost.isLost ? undefined : 0),
    tend: () => 250,
    close: () => (lost.isLost = true),
  };
  const own = { url: '', organization: 'all', worker: 'a', clock, random: () => 0 };
  const { budgetOf, close } = sharedBudgets({ ...own, openLink: () => link });
  const budget = budgetOf('route', () => undefined);
  budget.answer(budget.ticket(0), shows(99), 1);
  lost.isLost = true;
  await clock.advance(1000);
  expect(lost.asked).toBeLessThan(3);
  await close();
  const asked = lost.asked;
  await clock.advance(1000);
  expect(lost.asked).toBe(asked);
});
