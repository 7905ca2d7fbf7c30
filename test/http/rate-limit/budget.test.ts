import { describe, expect, test } from 'vitest';
import type { Budget } from '../../../src/http/rate-limit/route-budget.ts';
import { TRIP_MS, budget, leaves, left, lone, waits } from '../../support/http/test-server.ts';

const NEVER = Number.POSITIVE_INFINITY;
const MANY = 1000;

/** Requests on their own, answered in the same moment: `remaining` counts down to this. */
function down(
  made: Budget,
  { from = 59, to, nowMs }: { from?: number; to: number; nowMs: number },
) {
  for (let remaining = from; remaining >= to; remaining -= 1) lone(made, left(remaining), nowMs);
}

test('an idle budget sends nothing and names no time to ask again', () => {
  expect(budget().decide(0, 0)).toEqual({ leave: 0, waitMs: NEVER });
});

describe('an unknown budget', () => {
  test('sends one request until the first answer', () => {
    const made = budget();
    expect(made.decide(0, MANY)).toEqual({ leave: 1, waitMs: 0 });
    const first = made.ticket(0);
    expect(made.decide(30_000, MANY)).toEqual({ leave: 0, waitMs: NEVER });
    made.answer(first, left(59), 30_000);
    expect(leaves(made, 30_000)).toBe(2);
  });

  test('replaces a request that was not sent, or whose answer was lost', () => {
    const made = budget();
    made.withdraw(made.ticket(0));
    expect(leaves(made, 0)).toBe(1);
    made.lose(made.ticket(0), 10_000);
    expect(leaves(made, 10_000)).toBe(1);
    made.ticket(10_000);
    expect(leaves(made, 10_000)).toBe(0);
  });
});

describe('a known budget, alone', () => {
  test('starts slowly: two, and one more with each success, up to the ceiling', () => {
    const made = budget({ ceiling: 5 });
    const seen: number[] = [];
    for (let remaining = 59; remaining > 53; remaining -= 1) {
      lone(made, left(remaining), 0);
      seen.push(leaves(made, 0));
    }
    expect(seen).toEqual([2, 3, 4, 5, 5, 5]);
  });

  test('subtracts requests in flight, and sends no more than wait', () => {
    const made = budget();
    down(made, { to: 50, nowMs: 0 });
    expect(leaves(made, 0)).toBe(11);
    made.ticket(0);
    expect(leaves(made, 0)).toBe(10);
    expect(leaves(made, 0, 3)).toBe(3);
  });

  test('lets all that is left be in flight', () => {
    const made = budget();
    down(made, { to: 6, nowMs: 0 });
    expect(leaves(made, 0, 6)).toBe(6);
  });

  test('waits for a window after the oldest answer, less three quarters of a trip', () => {
    const made = budget();
    down(made, { to: 30, nowMs: 1000 });
    down(made, { from: 29, to: 0, nowMs: 5000 });
    expect(made.decide(5000, MANY)).toEqual({ leave: 0, waitMs: 56_000 - 0.75 * TRIP_MS + 2 });
    expect(leaves(made, 61_000)).toBeGreaterThan(10);
  });

  test('starts slowly again when the server begins a new window', () => {
    const made = budget();
    down(made, { to: 10, nowMs: 1000 });
    expect(leaves(made, 1000)).toBeGreaterThan(8);
    lone(made, left(59), 3000);
    expect(made.limit().left).toBe(59);
    expect(leaves(made, 3000)).toBe(2);
  });
});

describe('answers out of order', () => {
  test('raise the budget only when their request was sent after the mark', () => {
    const made = budget();
    lone(made, left(40), 0);
    const early = made.ticket(0);
    const late = made.ticket(0);
    made.answer(late, left(8), 100);
    made.answer(early, left(29), 200);
    expect(made.limit().left).toBe(8);
    lone(made, left(20), 300);
    expect(made.limit().left).toBe(20);
  });

  test('may lower the budget when their request was sent before', () => {
    const made = budget();
    const [early, late] = [made.ticket(0), made.ticket(0)];
    made.answer(late, left(30), 100);
    made.answer(early, left(12), 200);
    expect(made.limit().left).toBe(12);
  });

  test('tell nothing beyond what was sent while their request was in flight', () => {
    const made = budget();
    lone(made, left(50), 0);
    const old = made.ticket(0);
    lone(made, left(5), 100);
    const young = made.ticket(100);
    made.answer(old, left(7), 200);
    expect(made.limit().left).toBe(5);
    made.answer(young, left(9), 300);
    expect(made.limit().left).toBe(7);
  });
});

describe('units used before the first answer', () => {
  test('count for a window, in which other clients are assumed', () => {
    const made = budget();
    lone(made, left(9), 0);
    expect(leaves(made, 0, 9)).toBeLessThan(9);
    down(made, { from: 8, to: 0, nowMs: 1000 });
    expect(made.decide(1000, MANY)).toEqual({ leave: 0, waitMs: 59_000 - 0.75 * TRIP_MS + 2 });
    expect(leaves(made, 60_100)).toBeGreaterThan(1);
  });
});

