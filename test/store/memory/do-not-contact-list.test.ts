/** What the list answers about a person: by the address, and by each id of the CRM. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { RememberedOptOut } from '../../../src/domain/do-not-contact.ts';
import { memoryWithoutFile } from '../../../src/store/memory/memory.ts';

const ann = 'ann@example.com';
const out: RememberedOptOut = {
  part: 'ch_news',
  cause: 'opt_out',
  contact: 'c1',
  after: null,
  by: 5,
};

let list: ReturnType<ReturnType<typeof memoryWithoutFile>['list']>;

beforeEach(() => {
  const memory = memoryWithoutFile();
  list = memory.list();
  onTestFinished(() => memory.close());
});

const adds = (...all: RememberedOptOut[]) =>
  list.write([{ key: ann, ids: ['1'], adds: all, ends: [] }], 9);
const found = (key: string, ...ids: string[]) =>
  list.concerning({ key, ids }).map(({ cause, through, by, bears }) => [cause, through, by, bears]);

test('an entry concerns the address, and who has one of its ids, unless it is a bounce', () => {
  adds(out, { ...out, part: '*', cause: 'bounce' });
  expect(found(ann, '1')).toEqual([
    ['opt_out', 'address', 5, true],
    ['bounce', 'address', 5, true],
  ]);
  expect(found('new@example.com', '2', '1')).toEqual([['opt_out', 'id', 5, true]]);
  expect(found('new@example.com', '2')).toEqual([]);
  // An id that the entry does not have yet is said.
  expect(found(ann, '1', '2')[0]).toEqual(['opt_out', 'address', 5, false]);
});

test.each([
  [4, 5],
  [6, 6],
])('the same opt-out, made by %i at the latest, is made by %i: never earlier', (by, kept) => {
  adds(out);
  adds({ ...out, by });
  expect(found(ann)).toEqual([['opt_out', 'address', kept, true]]);
});

test.each<[string, Partial<RememberedOptOut>]>([
  ['channel', { part: 'ch_product' }],
  ['cause', { cause: 'doubtful' }],
  ['contact', { contact: 'c2' }],
])('an opt-out of another %s is another entry', (_, other) => {
  adds(out, { ...out, ...other });
  expect(list.concerning({ key: ann, ids: [] })).toHaveLength(2);
});

describe('an entry that ends', () => {
  test('concerns nobody any more, and can be made anew', () => {
    adds(out);
    const [{ seq } = { seq: 0 }] = list.concerning({ key: ann, ids: [] });
    list.write([{ key: ann, ids: [], adds: [], ends: [{ seq, why: 'allowed' }] }], 10);
    expect([found(ann), found('new@example.com', '1')]).toEqual([[], []]);
    adds({ ...out, by: 2 });
    expect(found(ann)).toEqual([['opt_out', 'address', 2, true]]);
  });

  test('is freed from the ids of another address, and from no other id', () => {
    list.write([{ key: ann, ids: ['1', '2'], adds: [out], ends: [] }], 9);
    const [{ seq } = { seq: 0 }] = list.concerning({ key: ann, ids: [] });
    list.write([{ key: 'new@example.com', ids: ['1'], adds: [], ends: [], frees: [seq] }], 10);
    expect(found('new@example.com', '1')).toEqual([]);
    expect(found('other@example.com', '2')).toEqual([['opt_out', 'id', 5, true]]);
    expect(found(ann)).toEqual([['opt_out', 'address', 5, true]]);
  });
});

test('who was erased is told by the address alone, also after the list was asked before', () => {
  expect(list.erased()).toBeUndefined();
  adds(out);
  expect(list.erased()).toBeUndefined();
  adds({ ...out, part: '*', cause: 'erasure', contact: null });
  const isErased = list.erased();
  expect([isErased?.(ann), isErased?.('new@example.com')]).toEqual([true, false]);
});
