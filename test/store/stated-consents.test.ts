/** What each record last stated is kept as long as nothing proves that the record is gone. */
import { expect, onTestFinished, test } from 'vitest';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';

const mapping = 'm1';
const ann = 'ann@example.com';
const reading = { but: [], certified: true, whole: true, ofRest: false, mapping };

function open(): Snapshot {
  const snapshot = openSnapshot(':memory:', { inMemory: true });
  const { close } = snapshot;
  onTestFinished(() => close());
  return snapshot;
}

/** Stores what a reading states that has Ann with this body and ids, or has her not at all. */
function read(
  snapshot: Snapshot,
  how: Partial<typeof reading> & { at: number },
  body?: string,
  ids = ['1'],
) {
  const { staging, stated, ranges, transaction } = snapshot;
  transaction(() => {
    staging.clear();
    const given = { kind: 'contact', presence: 'present', fingerprint: '', wants: true } as const;
    const row = { ...given, key: ann, alias: ann, invalid: undefined };
    if (body !== undefined)
      staging.addDesired(
        ids.map((id) => ({ ...row, id, place: id, body })),
        1,
      );
    for (const range of ranges.ofUnsorted('contact')) staging.sortRange(range);
    for (const range of ranges.ofStated('contact')) stated.store(range, { ...reading, ...how });
  });
}

const optedOut = (snapshot: Snapshot) =>
  snapshot.stated.optOutsOf({ kind: 'contact', key: ann, ids: ['1'], mapping });

const says = (value: string) => JSON.stringify({ channels: { ch_news: value } });

test.each([
  ['a fast reading', { whole: false }],
  ['a reading without proof of completeness', { certified: false }],
  ['a page of changes without proof', { certified: false, whole: false }],
])('%s forgets no opt-out of a record that it does not have', (_, how) => {
  const snapshot = open();
  read(snapshot, { at: 1 }, says('opt_out'));
  read(snapshot, { ...how, at: 2 });
  snapshot.stated.prune(1_000);
  expect(optedOut(snapshot)).toEqual(['ch_news']);
});

test('a whole reading marks a record that it does not have, and its opt-out ends later', () => {
  const snapshot = open();
  read(snapshot, { at: 1 }, says('opt_out'));
  read(snapshot, { at: 2 });
  snapshot.stated.prune(2);
  expect(optedOut(snapshot)).toEqual(['ch_news']);
  snapshot.stated.prune(3);
  expect(optedOut(snapshot)).toEqual([]);
});

test('a record that comes back in time keeps its opt-out', () => {
  const snapshot = open();
  read(snapshot, { at: 1 }, says('opt_out'));
  read(snapshot, { at: 2 });
  read(snapshot, { at: 3, whole: false }, says('none'));
  snapshot.stated.prune(1_000);
  expect(optedOut(snapshot)).toEqual(['ch_news']);
});

test.each([true, false])(
  'what cannot be read replaces no opt-out of the record: certified %s',
  (certified) => {
    const snapshot = open();
    read(snapshot, { at: 1 }, says('opt_out'));
    const unread = { channels: { ch_news: null }, unread: ['ch_news'] };
    read(snapshot, { at: 2, certified }, JSON.stringify(unread));
    const by = { kind: 'contact', key: ann, ids: [], mapping: 'another' } as const;
    expect(snapshot.stated.optOutsOf(by)).toEqual(['ch_news']);
  },
);

test('of two records with one address, the one that is gone is marked, and no other', () => {
  const snapshot = open();
  read(snapshot, { at: 1 }, says('opt_out'), ['1', '2']);
  read(snapshot, { at: 2 }, says('opt_out'), ['2']);
  snapshot.stated.prune(1_000);
  const outOf = (id: string) =>
    snapshot.stated.optOutsOf({ kind: 'contact', key: 'new@example.com', ids: [id], mapping });
  expect([outOf('1'), outOf('2')]).toEqual([[], ['ch_news']]);
});
