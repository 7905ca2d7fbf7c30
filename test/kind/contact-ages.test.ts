/** Whether the contact that answers a creation was there before it. */
import { expect, test } from 'vitest';
import { createAges } from '../../src/kind/contact/ages.ts';
import { timeOf } from '../../src/kind/contact/observe.ts';

const seconds = 1000;

// prettier-ignore
const table: [what: string, ages: number[], wereThere: boolean[]][] = [
  ['as young as the answer',                      [0, 1, 30, 60],        [false, false, false, false]],
  ['older by more than a minute',                 [0, 61, 2, 900],       [false, true, false, true]],
  ['the first one already',                       [61, 0, 61],           [true, false, true]],
  ['a Date that a proxy puts an hour ahead',      [3600, 3601, 3602, 3700], [true, false, false, true]],
  ['a Date that lags behind, by which it is not born yet', [-3600, -3599, 61], [false, false, true]],
];

test.each(table)('%s', (_, ages, wereThere) => {
  const { wasThere } = createAges();
  const found = ages.map((age, at) => wasThere(at * 500, at * 500 + age * seconds));
  expect(found).toEqual(wereThere);
});

test('without either of the times nothing is concluded', () => {
  const { wasThere } = createAges();
  expect([wasThere(undefined, 1e9), wasThere(0, undefined)]).toEqual([false, false]);
});

test.each([
  ['2026-01-01T10:00:00Z', 10],
  ['2026-01-01T10:00:00.000Z', 10],
  ['2026-01-01T10:00:00', 10],
  ['2026-01-01 10:00:00.000', 10],
  ['2026-01-01T12:00:00+02:00', 10],
  ['2026-01-01', 0],
])('%s is in UTC, where it does not say otherwise', (text, hours) => {
  expect(timeOf(text)).toBe(Date.UTC(2026, 0, 1, hours));
});
