/** Which runs of a worker are in progress, and how long an idle mirror stays open. */
import { expect, test } from 'vitest';
import {
  createCapacity,
  createRunSlots,
  idleAtMost,
  idleMs,
} from '../../src/worker/worker-capacity.ts';
import { virtualClock } from '../support/waiting.ts';

/** Slots for two runs, and one long run beside them. */
function stage() {
  const clock = virtualClock();
  const state = { hasTime: false };
  const counts = { atOnce: 2, most: 4, long: 1 };
  const slots = createRunSlots({ ...counts, hasTime: () => state.hasTime, clock });
  const begun: string[] = [];
  const begin = (name: string, dueMs: number, stop = new AbortController().signal) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const ended = slots.run({ dueMs, stop }, async () => {
      begun.push(name);
      return promise;
    });
    return { end: () => resolve(name), ended };
  };
  return { clock, state, begin, begun };
}

test('of the runs that wait, the one that was due first begins when one ends', async () => {
  const { begin, begun, clock } = stage();
  const [a, b] = [begin('a', 5), begin('b', 5)];
  const [late, early, same] = [begin('late', 3), begin('early', 1), begin('same', 3)];
  await clock.advance(0);
  expect(begun).toEqual(['a', 'b']);
  a.end();
  expect(await a.ended).toBe('a');
  await clock.advance(0);
  expect(begun).toEqual(['a', 'b', 'early']);
  for (const one of [b, early]) one.end();
  await Promise.all([b.ended, early.ended]);
  await clock.advance(0);
  expect(begun).toEqual(['a', 'b', 'early', 'late', 'same']);
  for (const one of [late, same]) one.end();
  await Promise.all([late.ended, same.ended]);
});

test('a run that is stopped while it waits does not begin, and one that fails frees its slot', async () => {
  const { begin, begun, clock } = stage();
  const stop = new AbortController();
  const [a, b] = [begin('a', 0), begin('b', 0)];
  const c = begin('c', 0, stop.signal);
  await clock.advance(0);
  stop.abort();
  expect(await c.ended).toBeUndefined();
  expect(await begin('d', 0, stop.signal).ended).toBeUndefined();
  for (const one of [a, b]) one.end();
  await Promise.all([a.ended, b.ended]);
  expect(begun).toEqual(['a', 'b']);
  const slots = createRunSlots({ atOnce: 1, most: 1, long: 0, hasTime: () => true, clock });
  const place = { dueMs: 0, stop: new AbortController().signal };
  const failing = slots.run(place, async () => Promise.reject(new Error('failed')));
  await expect(failing).rejects.toThrow('failed');
  expect(await slots.run(place, async () => 'next')).toBe('next');
});

test('a run that takes long frees its slot, as long as few have done so', async () => {
  const { begin, begun, clock } = stage();
  const [a, b] = [begin('a', 0), begin('b', 0)];
  const [c, d] = [begin('c', 1), begin('d', 2)];
  await clock.advance(29_000);
  expect(begun).toEqual(['a', 'b']);
  await clock.advance(2_000);
  expect(begun).toEqual(['a', 'b', 'c']);
  // Now another one may be long.
  a.end();
  await a.ended;
  await clock.advance(40_000);
  expect(begun).toEqual(['a', 'b', 'c', 'd']);
  for (const one of [b, c, d]) one.end();
  await Promise.all([b.ended, c.ended, d.ended]);
});

test('more runs begin while the process has time left, one after the other', async () => {
  const { begin, begun, clock, state } = stage();
  const all = Array.from({ length: 6 }, (_, at) => begin(String(at), at));
  await clock.advance(10_000);
  expect(begun).toHaveLength(2);
  state.hasTime = true;
  await clock.advance(200);
  expect(begun).toHaveLength(3);
  await clock.advance(10_000);
  expect(begun).toHaveLength(4);
  // A run that ends does not let another one begin when there is no time left.
  state.hasTime = false;
  all[0]?.end();
  await all[0]?.ended;
  await clock.advance(10_000);
  expect(begun).toHaveLength(4);
  state.hasTime = true;
  for (const { end } of all) end();
  await clock.advance(1_000);
  await Promise.all(all.map(async ({ ended }) => ended));
  expect(begun).toEqual(['0', '1', '2', '3', '4', '5']);
});

test('a mirror without work is closed after a while, or when many have none', async () => {
  const clock = virtualClock();
  const { idle } = createCapacity(clock, () => () => true);
  const closed: number[] = [];
  const woken = Array.from({ length: idleAtMost }, (_, at) => idle(() => closed.push(at)));
  woken[1]?.();
  idle(() => closed.push(100));
  expect(closed).toEqual([]);
  idle(() => closed.push(101));
  expect(closed).toEqual([0]);
  await clock.advance(idleMs - 1);
  expect(closed).toEqual([0]);
  await clock.advance(1);
  expect(closed).toHaveLength(idleAtMost + 1);
  expect(closed).not.toContain(1);
});
