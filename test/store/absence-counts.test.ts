/** How long a person is absent: added up from mark to mark, by the slower of two clocks. */
import { expect, onTestFinished, test } from 'vitest';
import { everything } from '../../src/store/database/key-range.ts';
import { openSnapshot } from '../../src/store/snapshot.ts';

const hour = 3_600_000;
const range = { kind: 'contact', ...everything } as const;

interface Reading {
  at: number;
  platformAt?: number;
  aheadMs?: number | null;
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
    for (const [nth, { at, platformAt, aheadMs = 0, reading, but = [] }] of readings.entries()) {
      const due = { absentReadings: 2, absentForMs: 3 * hour };
      const of = { at, platformAt, aheadMs, reading: reading ?? `${nth}`, but, ...due };
      absences.count({ ...range, ...of });
    }
  });
  const { readings: n, ageMs, waitedMs } = absences.get('contact', 'ann') ?? {};
  return {
    readings: n,
    hours: ageMs === undefined ? undefined : Math.floor(ageMs / hour),
    waitedMs,
  };
}

// prettier-ignore
const table: [what: string, readings: Reading[], found: object][] = [
  ['one reading',                           [{ at: 0 }], { readings: 1, hours: 0, waitedMs: null }],
  ['the same reading twice',                [{ at: 0, reading: 'a' }, { at: 4 * hour, reading: 'a' }], { readings: 1, hours: 0 }],
  ['a person whom another run has',         [{ at: 0 }, { at: 4 * hour, but: ['ann'] }], { readings: 1 }],
  ['by our clock alone',                    [{ at: 0 }, { at: 2 * hour }], { readings: 2, hours: 2, waitedMs: null }],
  ['due by the second reading',             [{ at: 0 }, { at: 3 * hour }], { hours: 3, waitedMs: 0 }],
  ['waiting since it was due',              [{ at: 0 }, { at: 3 * hour }, { at: 5 * hour }], { hours: 5, waitedMs: 2 * hour }],
  ['our clock set forward',                 [{ at: 0, platformAt: 1 }, { at: 9 * hour, platformAt: 1 + hour }], { hours: 1 }],
  ['the platform’s clock set forward',      [{ at: 0, platformAt: 1 }, { at: hour, platformAt: 1 + 9 * hour }], { hours: 1 }],
  ['our clock set back',                    [{ at: 9 * hour, platformAt: 1 }, { at: hour, platformAt: 1 + hour }], { hours: 0 }],
  ['the platform silent in between',        [{ at: 0, platformAt: 1 }, { at: 2 * hour }, { at: 3 * hour, platformAt: 1 + 3 * hour }], { readings: 3, hours: 3 }],
  ['the platform silent from then on',      [{ at: 0, platformAt: 1 }, { at: 4 * hour }, { at: 8 * hour }], { readings: 3, hours: 0 }],
  ['a platform that never told its time',   [{ at: 0 }, { at: 2 * hour, aheadMs: null }], { hours: 2 }],
  ['our clock known to be hours apart',     [{ at: 0 }, { at: 2 * hour, aheadMs: 2 * hour }], { hours: 0 }],
];

test.each(table)('%s', (_, readings, found) => {
  expect(absenceAfter(...readings)).toMatchObject(found);
});