describe('a budget with other clients', () => {
  /** 31 of ours and 9 of others are used. */
  function met(): Budget {
    const made = budget();
    down(made, { to: 30, nowMs: 1000 });
    lone(made, left(20), 2000);
    return made;
  }

  test('takes half of its share, one unit apart, when less is left than we explain', () => {
    const made = met();
    // Of ten that are gone one is ours, and one may be rounding.
    expect(made.limit().others).toBe(8 / 60);
    expect(leaves(made, 2000)).toBe(Math.floor((19 * (31 / 40)) / 2));
  });

  test('does not share what was used before the first answer', () => {
    const made = budget();
    lone(made, left(1), 1000);
    expect(made.limit().others).toBe(0);
  });

  test('remembers at once however much was used before', () => {
    const made = budget();
    lone(made, { ...left(0), limit: 2 ** 50 }, 1000);
    expect(made.limit()).toMatchObject({ limit: 2 ** 50, left: 0, others: 0 });
  });

  test('leaves the last unit, then waits a window and sends one request', () => {
    const made = met();
    lone(made, left(1), 3000);
    expect(made.decide(3000, MANY)).toEqual({ leave: 0, waitMs: 58_000 - 0.75 * TRIP_MS + 2 });
    expect(made.decide(61_000, MANY)).toEqual({ leave: 1, waitMs: 0 });
    made.ticket(61_000);
    // Should it hang: for a window and a trip.
    expect(made.decide(61_000, MANY)).toEqual({ leave: 0, waitMs: 60_000 + TRIP_MS });
  });

  test('lasts for ten windows', () => {
    const made = met();
    down(made, { to: 40, nowMs: 601_000 });
    expect(leaves(made, 601_999)).toBe(19);
    expect(leaves(made, 602_001)).toBeGreaterThan(19);
  });

  test('is not assumed while our own requests are still on their way', () => {
    const made = budget();
    lone(made, left(59), 0);
    const flying = Array.from({ length: 10 }, () => made.ticket(0));
    made.answer(flying[9]!, left(49), 100);
    expect(leaves(made, 100, 49)).toBe(0);
    for (const [i, ticket] of flying.slice(0, 9).entries()) made.answer(ticket, left(58 - i), 200);
    expect(leaves(made, 200, 49)).toBe(12);
    expect(made.limit().others).toBe(0);
  });
});

describe('sensors: about 2 % of the limit', () => {
  const spent = (limit: number) => {
    const made = budget();
    const more = { limit };
    for (let used = 1; used <= limit; used += 1) {
      if (leaves(made, 1000) === 0) return limit - used + 1;
      lone(made, left(limit - used, more), 1000);
    }
    return 0;
  };

  test.each([
    [7, 0],
    [8, 1],
    [60, 1],
    [100, 2],
    [200, 4],
    [900, 4],
  ])('are held back: for a limit of %i, %i', (limit, held) => {
    expect(spent(limit)).toBe(held);
  });

  test('are not held back when the remaining requests fit', () => {
    const made = budget();
    down(made, { to: 1, nowMs: 1000 });
    expect(leaves(made, 1000, 2)).toBe(0);
    expect(leaves(made, 1000, 1)).toBe(1);
  });

  test('are spent evenly over the idle time', () => {
    const made = budget();
    for (let remaining = 99; remaining >= 2; remaining -= 1) {
      lone(made, left(remaining, { limit: 100 }), 1000);
    }
    expect(waits(made, 1000)).toBeCloseTo((60_000 - 0.75 * TRIP_MS + 2) / 3, 5);
  });

  test('keep the last unit when the server’s clock may begin a window', () => {
    const made = budget();
    const dateMs = Date.UTC(2026, 0, 1, 0, 0, 20);
    down(made, { to: 2, nowMs: 1000 });
    lone(made, left(1, { dateMs }), 1000);
    expect(waits(made, 1000)).toBe(40_000);
  });
});

describe('a trickle of returning units', () => {
  test('keeps what is left just above zero', () => {
    const made = budget();
    down(made, { to: 0, nowMs: 1000 });
    lone(made, left(4), 6040);
    expect(leaves(made, 6040)).toBe(3);
    lone(made, left(1), 6040);
    expect(made.decide(6040, MANY)).toEqual({ leave: 0, waitMs: 1002 });
  });

  test('ends when nothing came back in time', () => {
    const made = budget();
    down(made, { to: 0, nowMs: 1000 });
    lone(made, left(1), 3040);
    expect(waits(made, 3040)).toBe(1002);
    lone(made, left(0), 6040);
    expect(waits(made, 6040)).toBeGreaterThan(50_000);
  });
});
