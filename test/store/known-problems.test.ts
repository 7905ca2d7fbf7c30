/** What the platform listed: all that came, each id once, found by whatever it is asked by. */
import { everything } from '../../src/store/database/key-range.ts';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ObservedRow } from '../../src/domain/record.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';

let snapshot: Snapshot;

beforeEach(() => {
  snapshot = openSnapshot(':memory:', { inMemory: true });
  const { close } = snapshot;
  onTestFinished(() => close());
});

function row(id: string, stated: Partial<ObservedRow> = {}): ObservedRow {
  const alias = `${id}@example.com`;
  return { kind: 'contact', id, alias, body: '{}', fingerprint: id, createdAt: 1, ...stated };
}

/** As a run lists: each of these is a part of what came. */
function list(...parts: ObservedRow[][]): void {
  const { stage, staging, ranges: spans } = snapshot;
  for (const rows of parts) stage(() => staging.addListed(rows));
  for (const sort of staging.sortings) sort();
  for (const span of spans.ofListedIds('contact')) {
    stage(() => staging.forgetRelisted(span));
  }
}

const bodies = (key: string): string[] =>
  snapshot.staging.observed('contact', key).map(({ body }) => body);

describe('an id listed twice counts once, as last listed', () => {
  test('under the same address', () => {
    list([row('a', { body: '1' }), row('b'), row('a', { body: '2' })]);
    expect(bodies('a@example.com')).toEqual(['2']);
    expect(snapshot.staging.countObserved('contact')).toBe(2);
    expect(snapshot.staging.countCreatedBy('contact', 1)).toBe(2);
    // One that tells no time may be as old.
    snapshot.staging.addObserved([row('c', { createdAt: 2 }), row('d', { createdAt: undefined })]);
    expect(snapshot.staging.countCreatedBy('contact', 1)).toBe(3);
  });

  test('under another address', () => {
    const [before, after] = ['old@example.com', 'new@example.com'];
    list([row('a', { alias: before }), row('b')], [row('a', { alias: after, body: '2' })]);
    expect(bodies(before)).toEqual([]);
    expect(bodies(after)).toEqual(['2']);
  });

  test('when looked up besides the listing', () => {
    list([row('a', { body: '1' }), row('b', { body: '1' })]);
    snapshot.staging.addObserved([row('a', { body: '2' }), row('c'), row('a', { body: '3' })]);
    expect(['a', 'b', 'c'].map((id) => bodies(`${id}@example.com`))).toEqual([
      ['3'],
      ['1'],
      ['{}'],
    ]);
  });

  test('apart from a record of another type', () => {
    list([row('a')], [row('a', { kind: 'template', alias: 'Welcome' })]);
    expect(bodies('a@example.com')).toEqual(['{}']);
    expect(snapshot.staging.observed('template', 'Welcome')).toHaveLength(1);
  });
});

test('a looked-up row is stored under the requested key', () => {
  list([row('a', { body: '1' })]);
  snapshot.staging.addObserved([row('a', { body: '2' })], 'other@example.com');
  expect(bodies('a@example.com')).toEqual([]);
  expect(snapshot.staging.observed('contact', 'other@example.com')).toEqual([
    row('a', { body: '2' }),
  ]);
});

test('a long listing is found completely, and repeated rows count once', () => {
  const [many, part] = [112_000, 1_000];
  const parts = Array.from({ length: many / part }, (_, nth) =>
    Array.from({ length: part }, (_one, at) => row(`${nth * part + at}`)),
  );
  const last = `${many - 1}`;
  list(...parts, [row('7', { body: '2' }), row(last, { body: '2' })]);
  expect(snapshot.staging.countObserved('contact')).toBe(many);
  expect(['7', '8', last].map((id) => bodies(`${id}@example.com`))).toEqual([['2'], ['{}'], ['2']]);
});

test('rows that one run did not sort do not hinder the next one', () => {
  const { stage, staging } = snapshot;
  stage(() => staging.addListed([row('a')]));
  staging.clear();
  staging.addObserved([row('b')]);
  expect([bodies('a@example.com'), bodies('b@example.com')]).toEqual([[], ['{}']]);
});

test('a template renamed in the source keeps the name it was listed under', () => {
  const { stage, staging } = snapshot;
  const welcome = { kind: 'template', key: 'welcome', alias: 'Welcome!' } as const;
  const said = { body: '{}', fingerprint: '', wants: true, presence: 'present' } as const;
  const where = { id: '', place: 'welcome.json', invalid: undefined };
  stage(() => {
    staging.addDesired([{ ...welcome, ...said, ...where }], 1);
    staging.sortRange({ kind: 'template', ...everything });
  });
  list([row('tpl_1', { kind: 'template', alias: 'Welcome!' })]);
  staging.resolveKeys({ kind: 'template' });
  const found = staging.observed('template', 'welcome');
  expect(found.map(({ id, alias }) => ({ id, alias }))).toEqual([
    { id: 'tpl_1', alias: 'Welcome!' },
  ]);
});
