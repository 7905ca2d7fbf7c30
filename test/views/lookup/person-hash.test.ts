/** The hash of a person finds the person again, in every table of a snapshot. */
import { expect, test } from 'vitest';
import { keyOfHash, namesOf } from '../../../src/views/lookup/person-names.ts';
import { shortHash, shortHasher } from '../../../src/engine/context/person-identity.ts';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';

const row = {
  kind: 'contact',
  id: undefined,
  ownership: 'noted',
  body: '{}',
  shown: undefined,
  desired: undefined,
  seenAt: 0,
} as const;

test('the fast hash is the HMAC, for short, long and non-English addresses', () => {
  const { meta, close } = openSnapshot('', { inMemory: true });
  const fast = shortHasher(meta);
  for (const key of ['a@b.example', 'jörg@bücher.example', `${'x'.repeat(5000)}@b.example`]) {
    expect(fast(key)).toBe(shortHash(meta, key));
  }
  close();
});

test('every recorded person is found by hash, with pauses, and a stranger is not', async () => {
  const snapshot = openSnapshot('', { inMemory: true });
  const keys = Array.from({ length: 2_500 }, (_, at) => `person${at}@example.com`);
  for (const key of keys) snapshot.recorded.put({ ...row, key });
  snapshot.problems.put({
    kind: 'contact',
    key: 'barred@example.com',
    class: 'conflict',
    part: 'ch_news',
    cause: 'left-channel',
    reason: 'left',
    fix: 'ask',
    desired: undefined,
    attempts: 1,
    retryAt: undefined,
    since: 0,
    run: 'r',
  });
  const found = [...snapshot.recordHistory.keys('contact')];
  expect(found.toSorted()).toEqual([...keys, 'barred@example.com'].toSorted());
  const names = namesOf(snapshot, false);
  let pauses = 0;
  const pause = async (): Promise<void> => void (pauses += 1);
  for (const key of ['person0@example.com', 'person999@example.com', 'barred@example.com']) {
    const word = names({ kind: 'contact', key });
    expect(await keyOfHash(word, snapshot, pause)).toBe(key);
  }
  expect(await keyOfHash('#000000000000', snapshot, pause)).toBeUndefined();
  expect(pauses).toBeGreaterThan(2);
  snapshot.close();
});
