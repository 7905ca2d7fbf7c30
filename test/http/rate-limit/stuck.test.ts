import { expect, test } from 'vitest';
import { type Stuck, watchStuck } from '../../../src/http/rate-limit/request-gate.ts';
import { virtualClock } from '../../support/waiting.ts';

function watch() {
  const clock = virtualClock();
  const told: (number | undefined)[] = [];
  const tell = ({ forMs }: Stuck) => void told.push(forMs);
  return { clock, told, ...watchStuck('contacts.enrol', clock, tell) };
}

test('three refusals in half a minute are reported once', async () => {
  const { clock, told, refused } = watch();
  refused(1, 0);
  await clock.advance(29_999);
  refused(3, 0);
  expect(told).toEqual([]);
  await clock.advance(1);
  refused(4, 0);
  refused(5, 0);
  expect(told).toEqual([30_000]);
});

test('a request that gets through is reported once; then counting starts over', async () => {
  const { clock, told, refused, through } = watch();
  through();
  expect(told).toEqual([]);
  await clock.advance(40_000);
  refused(3, 10);
  through();
  through();
  expect(told).toEqual([39_990, undefined]);
  await clock.advance(86_400_000);
  refused(3, 86_420_000);
  expect(told).toHaveLength(2);
  await clock.advance(40_000);
  refused(4, 86_420_000);
  expect(told.slice(2)).toEqual([60_000]);
});

test('two refusals are not reported, and requests of others do not count', async () => {
  const { clock, told, refused, through } = watch();
  await clock.advance(40_000);
  refused(2, 0);
  through();
  refused(9, 0);
  expect(told).toEqual([]);
  // Answers of one burst come mixed: refused before the last one got through, it speaks for all.
  await clock.advance(31_000);
  refused(10, 0);
  expect(told).toEqual([31_000]);
});
