/**
 * The expectations of the exports agree with the exports: each number, line and person is computed
 * once more, without the program.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { expectedOf, refusalOf, type Wish } from './expected-outcome.ts';
import { makeExport } from './german/make.ts';
import { judge, meaningOf } from './judge-rows.ts';
import { exportNames, readExport, type ExportRow } from './read-export.ts';
import { workbookParts } from './read-workbook.ts';
import { makeParts } from './xlsx/make.ts';

const mirrored = exportNames.filter((name) => name !== 'free-text');

/** The options of a list of arguments, by name. */
function optionsOf(flags: readonly string[]): { name: string; value: string }[] {
  return flags.flatMap((name, at) => (at % 2 === 0 ? [{ name, value: flags[at + 1] ?? '' }] : []));
}

/** The words that options state, in the form of expected.json. */
function wordsOf(flags: readonly string[]): Record<string, Record<string, string[]>> {
  const words: Record<string, Record<string, string[]>> = {};
  for (const { name, value } of optionsOf(flags)) {
    const [, column = '', use = '', list = ''] = /^(.*):(\w+)=(.*)$/.exec(value) ?? [];
    if (name === '--words') words[column] = { ...words[column], [use]: list.split(',') };
  }
  return words;
}

/** Counts the values of a column that are not empty, and those that nobody can read. */
function countUnread(rows: readonly ExportRow[], column: string, words = {}) {
  const values = rows.map(({ values }) => values[column] ?? '').filter((value) => value !== '');
  const unread = values.filter((value) => meaningOf(value, 'subscription', words) === undefined);
  return { all: values.length, unread };
}

const hasIn = (wishes: Record<string, Wish> = {}) => Object.values(wishes).includes('in');

describe.each(mirrored)('%s', (name) => {
  const expected = expectedOf(name);
  const { columns, flags, words } = expected;
  const rows = readExport(name);
  const { people, deleted, desired, skipped, invalid } = judge(rows, expected);
  const wishes = new Map([...people, ...deleted]);

  test('has the columns that are to be chosen', () => {
    const { channels, ...plain } = columns;
    const chosen = [...Object.values(plain), ...Object.values(channels)].filter(
      (column) => column !== null,
    );
    const found = rows.flatMap(({ values }) => Object.keys(values));
    expect(found).toEqual(expect.arrayContaining(chosen));
    expect(Object.keys(words).filter((column) => !chosen.includes(column))).toEqual([]);
  });

  test('needs at most three options, which state the channels and fit the columns', () => {
    const stated = optionsOf(flags);
    expect(stated.length).toBeLessThanOrEqual(3);
    const channels = stated.filter((one) => one.name === '--channel').map(({ value }) => value);
    expect(channels).toEqual(Object.entries(columns.channels).map((pair) => pair.join('=')));
    for (const { name: option, value } of stated) {
      if (option === '--id') expect(value).toBe(columns.id);
    }
  });

  test('needs no words but those of the options, and Ja and Nein where it is German', () => {
    const german = {
      Newsletter: { in: ['Ja'], out: ['Nein'], none: ['unbekannt'] },
      Produktinfos: { in: ['Ja'], out: ['Nein'] },
      Gelöscht: { yes: ['Ja'], no: ['Nein'] },
    };
    expect(words).toEqual(name === 'german' ? german : wordsOf(flags));
  });

  test('can be read where it states a consent: at most a fifth of the words is unknown', () => {
    for (const column of Object.values(columns.channels)) {
      const { all, unread } = countUnread(rows, column, words[column]);
      expect(unread.length).toBeLessThan(all / 5);
    }
  });

  test('leads to these people, changes and opt-outs', () => {
    const ins = [...people.values()].map(
      (wish) => Object.values(wish).filter((one) => one === 'in').length,
    );
    const outs = [...people.values()].filter((wish) =>
      Object.values(wish).every((one) => one === 'out'),
    );
    const { plan, optedOut } = expected;
    const numbers = { people: expected.people, desired: expected.desired, plan, optedOut };
    const create = ins.filter((count) => count > 0).length;
    const all = ins.reduce((sum, count) => sum + count, 0);
    expect({
      people: people.size,
      desired,
      plan: { create, opt_in: all - create, opt_out: 0 },
      optedOut: outs.length,
    }).toEqual(numbers);
  });

  test('has these rows that are skipped or invalid', () => {
    expect({ count: skipped.length, lines: skipped }).toEqual(expected.skipped);
    expect(invalid).toEqual(expected.invalid);
  });

  test('has ten samples', () => {
    const found = expected.samples.map(({ address, why }) => {
      const channels = wishes.get(address);
      return { address, channels, why };
    });
    expect(found).toEqual(expected.samples);
    expect(new Set(expected.samples.map(({ address }) => address)).size).toBe(10);
  });

  test('names people of whom a guess would make something else', () => {
    const texts = name === 'xlsx' ? [...makeParts().values()] : JSON.stringify(rows);
    const text = String(texts).toLowerCase();
    for (const { address } of expected.mustNotBeSubscribed) {
      const [local = ''] = address.split('@');
      expect([address, text.includes(`${local}@`)]).toEqual([address, true]);
      expect([address, hasIn(wishes.get(address))]).toEqual([address, false]);
    }
    for (const { address } of expected.mustNotBeUnsubscribed) {
      expect([address, hasIn(people.get(address))]).toEqual([address, true]);
    }
  });
});

