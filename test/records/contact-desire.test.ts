/** From a CRM record to what it wants. */
import { describe, expect, test } from 'vitest';
import {
  contactDesire,
  fieldNames,
  type ContactFields,
} from '../../src/records/contact/observe/desired-contact.ts';
import { desiredBody } from '../../src/records/contact/observe/contact-state.ts';
import { fields, NEWS, NOON, PRODUCT, ANN, wish } from '../support/records/record-stage.ts';

const wanted = (record: Record<string, unknown>) =>
  desiredBody.parse(JSON.parse(wish(record).body));
const news = (value: unknown) => wanted({ newsletter: value }).channels[NEWS];

describe('the values of a subscription', () => {
  // Every word is in contact-vocabulary.test.ts.
  test.each([
    ['t', 'opt_in'],
    ['unsubscribed', 'opt_out'],
    [' ', null],
  ])('%j is %j', (value, subscription) => {
    expect(news(value)).toBe(subscription);
    const wants = subscription === 'opt_in';
    expect(wish({ newsletter: value })).toMatchObject({ invalid: undefined, wants });
  });
  const unreadable = ['maybe', 2, {}, ['yes']];
  test.each(unreadable)('%j is invalid and never an opt_in', (value) => {
    const row = wish({ newsletter: value });
    expect(row.invalid?.reason).toContain('"newsletter"');
    expect(row).toMatchObject({ key: ANN, wants: false });
    expect(news(value)).toBeNull();
  });
});

describe('an unreadable record', () => {
  test('keeps the opt-outs it states and drops its opt_ins', () => {
    expect(wanted({ newsletter: 'maybe', product: 'no' }).channels).toEqual({
      [NEWS]: null,
      [PRODUCT]: 'opt_out',
    });
    expect(wanted({ newsletter: 'maybe', product: 'yes' }).channels[PRODUCT]).toBeNull();
  });
  test('opts the person out everywhere when it also refuses all mail', () => {
    const row = wish({ newsletter: 'maybe', do_not_mail: 'yes' });
    expect(row.invalid).toBeDefined();
    expect(desiredBody.parse(JSON.parse(row.body)).channels).toEqual({
      [NEWS]: 'opt_out',
      [PRODUCT]: 'opt_out',
    });
  });
  test.each(['', '  ', null, undefined])('without an id (%j) keeps key and opt-outs', (id) => {
    const row = wish({ id, newsletter: 'yes', product: 'no' });
    expect(row).toMatchObject({ id: '', key: ANN, wants: false });
    expect(row.invalid).toMatchObject({ reason: '"id" is empty' });
    expect(desiredBody.parse(JSON.parse(row.body)).channels).toEqual({
      [NEWS]: null,
      [PRODUCT]: 'opt_out',
    });
  });
  test.each(['.', '..', ' .. ', '%2e%2E', '.%2e'])(
    'with the id %j keeps key and opt-outs',
    (id) => {
      const row = wish({ id, newsletter: 'yes', product: 'no' });
      expect(row).toMatchObject({ id: '', key: ANN, wants: false });
      expect(row.invalid).toMatchObject({ cause: 'id-missing', fix: 'give the record another id' });
      expect(desiredBody.parse(JSON.parse(row.body)).channels[PRODUCT]).toBe('opt_out');
    },
  );
  test('with an id that lost a letter keeps key and opt-outs', () => {
    const row = wish({ id: 'caf\uFFFD', newsletter: 'yes', product: 'no' });
    expect(row).toMatchObject({ id: '', key: ANN, wants: false });
    expect(row.invalid).toMatchObject({ reason: '"id" holds U+FFFD in place of a lost letter' });
  });
  test.each(['...', '.a', '%2e%2e%2e', '../x'])('is none with the id %j', (id) => {
    expect(wish({ id, newsletter: 'yes' })).toMatchObject({ id, invalid: undefined });
  });
  test.each(['', 'an n@example.com', 7, {}])('with the address %j belongs to nobody', (email) => {
    const row = wish({ email, newsletter: 'yes' });
    expect(row).toMatchObject({ id: '1', key: undefined, wants: false });
    expect(row.invalid?.reason).toContain('"email"');
  });
  test('is reported without personal values', () => {
    const row = wish({ id: '', email: 'ann at example.com', newsletter: 'secret@word.com' });
    expect(`${row.invalid?.reason}${row.invalid?.fix}`).not.toMatch(/ann|secret|@/);
  });
});

describe('fields for unsubscribed and deleted', () => {
  const unknown = ['Nein', {}, '2999-01-01'];
  test.each(unknown)('%j is not guessed: nobody is opted out or in', (value) => {
    const row = wish({ do_not_mail: value, newsletter: 'yes', product: 'no' });
    expect(row.invalid).toMatchObject({ option: 'contacts.unsubscribed' });
    expect(wanted({ do_not_mail: value, newsletter: 'yes', product: 'no' })).toMatchObject({
      presence: 'present',
      channels: { [NEWS]: null, [PRODUCT]: 'opt_out' },
    });
  });
  test.each([...unknown, 'subscribed', 'opt_out'])('%j does not count as deleted', (value) => {
    const row = wish({ archived: value, newsletter: 'yes', product: 'no' });
    expect(row).toMatchObject({ presence: 'present', wants: false });
    expect(row.invalid).toMatchObject({ option: 'contacts.deleted' });
    expect(wanted({ archived: value, newsletter: 'yes', product: 'no' }).channels).toEqual({
      [NEWS]: null,
      [PRODUCT]: 'opt_out',
    });
  });
  test('an unknown word keeps the opt-out in another field', () => {
    expect(wanted({ archived: 'Nein', do_not_mail: 'yes' }).channels[NEWS]).toBe('opt_out');
  });
  test('every unknown value of a record is reported', () => {
    const row = wish({ do_not_mail: 'Nein', archived: { at: 1 }, newsletter: 'maybe' });
    expect(row.unknown?.map(({ option, text }) => [option, text])).toEqual([
      ['contacts.deleted', undefined],
      ['contacts.unsubscribed', 'Nein'],
      ['contacts.channels[0].subscription', 'maybe'],
    ]);
    expect(row.unknown?.[1]?.fix).toBe(
      'name it: unsubscribed: { field: "do_not_mail", yes: ["…"], no: ["…"] }',
    );
  });
  test('a deleted record still states its opt-outs', () => {
    expect(wanted({ archived: 'yes', newsletter: 'no' })).toMatchObject({
      presence: 'flagged',
      channels: { [NEWS]: 'opt_out' },
    });
  });
});

