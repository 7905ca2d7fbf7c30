/** Words of its own that a field may name, and what is said of wrong ones. */
import { afterAll, describe, expect, test } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const contacts = (subscription: string, more = '') =>
  minimal(
    'contacts:\n  source: { type: csv, path: p }\n  id: i\n  email: e\n' +
      `  channels: [{ id: a, subscription: ${subscription} }]\n${more}`,
  );

test('words can be texts, numbers and booleans', () => {
  const found = load(
    contacts(
      '{ field: f, in: [Ja, 2], out: [Nein, true], none: [unbekannt] }',
      '  deleted: { field: d, yes: any, no: [7] }\n  unsubscribed: { field: u, no: ["-"] }',
    ),
  ).contacts;
  expect(found?.channels[0]?.subscription).toEqual({
    field: 'f',
    in: ['Ja', '2'],
    out: ['Nein', 'true'],
    none: ['unbekannt'],
  });
  expect(found?.deleted).toEqual({ field: 'd', yes: 'any', no: ['7'] });
  expect(found?.unsubscribed).toEqual({ field: 'u', no: ['-'] });
});

describe('a format of consentAt', () => {
  const consentAt = (value: string) => contacts('s', `  consentAt: ${value}`);

  test('is a field with a format and a zone', () => {
    const stated = '{ field: w, format: "dd.MM.yyyy HH:mm", timezone: Europe/Berlin }';
    const found = { field: 'w', format: 'dd.MM.yyyy HH:mm', timezone: 'Europe/Berlin' };
    expect(load(consentAt(stated)).contacts?.consentAt).toEqual(found);
    const day = '{ field: w, format: d.M.yyyy }';
    expect(load(consentAt(day)).contacts?.consentAt).toEqual({ field: 'w', format: 'd.M.yyyy' });
  });

  test.each([
    ['{ field: w, format: dd.MM.yy, timezone: UTC }', 'format  has the unknown part yy'],
    ['{ field: w, format: dd.MM.yyyy HH, timezone: UTC }', 'format  has no minute'],
    ['{ field: w, format: "dd.MM.yyyy HH:mm" }', 'timezone  is missing'],
    ['{ field: w, format: dd.MM.yyyy, timezone: Berlin }', 'timezone  is no time zone'],
    ['{ field: w, format: dd.MM.yyyy, timezone: EST }', 'timezone  EST has no summer time'],
    ['{ field: w }', 'format  is missing'],
  ])('%s: %s', (value, mistake) => {
    expect(mistakes(consentAt(value))?.join()).toContain(`contacts.consentAt.${mistake}`);
  });
});

describe('a sign that YAML reads in its own way', () => {
  test.each([
    ['{ field: f, none: [-] }', 56, '-'],
    ['{ field: f, none: [-, x] }', 56, '-'],
    ['{ field: f, out: [Nein, -] }', 61, '-'],
    ['{ field: f, in: [#1] }', 54, '#1'],
    ['{ field: f, in: [Ja, #1] }', 58, '#1'],
    ['{ field: f, in: [*] }', 54, '*'],
    ['{ field: f, in: [@] }', 54, '@'],
  ])('in %s needs quotes', (subscription, col, word) => {
    const [found = ''] = mistakes(contacts(subscription)) ?? [];
    expect(found).toContain(`:${col}  YAML reads this sign in its own way`);
    expect(found).toContain(`→ put the word in quotes: "${word}"`);
  });

  test('is accepted in quotes', () => {
    const found = load(contacts('{ field: f, none: ["-"], in: ["#1"] }')).contacts;
    expect(found?.channels[0]?.subscription).toEqual({ field: 'f', none: ['-'], in: ['#1'] });
  });
});

test('unsubscribed takes one setting, or a list of them', () => {
  const list = '[a, { field: b, yes: any }, { field: c, yes: [Ja], no: [Nein] }]';
  const found = load(contacts('s', `  unsubscribed: ${list}`)).contacts;
  const words = { field: 'c', yes: ['Ja'], no: ['Nein'] };
  expect(found?.unsubscribed).toEqual(['a', { field: 'b', yes: 'any' }, words]);
});

