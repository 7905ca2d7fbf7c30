/** Many at a time, in their order, and no more once something has failed. */
import { describe, expect, test } from 'vitest';
import { each } from '../../../src/engine/context/work-in-parts.ts';

const broken = new Error('broken');

function* counting(upTo: number, ended: () => void = () => undefined): Generator<number> {
  try {
    for (let nth = 1; nth <= upTo; nth += 1) yield nth;
  } finally {
    ended();
  }
}

async function* slowly(items: Iterable<number>): AsyncGenerator<number> {
  for (const item of items) {
    await Promise.resolve();
    yield item;
  }
}

describe.each([
  ['at once', (items: Iterable<number>) => items],
  ['one by one', slowly],
] as const)('items that come %s', (_, come) => {
  test('are all processed, in order, with at most that many at a time', async () => {
    const begun: number[] = [];
    let running = 0;
    let most = 0;
    await each(come(counting(50)), 4, async (item) => {
      begun.push(item);
      running += 1;
      most = Math.max(most, running);
      for (let turn = 0; turn < 30 + (item % 5); turn += 1) await Promise.resolve();
      running -= 1;
    });
    expect(begun).toEqual([...counting(50)]);
    expect(most).toBe(4);
  });

  test('are not taken after a failure, which is thrown when the running ones have ended', async () => {
    const ended: number[] = [];
    let isOver = false;
    const items = counting(50, () => (isOver = true));
    const gone = each(come(items), 3, async (item) => {
      if (item === 2) throw broken;
      for (let turn = 0; turn < 9; turn += 1) await Promise.resolve();
      ended.push(item);
    });
    await expect(gone).rejects.toBe(broken);
    expect(ended).toEqual([1, 3]);
    expect(isOver).toBe(true);
  });

  test('wait for the running ones when the input itself fails', async () => {
    const ended: number[] = [];
    function* failing(): Generator<number> {
      yield 1;
      throw broken;
    }
    const gone = each(come(failing()), 3, async (item) => {
      for (let turn = 0; turn < 9; turn += 1) await Promise.resolve();
      ended.push(item);
    });
    await expect(gone).rejects.toBe(broken);
    expect(ended).toEqual([1]);
  });
});