describe('words of one’s own', () => {
  const own: ContactFields = {
    id: 'id',
    email: 'email',
    deleted: { field: 'state', yes: ['weg'] },
    unsubscribed: { field: 'stop', yes: 'any', no: ['Nein'] },
    channels: [
      { id: NEWS, subscription: { field: 'news', in: ['Ja'], out: ['Nein'], none: ['-'] } },
    ],
  };
  const rowOf = (record: object) =>
    contactDesire(own, () => NOON)({ id: '1', email: ANN, ...record }, 'line 2');
  test.each([
    [{ news: 'Ja' }, 'opt_in', 'present'],
    [{ news: 'nein' }, 'opt_out', 'present'],
    [{ news: '-' }, null, 'present'],
    [{ news: 'ja', stop: 'NEIN' }, 'opt_in', 'present'],
    [{ news: 'ja', stop: 'seit März' }, 'opt_out', 'present'],
    [{ news: 'ja', state: 'weg' }, 'opt_in', 'flagged'],
  ])('%j', (record, subscription, presence) => {
    const row = rowOf(record);
    const body = desiredBody.parse(JSON.parse(row.body));
    expect([body.channels[NEWS], row.presence, row.invalid]).toEqual([
      subscription,
      presence,
      undefined,
    ]);
  });
  test('are requested as fields of the source', () => {
    expect(fieldNames(own)).toEqual(['id', 'email', 'state', 'stop', 'news']);
  });
});

describe('fields', () => {
  const nested: ContactFields = {
    id: 'record.id',
    email: 'person.email',
    channels: [{ id: NEWS, subscription: 'consent.news' }],
  };

  test('dotted paths lead into the record', () => {
    const record = { record: { id: 7 }, person: { email: ANN }, consent: { news: true } };
    const row = contactDesire(nested, () => NOON)(record, 'line 2');
    expect(row).toMatchObject({ id: '7', key: ANN, place: 'line 2', wants: true });
  });
  test('a column with exactly that name comes before a path', () => {
    const record = {
      'record.id': 'a',
      'person.email': ANN,
      'consent.news': 'no',
      consent: { news: 'yes' },
    };
    const row = contactDesire(nested, () => NOON)(record, '');
    expect(row.id).toBe('a');
    expect(desiredBody.parse(JSON.parse(row.body)).channels[NEWS]).toBe('opt_out');
  });
  test('a path that ends early states nothing', () => {
    const row = contactDesire(nested, () => NOON)(
      { 'record.id': 'a', 'person.email': ANN, consent: 'x' },
      '',
    );
    expect(desiredBody.parse(JSON.parse(row.body)).channels[NEWS]).toBeNull();
  });
  test('inherited properties of objects are no fields', () => {
    const odd = { ...nested, channels: [{ id: NEWS, subscription: 'constructor.name' }] };
    const row = contactDesire(odd, () => NOON)({ 'record.id': 'a', 'person.email': ANN }, '');
    expect(row).toMatchObject({ invalid: undefined, wants: false });
  });
  test('an id must be a single value', () => {
    expect(wish({ id: { nested: 1 } }).invalid).toBeDefined();
  });
  test('each field is requested once', () => {
    const twice = [...fields.channels, { id: 'ch_more', subscription: 'newsletter' }];
    expect(fieldNames({ ...fields, channels: twice }).toSorted()).toEqual(
      ['archived', 'do_not_mail', 'email', 'id', 'newsletter', 'product'].toSorted(),
    );
    expect(fieldNames(nested)).toEqual(['record.id', 'person.email', 'consent.news']);
  });
});

describe('fingerprints', () => {
  const first = wish({ newsletter: 'yes', product: 'no' });
  test.each([
    { newsletter: true, product: 0 },
    { newsletter: ' YES ', product: 'Opt_Out' },
    { email: ' ANN@example.com', newsletter: 1, product: 'unsubscribed' },
    { newsletter: 'y', product: 'n', archived: 'no', do_not_mail: ' ' },
    { newsletter: 'y', product: 'n', name: 'not ours to write' },
  ])('are equal for another spelling: %j', (record) => {
    expect(wish(record).fingerprint).toBe(first.fingerprint);
  });
  test.each([
    { newsletter: 'yes' },
    { newsletter: 'no', product: 'no' },
    { newsletter: 'yes', product: 'no', archived: 'yes' },
  ])('differ for another consent: %j', (record) => {
    expect(wish(record).fingerprint).not.toBe(first.fingerprint);
  });
});
