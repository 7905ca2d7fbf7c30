/** Who is gone, and who wants no mail at all: by a field, or by a condition. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compile } from '../../src/config/schema/cel-condition.ts';
import { isGone } from '../../src/records/contact/consent/absent-people.ts';
import {
  contactDesire,
  fieldNames,
  type ContactFields,
} from '../../src/records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../src/records/contact/observe/contact-state.ts';
import { strictest } from '../../src/records/contact/observe/consent-time.ts';
import type { Condition, ConditionResult } from '../../src/domain/condition.ts';
import { NEWS, NOON, PRODUCT } from '../support/records/record-stage.ts';

const comes = (verdict: ConditionResult): Condition => ({
  text: '',
  fields: ['a'],
  judge: () => verdict,
});
const gives = (value: unknown) => ({ when: comes({ gives: value }) });
const fails = { when: comes({ failsOn: ['a'] }) };
const odd = [undefined, null, 'true', '', 1, 0, {}, [true]];

const channels = [
  { id: NEWS, subscription: 'news' },
  { id: PRODUCT, subscription: 'product' },
];
const base: ContactFields = { id: 'id', email: 'email', channels };
const rowOf = (fields: Partial<ContactFields>, record: object = {}) =>
  decodeContact.desired(
    contactDesire({ ...base, ...fields }, () => NOON)(
      { id: '1', email: 'ann@example.com', news: 'yes', product: 'no', ...record },
      'line 2',
    ),
  );
const wishesOf = (row: ReturnType<typeof rowOf>) => [...strictest([row], [NEWS, PRODUCT]).values()];

describe('unsubscribed', () => {
  test.each<[string, Partial<ContactFields>, unknown[], boolean]>([
    ['a condition that gives true', { unsubscribed: gives(true) }, ['opt_out', 'opt_out'], false],
    ['… false', { unsubscribed: gives(false) }, ['opt_in', 'opt_out'], false],
    ['… that fails', { unsubscribed: fails }, [null, 'opt_out'], true],
    ['a field that is true', { unsubscribed: 'news' }, ['opt_out', 'opt_out'], false],
    ['a field that is not', { unsubscribed: 'product' }, ['opt_in', 'opt_out'], false],
  ])('%s', (_, fields, wishes, isInvalid) => {
    const row = rowOf(fields);
    expect(wishesOf(row)).toEqual(wishes);
    expect(row.invalid !== undefined).toBe(isInvalid);
  });

  test.each(odd)('%j is invalid: nobody is opted in, opt-outs stand', (value) => {
    const row = rowOf({ unsubscribed: gives(value) });
    expect([wishesOf(row), row.wants]).toEqual([[null, 'opt_out'], false]);
    expect(row.invalid?.reason).toBe('contacts.unsubscribed.when gives neither true nor false');
  });

  test('is reported with its field when it fails, and another record does not opt in', () => {
    const row = rowOf({ unsubscribed: fails });
    expect(row.invalid).toMatchObject({
      reason: 'contacts.unsubscribed.when cannot be evaluated with this value of "a"',
      fix: 'correct it in the CRM, or have the condition allow for it',
    });
    expect(strictest([row, rowOf({})], [NEWS]).get(NEWS)).toBeNull();
  });

  test('counts out of scope, too, and has to be readable there', () => {
    const include = gives(false).when;
    expect(wishesOf(rowOf({ include, unsubscribed: gives(true) }))).toEqual(['opt_out', 'opt_out']);
    expect(rowOf({ include, unsubscribed: fails }).invalid).toBeDefined();
  });
});

describe('a list of unsubscribed', () => {
  const yes = 'yes';
  const own = { field: 'c', yes: 'any' } as const;
  const list = ['a', { field: 'b', yes: ['Ja'], no: ['Nein'] }, own];
  const out = ['opt_out', 'opt_out'];
  const asStated = ['opt_in', 'opt_out'];
  const invalid = [null, 'opt_out'];

  test.each<[string, object, unknown[], string | undefined]>([
    ['no value at all', {}, asStated, undefined],
    ['a no in each', { a: 'no', b: 'Nein', c: 'no' }, asStated, undefined],
    ['a yes in the first', { a: yes, b: 'Nein' }, out, undefined],
    ['a word of its own in the second', { a: 'no', b: 'Ja' }, out, undefined],
    ['any value in the third', { c: 'by phone' }, out, undefined],
    ['a yes in each', { a: yes, b: 'Ja', c: 'x' }, out, undefined],
    ['a date', { a: '12-03-2024' }, out, undefined],
    ['an unknown word in the first', { a: 'Ja' }, invalid, 'contacts.unsubscribed[0]'],
    ['an unknown word in the second', { b: 'maybe' }, invalid, 'contacts.unsubscribed[1]'],
    ['an unknown word, and a yes after it', { a: '?', c: 'x' }, out, 'contacts.unsubscribed[0]'],
    ['a yes, and an unknown word after it', { a: yes, b: '?' }, out, 'contacts.unsubscribed[1]'],
    ['a list that holds a yes', { b: ['Ja', 'x'] }, out, undefined],
    ['a list without a yes', { b: ['x'] }, asStated, undefined],
    ['a list where no yes is named', { a: [yes] }, invalid, 'contacts.unsubscribed[0]'],
  ])('%s', (_, record, wishes, option) => {
    const row = rowOf({ unsubscribed: list }, record);
    expect(wishesOf(row)).toEqual(wishes);
    expect(row.invalid?.option).toBe(option);
    expect(row.wants).toBe(wishes[0] === 'opt_in');
  });

  test('names each unknown value, its place in the list, and how to name it', () => {
    const row = rowOf({ unsubscribed: list }, { a: 'Ja', b: '?' });
    expect(row.unknown?.map(({ option, text }) => [option, text])).toEqual([
      ['contacts.unsubscribed[0]', 'Ja'],
      ['contacts.unsubscribed[1]', '?'],
    ]);
    expect(row.unknown?.[1]?.fix).toBe(
      'name it in unsubscribed[1]: { field: "b", yes: ["…"], no: ["…"] }',
    );
  });

  test.each<[object, string | undefined]>([
    [{ a: yes, c: 'x' }, 'a, c'],
    [{ b: 'Ja', news: 'no' }, 'b, news'],
    [{ news: 'no' }, 'news'],
    [{ a: 'no' }, undefined],
  ])('tells the fields that state the opt-out of %j', (record, by) => {
    expect(rowOf({ unsubscribed: list }, record).value.outBy?.[NEWS]).toBe(by);
  });

  test('takes conditions, and names the place of one that fails', () => {
    expect(wishesOf(rowOf({ unsubscribed: ['a', gives(true)] }))).toEqual(out);
    expect(wishesOf(rowOf({ unsubscribed: ['a', gives(false)] }))).toEqual(asStated);
    const row = rowOf({ unsubscribed: ['b', gives('true')] });
    expect(row.invalid?.reason).toBe('contacts.unsubscribed[1].when gives neither true nor false');
  });

  test('requires the fields of each', () => {
    const fields = fieldNames({ ...base, unsubscribed: ['b', gives(true), own, 'b'] });
    expect(fields).toEqual(['id', 'email', 'b', 'a', 'c', 'news', 'product']);
  });

  test('of one setting means what that setting means', () => {
    for (const value of ['yes', 'no', '', 'Ja', '12.03.2024']) {
      const [one, many] = ['a', ['a']].map((unsubscribed) => rowOf({ unsubscribed }, { a: value }));
      expect([many?.fingerprint, many?.wants]).toEqual([one?.fingerprint, one?.wants]);
    }
  });

  test('counts out of scope, too', () => {
    const include = gives(false).when;
    expect(wishesOf(rowOf({ include, unsubscribed: list }, { c: 'x' }))).toEqual(out);
  });
});

describe('deleted', () => {
  test.each<[string, Partial<ContactFields>, string, boolean]>([
    ['a condition that gives true', { deleted: gives(true) }, 'flagged', true],
    ['… false', { deleted: gives(false) }, 'present', false],
    ['… that fails', { deleted: fails }, 'present', false],
    ['… anything else', { deleted: gives('true') }, 'present', false],
    ['a field that is true', { deleted: 'news' }, 'flagged', true],
    ['a field that is not', { deleted: 'product' }, 'present', false],
  ])('%s', (_, fields, presence, gone) => {
    const row = rowOf(fields);
    expect(row.presence).toBe(presence);
    expect(isGone([row])).toBe(gone);
  });

  test.each(odd)('%j is invalid, and nobody is gone; opt-outs stand', (value) => {
    const row = rowOf({ deleted: gives(value) });
    expect([row.presence, wishesOf(row)]).toEqual(['present', [null, 'opt_out']]);
    expect(row.invalid?.reason).toBe('contacts.deleted.when gives neither true nor false');
  });

  test('is not evaluated for records out of scope', () => {
    const row = rowOf({ include: gives(false).when, deleted: fails });
    expect([row.presence, row.invalid]).toEqual(['outside', undefined]);
  });
});

test('for any result: no opt-in unless plainly false, no removal unless plainly true', () => {
  const verdict = fc.oneof(
    fc.constantFrom(true, false, null).map((value): ConditionResult => ({ gives: value })),
    fc.anything().map((value): ConditionResult => ({ gives: value })),
    fc.array(fc.string()).map((failsOn): ConditionResult => ({ failsOn })),
  );
  fc.assert(
    fc.property(verdict, verdict, (gone, none) => {
      const row = rowOf({ deleted: { when: comes(gone) }, unsubscribed: { when: comes(none) } });
      const isPlain = (found: ConditionResult, value: boolean) =>
        'gives' in found && found.gives === value;
      if (wishesOf(row)[0] === 'opt_in') {
        expect([isPlain(gone, false), isPlain(none, false)]).toEqual([true, true]);
      }
      if (isGone([row])) expect(isPlain(gone, true)).toBe(true);
      expect(wishesOf(row)[1]).toBe('opt_out');
    }),
    { numRuns: 2000 },
  );
});

test('the fields are requested from the source, and conditions see texts', () => {
  const found = compile('record.stage in ["lost", "dead"] || record["x.y"] == "true"', {
    nullable: false,
  });
  if (!('judge' in found)) throw new Error(found.reason);
  const fields = { ...base, unsubscribed: { when: found }, deleted: gives(false) };
  expect(fieldNames(fields)).toEqual(['id', 'email', 'a', 'stage', 'x.y', 'news', 'product']);
  const record = (rest: object) => wishesOf(rowOf({ unsubscribed: { when: found } }, rest))[0];
  expect(record({ stage: 'lost', x: {} })).toBe('opt_out');
  expect(record({ stage: '', x: { y: true } })).toBe('opt_out');
  expect(record({ stage: '', x: { y: false } })).toBe('opt_in');
});
