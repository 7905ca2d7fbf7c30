/** How long a person is absent: added up from mark to mark, by the slower of two clocks. */
import { expect, onTestFinished, test } from 'vitest';
import { everything } from '../../src/store/database/key-range.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';

const hour = 3_600_000;
const range = { kind: 'contact', ...everything } as const;

/** Times are in hours, of the platform after those of another epoch. */
interface Reading {
  at: number;
  there?: number;
  ahead?: number | null;
  reading?: string;
  but?: string[];
}

/** Counts these readings, none of which has the person, and returns what is counted in the end. */
function absenceAfter(...readings: Reading[]) {
  const snapshot = openSnapshot(':memory:', { inMemory: true });
  const { close, recorded, absences, transaction } = snapshot;
  onTestFinished(() => close());
  const row = { kind: 'contact', key: 'ann', id: 'c1', ownership: 'created', body: '{}' } as const;
  transaction(() => {
    recorded.put({ ...row, shown: undefined, desired: undefined, seenAt: 0 });
    for (const [nth, one] of readings.entries()) {
      const { at, there, ahead = 0, reading = `${nth}`, but = [] } = one;
      const platformAt = there === undefined ? undefined : 1 + there * hour;
      const aheadMs = ahead === null ? null : ahead * hour;
      const due = { absentReadings: 2, absentForMs: 3 * hour };
      absences.count({ ...range, at: at * hour, platformAt, aheadMs, reading, but, ...due });
    }
  });
  const { readings: n, ageMs = 0, waitedMs } = absences.get('contact', 'ann') ?? {};
  const waited = waitedMs === null || waitedMs === undefined ? null : waitedMs / hour;
  return { readings: n, hours: Math.floor(ageMs / hour), waited };
}

// prettier-ignore
const table: [what: string, readings: Reading[], found: object][] = [
  ['one reading',                     [{ at: 0 }], { readings: 1, hours: 0, waited: null }],
  ['the same reading twice',          [{ at: 0, reading: 'a' }, { at: 4, reading: 'a' }], { readings: 1 }],
  ['a person whom another run has',   [{ at: 0 }, { at: 4, but: ['ann'] }], { readings: 1 }],
  ['by our clock alone',              [{ at: 0 }, { at: 2 }], { readings: 2, hours: 2, waited: null }],
  ['due by the second reading',       [{ at: 0 }, { at: 3 }], { hours: 3, waited: 0 }],
  ['waiting since it was due',        [{ at: 0 }, { at: 3 }, { at: 5 }], { hours: 5, waited: 2 }],
  ['our clock set forward',           [{ at: 0, there: 0 }, { at: 9, there: 1 }], { hours: 1 }],
  ['the platform’s set forward',      [{ at: 0, there: 0 }, { at: 1, there: 9 }], { hours: 1 }],
  ['our clock set back',              [{ at: 9, there: 0 }, { at: 1, there: 1 }], { hours: 0 }],
  ['the platform’s set back',         [{ at: 0, there: 9 }, { at: 5, there: 1 }], { hours: 0 }],
  ['set back, then right',            [{ at: 9, there: 0 }, { at: 1, there: 1 }, { at: 5, there: 5 }], { hours: 4 }],
  ['set forward in between',          [{ at: 0, there: 0 }, { at: 9, there: 1 }, { at: 2, there: 2 }], { hours: 1 }],
  ['silent at first',                 [{ at: 0 }, { at: 2, there: 2 }], { hours: 2 }],
  ['silent in between',               [{ at: 0, there: 0 }, { at: 2 }, { at: 3, there: 3 }], { hours: 3 }],
  ['silent from then on',             [{ at: 0, there: 0 }, { at: 4 }, { at: 8 }], { hours: 0 }],
  ['a platform that told no time',    [{ at: 0 }, { at: 2, ahead: null }], { hours: 2 }],
  ['our clock known to be apart',     [{ at: 0 }, { at: 2, ahead: 2 }], { hours: 0 }],
];

test.each(table)('%s', (_, readings, found) => {
  expect(absenceAfter(...readings)).toMatchObject(found);
});
