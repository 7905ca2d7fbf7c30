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
    ['s', '  deleted: { field: d, yess: [a] }', 'contacts.deleted.yess  is not known here'],
    ['s', '  deleted: { field: d, in: [a] }', 'contacts.deleted.in  is not known here'],
    ['{ field: f, yes: [Ja] }', '', `${word}.yes  is not known here`],
    ['{ field: f, in: Ja }', '', `${word}.in  is not a list`],
  ])('%s %s', (subscription, more, expected) => {
    const found = mistakes(contacts(subscription, more)) ?? [];
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`  ${expected}`);
  });
});
