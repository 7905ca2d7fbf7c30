import { describe, expect, test } from 'vitest';
import type { Budget } from '../../../src/http/rate-limit/route-budget.ts';
import type { Observation } from '../../../src/http/rate-limit-headers.ts';
import { budget, leaves, left, lone, waits } from '../../support/http/test-server.ts';

const NEVER = Number.POSITIVE_INFINITY;

const refusal = (retryAfterMs?: number, more: Partial<Observation> = {}): Observation =>
  left(0, { refused: true, retryAfterMs, ...more });

/** Nothing is said but how long to wait. */
const silent = { limit: undefined, windowMs: undefined, remaining: undefined };
const clean = left(undefined, silent);

describe('a blocked budget', () => {
  const rows: [string, number | undefined, number][] = [
    ['as long as asked, and half a second: it was told in whole ones', 3000, 3500],
    ['longer than the window, when asked', 90_000, 90_500],
    ['two windows, when asked for a day: then it looks whether that is over', 86_400_000, 121_500],
    ['a second, when asked for none', 0, 1500],
    ['a second, when nothing is asked', undefined, 1500],
  ];
  test.each(rows)('%s', (_, retryAfterMs, waitMs) => {
    const made = budget();
    lone(made, refusal(retryAfterMs), 0);
    expect(made.decide(0, 9)).toEqual({ leave: 0, waitMs });
    expect(made.decide(waitMs - 1, 9)).toEqual({ leave: 0, waitMs: 1 });
    expect(made.decide(waitMs, 9)).toEqual({ leave: 1, waitMs: 0 });
  });

  test.each([
    ['2 % of a long window', 60_000, 4100],
    ['50 ms of a short one, and 2 % of it for the whole seconds', 2000, 3065],
  ])('spreads clients that were refused together: %s', (_, windowMs, waitMs) => {
    const made = budget({ random: () => 0.5 });
    lone(made, refusal(3000, { windowMs }), 0);
    expect(waits(made, 0)).toBe(waitMs);
  });

  test('looks once an hour without a stated window, whatever it is asked for', () => {
    const made = budget();
    lone(made, left(undefined, { ...silent, refused: true, retryAfterMs: 86_400_000 }), 0);
    expect(waits(made, 0)).toBe(3_600_500);
    lone(made, clean, 3_600_500);
    expect(waits(made, 3_600_500)).toBe(0);
  });

  test('looks later with each refusal, at most after an hour', () => {
    const made = budget();
    const waited = Array.from({ length: 9 }, (_, nth) => {
      const nowMs = nth * 4_000_000;
      lone(made, refusal(86_400_000), nowMs);
      return waits(made, nowMs);
    });
    const seconds = [121, 242, 484, 968, 1936, 3600, 3600, 3600, 3600];
    expect(waited).toEqual(seconds.map((count) => count * 1000 + 500));
  });

  test('sends one probe until it is answered', () => {
    const made = budget();
    lone(made, refusal(1000), 0);
    const probe = made.ticket(1500);
    expect(made.decide(30_000, 9)).toEqual({ leave: 0, waitMs: NEVER });
    made.answer(probe, left(59), 30_000);
    expect(leaves(made, 30_000)).toBeGreaterThan(1);
  });

  test('replaces a probe that was lost, or not sent', () => {
    const made = budget();
    lone(made, refusal(1000), 0);
    made.lose(made.ticket(1500), 9000);
    expect(leaves(made, 9000)).toBe(1);
    made.withdraw(made.ticket(9000));
    expect(leaves(made, 9000)).toBe(1);
  });

  test('doubles the wait with each refusal up to the window, and starts over after a success', () => {
    const made = budget();
    const waited: number[] = [];
    let nowMs = 0;
    for (let count = 0; count < 6; count += 1) {
      lone(made, refusal(1000, { windowMs: 10_000 }), nowMs);
      waited.push(waits(made, nowMs));
      nowMs += waited.at(-1) ?? 0;
    }
    expect(waited).toEqual([1200, 2200, 4200, 8200, 10_200, 10_200]);
    lone(made, left(59, { windowMs: 10_000 }), nowMs);
    lone(made, refusal(1000, { windowMs: 10_000 }), nowMs);
    expect(waits(made, nowMs)).toBe(1200);
  });

  test('counts a refused burst as one refusal, and never shortens the block', () => {
    const made = budget();
    lone(made, left(9), 0);
    const burst = Array.from({ length: 4 }, () => made.ticket(0));
    for (const [i, ticket] of burst.entries()) made.answer(ticket, refusal(4000 - i * 1000), i);
    expect(waits(made, 3)).toBe(4497);
    lone(made, refusal(1000), 4500);
    expect(waits(made, 4500)).toBe(2500);
  });

  test('takes a success of an older request for the time before the refusal', () => {
    const made = budget();
    lone(made, left(9), 0);
    const older = made.ticket(0);
    lone(made, refusal(2000), 100);
    made.answer(older, left(8), 200);
    expect(waits(made, 200)).toBe(2400);
    expect(made.limit().left).toBe(0);
  });

  test('halves the slow start, and assumes other clients', () => {
    const made = budget();
    for (let remaining = 59; remaining >= 50; remaining -= 1) lone(made, left(remaining), 0);
    expect(leaves(made, 0)).toBe(11);
    lone(made, refusal(1000), 0);
    lone(made, left(49), 1500);
    expect(leaves(made, 1500)).toBe(6);
    lone(made, left(1), 1600);
    expect(leaves(made, 1600, 1)).toBe(0);
  });
});