describe('a column that says who does not want a channel', () => {
  test.each<[string, object]>([
    ['{ optOut: Email Opt Out }', { optOut: 'Email Opt Out' }],
    [
      '{ optOut: stop, yes: [Ja], no: [0], else: in }',
      { optOut: 'stop', yes: ['Ja'], no: ['0'], else: 'in' },
    ],
    ['{ optOut: stop, yes: any }', { optOut: 'stop', yes: 'any' }],
    [
      '{ field: Email Opt Out, in: [0], out: [1] }',
      { field: 'Email Opt Out', in: ['0'], out: ['1'] },
    ],
    [
      `{ when: 'record["Email Opt Out"] != "1"' }`,
      expect.objectContaining({ when: expect.anything() }),
    ],
  ])('is stated as %s', (subscription, expected) => {
    expect(load(contacts(subscription)).contacts?.channels[0]?.subscription).toEqual(expected);
  });

  const word = 'contacts.channels[0].subscription';
  test.each([
    ['Email Opt Out', word],
    ['HASOPTEDOUTOF_unsubscribed', word],
    ['properties.hs_email_optout_123', word],
    ['consents.do_not_mail', word],
    ['{ field: Email Opt Out }', `${word}.field`],
    ['{ field: Email Opt Out, none: ["-"] }', `${word}.field`],
    ['{ field: Email Opt Out, in: [yes] }', `${word}.field`],
    ['{ field: Email Opt Out, in: [no], out: [] }', `${word}.field`],
    ['{ field: Email Opt Out, out: [yes] }', `${word}.field`],
  ])('is refused as a consent: %s', (subscription, place) => {
    const found = mistakes(contacts(subscription)) ?? [];
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/:\d+:\d+ {2}/);
    expect(found[0]).toContain(`  ${place}  is named like an opt-out`);
    expect(found[0]).toContain('{ optOut: COLUMN }');
    expect(found[0]).toContain('{ field: COLUMN, in: […], out: […] }');
    expect(found[0]).not.toMatch(/Email Opt Out|hs_email/);
  });
});

describe('a mistake in words', () => {
  const word = 'contacts.channels[0].subscription';
  test.each([
    ['{ field: f, in: [Ja], out: [" JA "] }', '', `${word}.out[0]  stands in in too`],
    ['{ field: f, in: [1], none: ["1"] }', '', `${word}.none[0]  stands in in too`],
    [
      's',
      '  deleted: { field: d, yes: [a], no: [b, A] }',
      'contacts.deleted.no[1]  stands in yes too',
    ],
    ['s', '  unsubscribed: { field: d, yes: [""] }', 'contacts.unsubscribed.yes[0]  is empty'],
    ['s', '  unsubscribed: { field: d, yes: all }', 'contacts.unsubscribed.yes  is not known here'],
    ['s', '  unsubscribed: { yes: [a] }', 'contacts.unsubscribed.field  is missing'],
    ['s', '  unsubscribed: []', 'contacts.unsubscribed  is empty'],
    ['s', '  unsubscribed: [a, { yes: [a] }]', 'contacts.unsubscribed[1].field  is missing'],
    [
      's',
      '  unsubscribed: [a, { field: d, yess: [a] }]',
      'contacts.unsubscribed[1].yess  is not known here',
    ],
    ['s', '  unsubscribed: [a, 1]', 'contacts.unsubscribed[1]  is not a text'],
    ['s', '  deleted: { field: d, yess: [a] }', 'contacts.deleted.yess  is not known here'],
    ['s', '  deleted: { field: d, in: [a] }', 'contacts.deleted.in  is not known here'],
    ['{ field: f, yes: [Ja] }', '', `${word}.yes  is not known here`],
    ['{ field: f, optOut: g }', '', `${word}.optOut  is not known here  → remove it`],
    ['{ optOut: f, in: [Ja] }', '', `${word}.in  is not known here  → remove it`],
    ['{ optOut: f, else: out }', '', `${word}.else  is not known here  → use in`],
    ['{ optOut: f, yes: [a], no: [A] }', '', `${word}.no[0]  stands in yes too`],
    ['{ else: in }', '', `${word}.optOut  is missing`],
    ['{ field: f, in: Ja }', '', `${word}.in  is not a list`],
  ])('%s %s', (subscription, more, expected) => {
    const found = mistakes(contacts(subscription, more)) ?? [];
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`  ${expected}`);
  });
});
