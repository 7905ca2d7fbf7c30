/** Who is gone, and who wants no mail at all: by a field, or by a condition. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compile } from '../../src/config/schema/cel-condition.ts';
import { isGone } from '../../src/records/contact/consent/absence.ts';
import {
  contactDesire,
  fieldNames,
  type ContactFields,
} from '../../src/records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../src/records/contact/observe/contact-rows.ts';
import { strictest } from '../../src/records/contact/observe/strictest-consent.ts';
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