describe('a budget without headers', () => {
  const round = (made: Budget, nowMs: number): number => {
    const most = leaves(made, nowMs);
    const burst = Array.from({ length: most }, () => made.ticket(nowMs - 40));
    for (const ticket of burst) made.answer(ticket, clean, nowMs);
    return most;
  };

  test('sends as many at once as succeeded, one more with each round', () => {
    const made = budget({ ceiling: 5 });
    lone(made, clean, 0);
    const rounds = Array.from({ length: 6 }, (_, nth) => round(made, nth * 100));
    expect(rounds).toEqual([2, 3, 4, 5, 5, 5]);
  });

  /** Twelve went through, then one was refused; the next went through after three seconds. */
  function refused(): Budget {
    const made = budget();
    for (let count = 0; count < 12; count += 1) lone(made, clean, 0);
    lone(made, left(undefined, { ...silent, refused: true, retryAfterMs: 2000 }), 100);
    expect(waits(made, 100)).toBe(2500);
    lone(made, clean, 3000);
    return made;
  }

  test('takes what succeeded before a refusal for the limit of that time', () => {
    const made = refused();
    expect(made.limit()).toMatchObject({ limit: 12, windowMs: 3000, left: undefined });
  });

  test('stays within that limit, and tries one more with each window that passes', () => {
    const made = refused();
    for (let count = 0; count < 11; count += 1) lone(made, clean, 3000);
    expect(leaves(made, 3000)).toBe(0);
    expect(waits(made, 3000)).toBeCloseTo(3000 - 30 + 2, 5);
    lone(made, clean, 6500);
    expect(made.limit().limit).toBe(13);
  });

  test('does not take a long silence before a refusal for the window', () => {
    const made = budget();
    lone(made, clean, 0);
    for (let count = 0; count < 12; count += 1) lone(made, clean, 10_800_000);
    lone(made, left(undefined, { ...silent, refused: true, retryAfterMs: 2000 }), 10_801_000);
    lone(made, clean, 10_804_000);
    expect(made.limit().windowMs).toBe(60_000);
  });

  test('switches to headers when they come', () => {
    const made = refused();
    lone(made, left(59), 4000);
    expect(made.limit()).toEqual({ limit: 60, windowMs: 60_000, left: 59, others: 0 });
  });
});

describe('a lost answer', () => {
  test('may have counted: one less is left', () => {
    const made = budget();
    lone(made, left(2), 0);
    made.lose(made.ticket(0), 10_000);
    expect(made.limit().left).toBe(1);
    for (const _ of 'abc') made.lose(made.ticket(0), 10_000);
    expect(made.limit().left).toBe(0);
  });

  test('is not taken for a returned unit once headers have counted it', () => {
    const made = budget();
    for (let remaining = 59; remaining >= 0; remaining -= 1) lone(made, left(remaining), 1000);
    for (let remaining = 59; remaining >= 5; remaining -= 1) lone(made, left(remaining), 20_000);
    const lost = [made.ticket(20_000), made.ticket(20_000)];
    lone(made, left(2), 20_040);
    for (const ticket of lost) made.lose(ticket, 30_000);
    expect(made.limit().left).toBe(0);
    lone(made, left(1), 31_000);
    // Were it a unit that came back, the next would be a second away.
    expect(waits(made, 31_000)).toBeGreaterThan(10_000);
  });
});

describe('partial or wrong headers', () => {
  test('leave a share of each window to others', () => {
    const made = budget({ reserve: 0.1 });
    lone(made, left(59), 0);
    expect(made.limit().left).toBe(53);
    for (let remaining = 58; remaining >= 6; remaining -= 1) lone(made, left(remaining), 0);
    expect(made.limit().left).toBe(0);
    expect(waits(made, 0)).toBeGreaterThan(59_000);
  });

  test('with a time of reset are waited for half a second longer, because it is in whole seconds', () => {
    const made = budget();
    lone(made, left(0, { windowMs: undefined, resetInMs: 7000 }), 0);
    expect(waits(made, 0)).toBe(7500);
    expect(leaves(made, 7500)).toBe(1);
  });

  test('with a reset further away than a window, as by a wrong clock, are not waited for', () => {
    const made = budget();
    lone(made, left(0, { windowMs: 60_000, resetInMs: 86_400_000 }), 0);
    expect(waits(made, 0)).toBe(60_500);
  });

  test('without window and reset stand for a second', () => {
    const made = budget();
    lone(made, left(0, { windowMs: undefined }), 0);
    expect(waits(made, 0)).toBe(1000);
  });

  test('without a window make the budget assume other clients for ten minutes after a refusal', () => {
    const made = budget();
    lone(made, refusal(1000, { windowMs: undefined }), 0);
    lone(made, left(1, { windowMs: undefined }), 2000);
    expect(leaves(made, 2000, 1)).toBe(0);
    lone(made, left(1, { windowMs: undefined }), 599_000);
    expect(leaves(made, 599_999, 1)).toBe(0);
    expect(leaves(made, 600_000, 1)).toBe(1);
  });

  test('without a limit stand for what is left and this request', () => {
    const made = budget();
    lone(made, left(41, { limit: undefined }), 0);
    lone(made, left(40, { limit: undefined }), 0);
    expect(made.limit()).toMatchObject({ limit: 42, left: 40 });
  });

  test('without what is left use one unit', () => {
    const made = budget();
    lone(made, left(41), 0);
    lone(made, left(), 0);
    expect(made.limit().left).toBe(40);
  });

  test.each([
    ['more', 100, 99],
    ['less', 20, 12],
  ])('with another limit, %s, are believed from then on', (_, limit, remaining) => {
    const made = budget();
    lone(made, left(41), 0);
    lone(made, left(remaining, { limit }), 100);
    expect(made.limit()).toMatchObject({ limit, left: remaining });
  });
});
