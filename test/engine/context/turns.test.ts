/** When other tasks get a turn during long work, and when they do not. */
import { expect, test } from 'vitest';
import {
  eachPart,
  inTurns,
  pagesOf,
  untilDone,
} from '../../../src/engine/context/work-in-parts.ts';

/** A clock that notes each turn between the steps of the work. */
function noting() {
  const steps: (number | 'turn')[] = [];
  const clock = { sleep: async () => void steps.push('turn') };
  return { clock, steps };
}

/** Yields two numbers, and notes when each is asked for. */
function* asked(steps: unknown[]): Generator<number> {
  for (const part of [1, 2]) {
    steps.push(part);
    yield part;
  }
}

test('other tasks run after each part, before the next one is asked for', async () => {
  const { clock, steps } = noting();
  for await (const part of inTurns({ clock }, asked(steps))) steps.push(part * 10);
  expect(steps).toEqual([1, 10, 'turn', 2, 20, 'turn']);
});

test('a loop that ends takes no further turn, and asks for no further part', async () => {
  const { clock, steps } = noting();
  for await (const part of inTurns({ clock }, asked(steps))) if (part === 1) break;
  expect(steps).toEqual([1]);
});

test('work for a caller that takes the turns ends when it returns false', () => {
  const done: number[] = [];
  const work = (part: number): boolean => done.push(part) < 2;
  expect([...eachPart([1, 2, 3], work)]).toHaveLength(1);
  expect(done).toEqual([1, 2]);
});

test('pages are read until one is empty, each after the last row before it', () => {
  const rows = [1, 2, 3, 4, 5];
  const pages = pagesOf((last: number = 0) => rows.filter((row) => row > last).slice(0, 2));
  expect([...pages]).toEqual([[1, 2], [3, 4], [5]]);
});

test('repeated work takes a turn between two repetitions, and returns its last result', async () => {
  const { clock, steps } = noting();
  const work = (): true | string => (steps.push(steps.length) < 5 ? true : 'done');
  expect(await untilDone({ clock }, work)).toBe('done');
  expect(steps).toEqual([0, 'turn', 2, 'turn', 4]);
});
