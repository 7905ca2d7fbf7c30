import { expect, test } from 'vitest';
import { retryDelayMs, retrySchedules } from '../../src/domain/retry-schedules.ts';

const seconds = (name: keyof typeof retrySchedules, random?: number) =>
  [1, 2, 3, 4, 5, 20, 5_000].map(
    (tries) =>
      retryDelayMs(retrySchedules[name], tries, random === undefined ? undefined : () => random) /
      1000,
  );

test('each delay is a multiple of the one before, up to the longest', () => {
  expect(seconds('request')).toEqual([0.25, 0.5, 1, 2, 4, 5, 5]);
  expect(seconds('rejectedOptOut')).toEqual([1, 2, 4, 8, 16, 24, 24].map((h) => h * 3600));
  expect(seconds('event')).toEqual([1, 2, 4, 8, 16, 60, 60]);
  expect(seconds('redis')).toEqual([0.1, 0.2, 0.4, 0.8, 1, 1, 1]);
  expect(seconds('lease')).toEqual([2, 2, 2, 2, 2, 2, 2]);
});

test('jitter spreads the delays', () => {
  expect(seconds('request', 0.5).slice(0, 3)).toEqual([0.125, 0.25, 0.5]);
  expect(seconds('notification', 0).slice(0, 3)).toEqual([0.5, 2.5, 12.5]);
  expect(seconds('notification', 0.9).slice(0, 3)).toEqual([1.4, 7, 35]);
  expect(seconds('lease', 0.9)).toEqual(seconds('lease'));
});
