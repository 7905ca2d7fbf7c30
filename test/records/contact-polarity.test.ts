/** A channel's column that says who does not want it, and one that is only named so. */
import { describe, expect, test } from 'vitest';
import type { StatedField } from '../../src/records/contact/values/field-statement.ts';
import { isOptOutField } from '../../src/domain/opt-out-names.ts';
import { mappedColumns } from '../../src/records/contact/observe/column-meanings.ts';
import {
  contactDesire,
  fieldNames,
  type ContactFields,
} from '../../src/records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../src/records/contact/observe/contact-state.ts';
import { jsonRecords } from '../../src/sources/shared/record-fields.ts';
import { ANN, NEWS, NOON } from '../support/records/record-stage.ts';

const column = 'Email Opt Out';
const fieldsOf = (subscription: StatedField): ContactFields => ({
  id: 'id',
  email: 'email',
  channels: [{ id: NEWS, subscription }],
});
const rowOf = (subscription: StatedField, record: Record<string, unknown>) =>
  contactDesire(fieldsOf(subscription), () => NOON)({ id: '1', email: ANN, ...record }, 'line 2');
/** opt_in, opt_out, none, or invalid. */
const said = (subscription: StatedField, value: unknown, name = column) =>
  readingOf(subscription, { [name]: value });
const readingOf = (subscription: StatedField, record: Record<string, unknown>) => {
  const row = rowOf(subscription, record);
  if (row.invalid) return row.wants ? 'invalid, and in' : 'invalid';
  return decodeContact.desired(row).value.channels[NEWS] ?? 'none';
};

const yes = ['true', 'YES', 'y', 1, true, 'on', 'opt_out', 'unsubscribed', '2026-03-01', '1.3.26'];
const no = ['false', 'No', 'n', 0, false, 'off', 'opt_in', 'subscribed'];
const empty = ['', ' ', null, undefined, '0000-00-00'];
const unreadable = ['maybe', 'Nein', 'x', '2999-01-01', '0001-01-01', ['yes'], { at: 'yes' }];

describe.each<[string, StatedField, string]>([
  ['optOut', { optOut: column }, 'none'],
  ['optOut with else: in', { optOut: column, else: 'in' }, 'opt_in'],
])('%s', (_, subscription, otherwise) => {
  test.each(yes)('takes %j for an opt-out', (value) => {
    expect(said(subscription, value)).toBe('opt_out');
  });
  test.each([...no, ...empty])(`takes %j for ${otherwise}`, (value) => {
    expect(said(subscription, value)).toBe(otherwise);
  });
  test.each(unreadable)('makes a record with %j invalid, and opts nobody in', (value) => {
    expect(said(subscription, value)).toBe('invalid');
  });
});

describe('own words of optOut', () => {
  const own = { optOut: 'stop', yes: ['Ja'], no: ['Nein', '-'] };
  test.each([
    ['ja', 'opt_out', 'opt_out'],
    ['yes', 'opt_out', 'opt_out'],
    ['NEIN', 'none', 'opt_in'],
    ['-', 'none', 'opt_in'],
    ['vielleicht', 'invalid', 'invalid'],
  ])('%s: %s, with else: in %s', (value, alone, withElse) => {
    expect(said(own, value, 'stop')).toBe(alone);
    expect(said({ ...own, else: 'in' }, value, 'stop')).toBe(withElse);
  });
  test('with any: every value that is neither empty nor a no', () => {
    const any = { optOut: column, yes: 'any', no: ['nie'], else: 'in' } as const;
    const found = ['seit März', '2999-01-01', 'nie', 'no', ''].map((value) => said(any, value));
    expect(found).toEqual(['opt_out', 'opt_out', 'opt_in', 'opt_in', 'opt_in']);
  });
  test('are advised with the whole setting', () => {
    const option = 'contacts.channels[0].subscription.optOut';
    const fix = 'name it: subscription: { optOut: "stop", yes: ["…"], no: ["…"], else: in }';
    const { invalid, unknown } = rowOf({ ...own, else: 'in' }, { stop: 'x' });
    expect(invalid).toMatchObject({ option, fix, reason: '"stop" holds no known word' });
    expect(unknown).toEqual([{ option, fix, unknown: 'word', text: 'x' }]);
  });
});

