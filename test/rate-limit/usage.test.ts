import { describe, expect, test } from 'vitest';
import { createUsage, type Usage } from '../../src/rate-limit/request-usage.ts';

/** A window of a minute; the shortest round trip took 40 ms, of which 30 are taken off. */
function usage(): Usage {
  const made = createUsage();
  made.pace.windowMs = 60_000;
  made.pace.tripMs = 40;
  return made;
}

const add = (made: Usage, nowMs: number, times = 1, tripMs = 40): void => {
  for (let count = 0; count < times; count += 1) made.add({ sentMs: nowMs - tripMs, nowMs });
};

describe('counted requests', () => {
  test('count for a window, less three quarters of the shortest trip, and 2 ms', () => {
    const made = usage();
    add(made, 1000, 3);
    add(made, 2000);
    expect(made.backMs(1000)).toBe(60_972);
    expect([60_971, 60_972, 61_971, 61_972].map((ms) => made.counted(ms))).toEqual([4, 1, 1, 0]);
  });

  test('count for 2 ms while no trip and no window is known', () => {
    const made = createUsage();
    add(made, 1000);
    expect([1001, 1002].map((ms) => made.counted(ms))).toEqual([1, 0]);
  });

  test('drop to a number when the last one too many has expired', () => {
    const made = usage();
    for (const nowMs of [1000, 2000, 3000]) add(made, nowMs);
    expect([2, 1, 0].map((most) => made.downTo(most))).toEqual([60_972, 61_972, 62_972]);
    expect(made.downTo(3)).toBe(60_972);
    expect(usage().downTo(0)).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('a request counts at both ends of a round trip', () => {
  test('when it was answered before the other one was sent', () => {
    const made = usage();
    add(made, 1000);
    expect(made.surely({ sentMs: 999, nowMs: 1039 })).toBe(0);
    expect(made.surely({ sentMs: 1000, nowMs: 1040 })).toBe(1);
  });

  test('when it will not have expired by the time of the answer, with some trips to spare', () => {
    const made = usage();
    add(made, 1000);
    const last = made.backMs(1000) - 120;
    expect(made.surely({ sentMs: 5000, nowMs: last - 1 })).toBe(1);
    expect(made.surely({ sentMs: 5000, nowMs: last })).toBe(0);
  });

  test('unless it may have been counted as early as it was sent', () => {
    const made = usage();
    add(made, 31_000, 1, 30_000);
    expect(made.surely({ sentMs: 40_000, nowMs: 60_999 })).toBe(1);
    expect(made.surely({ sentMs: 40_000, nowMs: 61_000 })).toBe(0);
    expect(made.counted(61_000)).toBe(1);
  });
});

describe('above a thousand, requests answered at nearly the same time are one', () => {
  /** A thousandth of the window is 60 ms. */
  function full(): Usage {
    const made = usage();
    add(made, 1000, 1000);
    add(made, 5000, 3, 300);
    add(made, 5059, 2, 40);
    return made;
  }

  test('which counts until the last of them has expired', () => {
    const made = full();
    expect(made.counted(made.backMs(5000))).toBe(5);
    expect(made.counted(made.backMs(5059) - 1)).toBe(5);
    expect(made.counted(made.backMs(5059))).toBe(0);
  });

  test('which certainly counts from the last answer on, until the first one expires', () => {
    const made = full();
    made.counted(made.backMs(1000));
    expect(made.surely({ sentMs: 5058, nowMs: 5100 })).toBe(0);
    expect(made.surely({ sentMs: 5059, nowMs: 64_699 })).toBe(5);
    expect(made.surely({ sentMs: 5059, nowMs: 64_700 })).toBe(0);
  });

  test('while later ones stay apart', () => {
    const made = full();
    add(made, 5060);
    expect(made.counted(made.backMs(5059))).toBe(1);
  });
});
