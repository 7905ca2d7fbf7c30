import { describe, expect, test } from 'vitest';
import { createBudget, type Budget, type BudgetOptions } from '../../src/http/budget.ts';
import type { Observation } from '../../src/http/observation.ts';

const nothing: Observation = {
  refused: false,
  limit: undefined,
  remaining: undefined,
  windowMs: undefined,
  resetInMs: undefined,
  retryAfterMs: undefined,
};

const left = (remaining: number, more: Partial<Observation> = {}): Observation => {
  return { ...nothing, limit: 60, windowMs: 60_000, remaining, ...more };
};
const refusal = (retryAfterMs?: number): Observation => ({
  ...nothing,
  refused: true,
  retryAfterMs,
});

const budget = (options: Partial<BudgetOptions> = {}) =>
  createBudget({ random: () => 0, ...options });

/** One request after the other: sent, answered. */
function lone(made: Budget, seen: Observation, nowMs = 0): void {
  made.answer(made.ticket(), seen, nowMs);
}

describe('open', () => {
  test('unknown: starts at two, one more with each clean answer, up to the ceiling', () => {
    const made = budget({ ceiling: 5 });
    const seen = [made.decide(0).inFlight];
    for (let i = 0; i < 5; i += 1) {
      lone(made, nothing);
      seen.push(made.decide(0).inFlight);
    }
    expect(seen).toEqual([2, 3, 4, 5, 5, 5]);
  });

  test.each([
    [40, 16],
    [20, 10],
    [5, 2],
    [3, 1],
    [1, 1],
  ])('%i left: %i in flight, once the slow start is over', (remaining, inFlight) => {
    const made = budget();
    for (let i = 0; i < 20; i += 1) lone(made, left(40));
    lone(made, left(remaining));
    expect(made.decide(0)).toEqual({ inFlight, waitMs: 0 });
  });

  test('answers to requests sent before the reference came may only lower it', () => {
    const made = budget();
    for (let i = 0; i < 20; i += 1) lone(made, left(30));
    const [early, late] = [made.ticket(), made.ticket()];
    made.answer(late, left(8), 0);
    made.answer(early, left(29), 0);
    expect(made.decide(0).inFlight).toBe(4);
    made.answer(late, left(6), 0);
    expect(made.decide(0).inFlight).toBe(3);
  });

  test('more than before, in answer to a later request, is a new window: slow start', () => {
    const made = budget();
    for (let i = 0; i < 20; i += 1) lone(made, left(40));
    lone(made, left(10), 1000);
    lone(made, left(59), 61_000);
    expect(made.decide(61_000).inFlight).toBe(2);
    lone(made, left(0), 62_000);
    expect(made.decide(62_000).waitMs).toBe(59_002);
  });

  test('an answer lost on the way may have counted', () => {
    const made = budget();
    for (let i = 0; i < 20; i += 1) lone(made, left(8));
    expect(made.decide(0).inFlight).toBe(4);
    made.lose(0);
    made.lose(0);
    expect(made.decide(0).inFlight).toBe(3);
    lone(made, left(7));
    expect(made.decide(0).inFlight).toBe(3);
    for (let i = 0; i < 7; i += 1) made.lose(10_000);
    expect(made.decide(10_000).waitMs).toBe(50_002);
  });

  test('a share stays with others', () => {
    const made = budget({ reserve: 0.1 });
    for (let i = 0; i < 20; i += 1) lone(made, left(26));
    expect(made.decide(0).inFlight).toBe(10);
    lone(made, left(6));
    expect(made.decide(0).waitMs).toBe(60_002);
  });
});

describe('shut: nothing left', () => {
  test('waits one window from its first answer on, then sends one probe', () => {
    const made = budget();
    lone(made, left(1), 500);
    lone(made, left(0), 9000);
    expect(made.decide(9000)).toEqual({ inFlight: 1, waitMs: 51_502 });
    expect(made.decide(60_502)).toEqual({ inFlight: 1, waitMs: 0 });
    lone(made, left(59), 60_600);
    expect(made.decide(60_600)).toEqual({ inFlight: 2, waitMs: 0 });
  });

  test('late answers of the burst open nothing', () => {
    const made = budget();
    const burst = [made.ticket(), made.ticket()] as const;
    made.answer(burst[0], left(0), 100);
    made.answer(burst[1], left(1), 200);
    expect(made.decide(200).waitMs).toBe(59_902);
  });

  test('a probe that took the only unit: the next after the time one unit takes', () => {
    const made = budget();
    lone(made, left(0), 0);
    lone(made, left(0), 60_002);
    expect(made.decide(60_002).waitMs).toBe(1002);
  });

  test('a lost probe lets the next one leave', () => {
    const made = budget();
    lone(made, left(0), 0);
    made.lose(60_002);
    expect(made.decide(60_002)).toEqual({ inFlight: 1, waitMs: 0 });
  });

  test('no window named: its reset, else a second', () => {
    const made = budget();
    lone(made, { ...nothing, remaining: 0, resetInMs: 7000 }, 0);
    expect(made.decide(0).waitMs).toBe(7500);
    const bare = budget();
    lone(bare, { ...nothing, remaining: 0 }, 0);
    expect(bare.decide(0).waitMs).toBe(1000);
  });
});

describe('shut: refused', () => {
  const rows: [string, number | undefined, number][] = [
    ['Retry-After', 3000, 3500],
    ['Retry-After 0', 0, 1500],
    ['no Retry-After', undefined, 1500],
    ['longer than the window', 90_000, 90_500],
  ];
  test.each(rows)('%s', (_, retryAfterMs, waitMs) => {
    const made = budget();
    lone(made, refusal(retryAfterMs));
    expect(made.decide(0)).toEqual({ inFlight: 1, waitMs });
  });

  test('in a row: doubles, no longer than the window', () => {
    const made = budget();
    const waits = [];
    let nowMs = 0;
    for (let i = 0; i < 6; i += 1) {
      lone(made, { ...refusal(1000), windowMs: 10_000 }, nowMs);
      const { waitMs } = made.decide(nowMs);
      waits.push(waitMs);
      nowMs += waitMs;
    }
    expect(waits).toEqual([1500, 2500, 4500, 8500, 10_500, 10_500]);
    lone(made, nothing, nowMs);
    lone(made, refusal(1000), nowMs);
    expect(made.decide(nowMs).waitMs).toBe(1500);
  });

  test('a burst refused is one refusal; the block never ends earlier', () => {
    const made = budget();
    const burst = Array.from({ length: 4 }, () => made.ticket());
    for (const [i, ticket] of burst.entries()) made.answer(ticket, refusal(4000 - i * 1000), i);
    expect(made.decide(3).waitMs).toBe(4497);
  });

  test('the slow start is halved, and grows again after a clean probe', () => {
    const made = budget();
    for (let i = 0; i < 10; i += 1) lone(made, nothing);
    expect(made.decide(0).inFlight).toBe(12);
    lone(made, refusal(1000), 0);
    lone(made, nothing, 1500);
    expect(made.decide(1500).inFlight).toBe(6);
  });

  test('jitter keeps those apart who were refused together', () => {
    const made = budget({ random: () => 0.5 });
    lone(made, refusal(1000));
    expect(made.decide(0).waitMs).toBe(1525);
  });
});