test.each<[unknown, string]>([
  [{ stop: '1' }, 'opt_out'],
  [{ stop: '0' }, 'opt_in'],
  [{ stop: null }, 'opt_in'],
  [{}, 'opt_in'],
  [null, 'opt_in'],
  [[], 'opt_in'],
  ['no news', 'invalid'],
  [1, 'invalid'],
  [[{ stop: '1' }], 'invalid'],
  [{ stop: ['1'] }, 'invalid'],
  [{ stop: { at: '1' } }, 'invalid'],
])(
  'with else: in, a path that cannot be read to its end opts nobody in: %j',
  (consent, expected) => {
    const subscription = { optOut: 'consent.stop', else: 'in' } as const;
    expect(said(subscription, consent, 'consent')).toBe(expected);
    // A JSON source fills the fields that a record lacks.
    const fields = fieldNames(fieldsOf(subscription));
    const value = { id: '1', email: ANN, consent };
    const record = jsonRecords(fields).recordOf(value, 'line 2', JSON.stringify(value));
    expect(readingOf(subscription, 'value' in record ? record.value : {})).toBe(expected);
  },
);

test.each<[consents: unknown, withElse: string, alone: string]>([
  [undefined, 'opt_in', 'none'],
  [[], 'opt_in', 'none'],
  [[{ at: { email: 'no' } }, { at: {} }], 'opt_in', 'none'],
  [[{ at: { email: 'no' } }, { at: { email: 'revoked' } }], 'opt_out', 'opt_out'],
  [{ at: { email: 'revoked' } }, 'opt_out', 'opt_out'],
  ['revoked', 'invalid', 'none'],
  [[{ at: 'revoked' }], 'invalid', 'none'],
])('each element of a list is looked into: %j', (consents, withElse, alone) => {
  const path = { optOut: 'its.consents[].at.email', yes: ['revoked'] };
  expect(said({ ...path, else: 'in' }, { consents }, 'its')).toBe(withElse);
  expect(said(path, { consents }, 'its')).toBe(alone);
});

describe('a column that is named like an opt-out', () => {
  test.each<[string, StatedField]>([
    ['alone', column],
    ['as a field', { field: column }],
    ['with none', { field: column, none: ['-'] }],
    ['with in', { field: column, in: ['Ja'] }],
    ['with out', { field: column, out: ['Nein'] }],
    ['with both', { field: column, in: ['Ja'], out: ['Nein'] }],
  ])('is never read by the built-in words: %s', (_, subscription) => {
    for (const value of [...yes, ...no]) expect(said(subscription, value)).toBe('invalid');
  });
  test('is read by the words that the configuration states', () => {
    const subscription = { field: column, in: ['0', 'no'], out: ['1'], none: ['?'] };
    const found = [0, 'No', '1', '?', ''].map((value) => said(subscription, value));
    expect(found).toEqual(['opt_in', 'opt_in', 'opt_out', 'none', 'none']);
  });
  test('is recognized by a whole path and by its last part', () => {
    const alike = ['properties.hs_email_optout_12', 'optOut.value', 'phone.doNotMail'];
    alike.push('HasOptedOutOfFax', 'Unsubscribed from campaigns');
    for (const name of alike) expect([name, isOptOutField(name)]).toEqual([name, true]);
    for (const name of ['properties.newsletter', 'consent.news', 'optional.outline', 'deleted'])
      expect([name, isOptOutField(name)]).toEqual([name, false]);
  });
});

test('the column of optOut is required, and its setting is named where its values are shown', () => {
  const fields = fieldsOf({ optOut: column, else: 'in' });
  expect(fieldNames(fields)).toEqual(['id', 'email', column]);
  const shown = mappedColumns(fields, () => NOON).at(-1);
  expect(shown).toMatchObject({
    option: 'contacts.channels[0].subscription.optOut',
    channel: NEWS,
    fields: [column],
    holds: 'words',
  });
  const means = ['1', '', 'x'].map((value) => shown?.read({ [column]: value }).means);
  expect(means).toEqual(['out', 'in', 'unknown']);
});