describe('free-text', () => {
  const { flags, mustNotBeSubscribed, refusal } = refusalOf('free-text');
  const { column, words } = refusal.mustName;
  const rows = readExport('free-text');
  const { all, unread } = countUnread(rows, column);
  const counts = Object.entries(Object.groupBy(unread, String)).map(
    ([word, same = []]): [string, number] => [word, same.length],
  );

  test('has a column of consent that is named by the option and mostly unknown', () => {
    expect(flags).toEqual(['--channel', `ch_news=${column}`]);
    expect([all, unread.length]).toEqual([45, 39]);
  });

  test('repeats the words that must be named, and no others', () => {
    expect(Object.fromEntries(counts.filter(([, count]) => count >= 3))).toEqual(words);
    expect(Object.keys(words).every((word) => word.length <= 20)).toBe(true);
  });

  test('holds what must not be shown once', () => {
    for (const text of refusal.mustNotShow) {
      expect(counts.filter(([word]) => word.includes(text))).toEqual([[expect.any(String), 1]]);
    }
  });

  test('has the people that a guess would subscribe, all with an unknown word', () => {
    for (const { address } of mustNotBeSubscribed) {
      const values = rows.filter(({ values }) => values['Email'] === address);
      expect(values.map(({ values }) => unread.includes(values[column] ?? ''))).toEqual([true]);
    }
  });
});

describe('the files', () => {
  const bytes = (path: string) => readFileSync(join(import.meta.dirname, path));
  const ends = (text: string | Buffer, end: string) => text.toString('latin1').endsWith(end);

  test('begin and end as the programs write them', () => {
    const unicode = bytes('utf16/contacts.txt').toString('utf16le');
    expect(makeExport().startsWith('\ufeffKundennr.;')).toBe(true);
    expect(makeExport().endsWith('\n')).toBe(false);
    expect(ends(bytes('google-sheets/signups.csv'), ',FALSE,FALSE,')).toBe(true);
    expect(bytes('excel-semicolon/kunden.csv').toString().startsWith('\ufeffKunden')).toBe(true);
    expect(ends(bytes('excel-semicolon/kunden.csv'), ';\r\n')).toBe(true);
    expect(ends(bytes('cp1252/kontakte.csv'), '\r\n')).toBe(true);
    expect(bytes('cp1252/kontakte.csv').includes(0x96)).toBe(true);
    expect(unicode.startsWith('\ufeffID\tName')).toBe(true);
    expect(unicode.endsWith('\r\n')).toBe(true);
    expect(ends(bytes('salesforce-report/report1743412320123.csv'), '"Beispiel GmbH"\n')).toBe(
      true,
    );
  });

  test('of German people are the same bytes in every run', () => {
    const hash = createHash('sha256').update(makeExport()).digest('hex');
    expect(hash).toMatch(/^f563222d376439f3/);
  });

  test('within the workbook are those of its script', () => {
    expect(workbookParts(bytes('xlsx/contacts.xlsx'))).toEqual(makeParts());
  });
});
