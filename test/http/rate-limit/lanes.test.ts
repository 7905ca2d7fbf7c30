import { describe, expect, test } from 'vitest';
import { createLanes, type Priority } from '../../../src/http/rate-limit/request-gate.ts';

interface Named {
  priority: Priority;
  order: number;
}

/** Told apart by their order of arrival. */
const entry = (order: number, priority: Priority = 'other'): Named => ({ order, priority });

function filled(entries: Named[]) {
  const lanes = createLanes<Named>();
  for (const one of entries) lanes.put(one);
  return lanes;
}

const orders = (lanes: ReturnType<typeof filled>, count: number) =>
  Array.from({ length: count }, () => lanes.take()?.order);

test('empty lanes give nothing', () => {
  const lanes = createLanes<Named>();
  expect(lanes.size()).toBe(0);
  expect(lanes.take()).toBeUndefined();
});

test('urgent entries come first, each in order of arrival', () => {
  const lanes = filled([
    entry(1),
    entry(2, 'opt_out'),
    entry(3, 'event'),
    entry(4),
    entry(5, 'event'),
    entry(6, 'opt_out'),
  ]);
  expect(lanes.size()).toBe(6);
  expect(orders(lanes, 7)).toEqual([3, 5, 2, 6, 1, 4, undefined]);
  expect(lanes.size()).toBe(0);
});

describe('one place in eight', () => {
  test('is for the entry that has waited longest', () => {
    const events = Array.from({ length: 20 }, (_, at) => entry(at + 3, 'event'));
    const lanes = filled([entry(1), entry(2, 'opt_out'), ...events]);
    const taken = orders(lanes, 17);
    expect(taken[7]).toBe(1);
    expect(taken[15]).toBe(2);
    expect(taken.filter((order) => order === 1 || order === 2)).toHaveLength(2);
  });

  test('is for a returning entry by its first arrival', () => {
    const lanes = filled(Array.from({ length: 20 }, (_, at) => entry(at + 10, 'event')));
    lanes.put(entry(7));
    lanes.put(entry(4), 'again');
    expect(orders(lanes, 8)[7]).toBe(4);
  });

  test('keeps entries from waiting for ever behind new urgent ones', () => {
    const lanes = filled([entry(0), entry(1)]);
    const taken: (number | undefined)[] = [];
    for (let order = 2; order < 40; order += 1) {
      lanes.put(entry(order, 'event'));
      taken.push(lanes.take()?.order);
    }
    expect(taken.indexOf(0)).toBe(7);
    expect(taken.indexOf(1)).toBe(15);
  });
});

describe('a returning entry', () => {
  test('goes before others of its priority, by its first arrival', () => {
    const lanes = filled([entry(5), entry(6, 'event')]);
    for (const order of [4, 2, 3]) lanes.put(entry(order), 'again');
    expect(orders(lanes, 5)).toEqual([6, 2, 3, 4, 5]);
  });

  test('is removed like any other, once', () => {
    const [back, fresh, never] = [entry(1), entry(2), entry(3)];
    const lanes = filled([fresh]);
    lanes.put(back, 'again');
    expect([back, fresh, never, back].map((one) => lanes.remove(one))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(lanes.size()).toBe(0);
  });
});
