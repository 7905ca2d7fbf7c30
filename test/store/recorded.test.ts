/** What is recorded is found by the ids that the platform has, or had, for it. */
import { expect, onTestFinished, test } from 'vitest';
import type { RecordedRow } from '../../src/domain/record.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';

const row = (key: string, id: string | undefined, renamed: string[] = []): RecordedRow => ({
  kind: 'contact',
  key,
  id,
  ownership: 'adopted',
  body: JSON.stringify({
    channels: {},
    ...(renamed[0] && { renamed: renamed.map((c) => ({ id: c })) }),
  }),
  shown: undefined,
  desired: undefined,
  seenAt: 0,
});

test('a renamed contact is found by every key that has or had it', () => {
  const { recorded, staging, transaction, purge, close } = openSnapshot('', { inMemory: true });
  onTestFinished(() => close());
  const found = (id: string) =>
    recorded.everOfId({ kind: 'contact', id, notKey: 'now' }).map(({ key }) => key);
  recorded.put(row('now', 'c1'));
  recorded.put(row('other', 'c1'));
  recorded.put(row('old', 'c2', ['c1', 'c3']));
  expect(found('c1')).toEqual(['old', 'other']);
  expect(found('c3')).toEqual(['old']);
  expect(found('c2')).toEqual(['old']);
  recorded.put(row('old', 'c2', ['c3']));
  expect(found('c1')).toEqual(['other']);
  staging.addNoted({ ...row('old', undefined, ['c1']), alone: true });
  transaction(() => staging.adoptNoted());
  expect([found('c1'), found('c3')]).toEqual([['old', 'other'], []]);
  recorded.drop('contact', 'other');
  expect(found('c1')).toEqual(['old']);
  purge.rows('contact', 'old', []);
  expect(found('c1')).toEqual([]);
});

test('a reset forgets how a record was last shown and what was decided, and nothing else', () => {
  const { recorded, close } = openSnapshot('', { inMemory: true });
  onTestFinished(() => close());
  const rows = ['ann', 'bob'].map((key) => ({ ...row(key, key), shown: 's', desired: 'd' }));
  for (const one of rows) recorded.put(one);
  recorded.reset('contact', 'ann');
  expect(recorded.get('contact', 'ann')).toEqual({ ...row('ann', 'ann'), shown: 'reset' });
  expect(recorded.get('contact', 'bob')).toEqual(rows[1]);
  expect(recorded.resets('contact', 9)).toEqual(['ann']);
});
