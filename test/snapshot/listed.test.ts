/** What the platform listed: all that came, each id once, found by whatever it is asked by. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ObservedRow } from '../../src/model/record.ts';
import { openSnapshot, type Snapshot } from '../../src/snapshot/snapshot.ts';

let snapshot: Snapshot;

beforeEach(() => {
  snapshot = openSnapshot(':memory:', { inMemory: true });
  const { close } = snapshot;
  onTestFinished(() => close());
});

function row(id: string, { alias = `${id}@example.com`, body = '{}' } = {}): ObservedRow {
  return { kind: 'contact', id, alias, body, fingerprint: id, createdAt: 1 };
}

function list(...rows: ObservedRow[]): void {
  const { stage, staging } = snapshot;
  stage(() => staging.addListed(rows));
}

function sort(): void {
  const { stage, staging, spans } = snapshot;
  staging.sortListed();
  for (const span of spans.ofListedIds('contact')) {
    stage(() => staging.forgetRelisted('contact', span));
  }
}

const bodies = (key: string): string[] =>
  snapshot.staging.observed('contact', key).map(({ body }) => body);

describe('an id that is listed twice counts once, as it was listed last', () => {
  test('under the same address', () => {
    list(row('a', { body: '1' }), row('b'), row('a', { body: '2' }));
    sort();
    expect(bodies('a@example.com')).toEqual(['2']);
    expect(snapshot.staging.countObserved('contact')).toBe(2);
    expect(snapshot.staging.countCreatedBy('contact', 1)).toBe(2);
  });

  test('under another address', () => {
    list(row('a', { alias: 'old@example.com' }), row('b'));
    list(row('a', { alias: 'new@example.com', body: '2' }));
    sort();
    expect(bodies('old@example.com')).toEqual([]);
    expect(bodies('new@example.com')).toEqual(['2']);
  });

  test('in a second listing', () => {
    list(row('a', { body: '1' }), row('b', { body: '1' }));
    sort();
    list(row('a', { body: '2' }), row('c', { body: '2' }));
    sort();
    expect(['a', 'b', 'c'].map((id) => bodies(`${id}@example.com`))).toEqual([['2'], ['1'], ['2']]);
  });
});

test('what is read by itself takes the place of what was listed, under the key it is given', () => {
  list(row('a', { body: '1' }));
  sort();
  snapshot.staging.addObserved([row('a', { body: '2' })], 'other@example.com');
  expect(bodies('a@example.com')).toEqual([]);
  expect(snapshot.staging.observed('contact', 'other@example.com')).toEqual([
    row('a', { body: '2' }),
  ]);
});

test('of a long listing all of it is found, and what was listed twice counts once', () => {
  const many = 100_500;
  for (let at = 0; at < many; at += 500) {
    list(...Array.from({ length: 500 }, (_, nth) => row(`${at + nth}`)));
  }
  list(row('7', { body: '2' }), row(`${many - 1}`, { body: '2' }));
  sort();
  expect(snapshot.staging.countObserved('contact')).toBe(many);
  expect(['7', '8', `${many - 1}`].map((id) => bodies(`${id}@example.com`))).toEqual([
    ['2'],
    ['{}'],
    ['2'],
  ]);
});
