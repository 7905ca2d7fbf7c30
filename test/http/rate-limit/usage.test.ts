import { describe, expect, test } from 'vitest';
import {
  type Usage,
  addUse,
  backMs,
  counted,
  downTo,
  surelyCounted,
} from '../../../src/http/rate-limit/request-usage.ts';

/** A window of a minute; the shortest round trip took 40 ms, of which 30 are taken off. */
function usage(): Usage {
  return { windowMs: 60_000, tripMs: 40, sum: 0, grains: [] };
}

const add = (made: Usage, nowMs: number, times = 1, tripMs = 40): void => {
  for (let count = 0; count < times; count += 1) addUse(made, { sentMs: nowMs - tripMs, nowMs });
};

describe('counted requests', () => {
  test('count for a window, less three quarters of the shortest trip, and 2 ms', () => {
    const made = usage();
    add(made, 1000, 3);
    add(made, 2000);
    expect(backMs(made, 1000)).toBe(60_972);
    expect([60_971, 60_972, 61_971, 61_972].map((ms) => counted(made, ms))).toEqual([4, 1, 1, 0]);
  });

  test('count for 2 ms while no trip and no window is known', () => {
    const made: Usage = { sum: 0, grains: [] };
    add(made, 1000);
    expect([1001, 1002].map((ms) => counted(made, ms))).toEqual([1, 0]);
  });

  test('drop to a number when the last one too many has expired', () => {
    const made = usage();
    for (const nowMs of [1000, 2000, 3000]) add(made, nowMs);
    expect([2, 1, 0].map((most) => downTo(made, most))).toEqual([60_972, 61_972, 62_972]);
    expect(downTo(made, 3)).toBe(60_972);
    expect(downTo(usage(), 0)).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('a request counts at both ends of a round trip', () => {
  test('when it was answered before the other one was sent', () => {
    const made = usage();
    add(made, 1000);
    expect(surelyCounted(made, { sentMs: 999, nowMs: 1039 })).toBe(0);
    expect(surelyCounted(made, { sentMs: 1000, nowMs: 1040 })).toBe(1);
  });

  test('when it will not have expired by the time of the answer, with some trips to spare', () => {
    const made = usage();
    add(made, 1000);
    const last = backMs(made, 1000) - 120;
    expect(surelyCounted(made, { sentMs: 5000, nowMs: last - 1 })).toBe(1);
    expect(surelyCounted(made, { sentMs: 5000, nowMs: last })).toBe(0);
  });

  test('unless it may have been counted as early as it was sent', () => {
    const made = usage();
    add(made, 31_000, 1, 30_000);
    expect(surelyCounted(made, { sentMs: 40_000, nowMs: 60_999 })).toBe(1);
    expect(surelyCounted(made, { sentMs: 40_000, nowMs: 61_000 })).toBe(0);
    expect(counted(made, 61_000)).toBe(1);
  });
});

describe('above two hundred, requests answered in the same part of a window are one', () => {
  /** A part of the window is 300 ms. */
  function full(): Usage {
    const made = usage();
    add(made, 1000, 200);
    add(made, 5100, 3, 300);
    add(made, 5399, 2, 40);
    return made;
  }

  test('which counts until the last of them has expired', () => {
    const made = full();
    expect(counted(made, backMs(made, 5399) - 1)).toBe(5);
    expect(counted(made, backMs(made, 5399))).toBe(0);
  });

  test('which certainly counts from the last answer on, until the first one expires', () => {
    const made = full();
    counted(made, backMs(made, 1000));
    expect(surelyCounted(made, { sentMs: 5398, nowMs: 5440 })).toBe(0);
    expect(surelyCounted(made, { sentMs: 5399, nowMs: 64_799 })).toBe(5);
    expect(surelyCounted(made, { sentMs: 5399, nowMs: 64_800 })).toBe(0);
  });

  test('while those of the next part stay apart', () => {
    const made = full();
    add(made, 5400);
    expect(counted(made, backMs(made, 5399))).toBe(1);
  });
});
