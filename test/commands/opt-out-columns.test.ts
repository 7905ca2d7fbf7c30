/** A channel's column in which a yes means no mail: refused as a consent, read as an opt-out. */
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { calling, mirrored } from '../support/commands/mirrored-contacts.ts';
import { scratch } from '../support/sources/source-reading.ts';

const column = 'Email Opt Out';
const emails = Array.from({ length: 40 }, (_, at) => `p${at + 1}@example.com`);
const objects = (email: string) => emails.indexOf(email) % 8 === 3;
const others = emails.filter((email) => !objects(email));
const people = (valueOf = (email: string): string => (objects(email) ? '1' : '0')) =>
  [
    `id,email,${column}`,
    ...emails.map((email, at) => `${at + 1},${email},${valueOf(email)}`),
    '',
  ].join('\n');

async function world(subscription: unknown) {
  const found = await mirrored({
    lines: { contacts: { channels: [{ id: 'ch_news', subscription }] } },
  });
  found.csv(people());
  const subscribed = () =>
    emails.filter((email) => found.shown(email)?.['ch_news'] === 'opt_in').toSorted();
  return { ...found, subscribed };
}

test('with else: in, everybody is in who has not objected', async () => {
  const { call, subscribed, csv, shown } = await world({ optOut: column, else: 'in' });
  expect((await call('check')).code).toBe(0);
  expect((await call('sync')).code).toBe(0);
  expect(subscribed()).toEqual(others.toSorted());
  const [first = '', second = '', third = ''] = others;
  const before = emails.find(objects) ?? '';
  const values = new Map([
    [first, '1'],
    [second, 'maybe'],
    [before, ''],
  ]);
  csv(people((email) => values.get(email) ?? (objects(email) ? '1' : '0')));
  const checked = await call('check');
  expect([checked.code, checked.out]).toEqual([
    1,
    expect.stringContaining(
      'FAIL contacts.channels[0].subscription.optOut: 1 record holds "aaaaa"',
    ),
  ]);
  const { code, out } = await call('sync');
  expect([code, out]).toEqual([4, expect.stringContaining('else: in')]);
  expect((await call('sync')).code).toBe(4);
  expect(shown(first)).toMatchObject({ ch_news: 'opt_out' });
  expect(shown(before)).toMatchObject({ ch_news: 'opt_in' });
  expect(shown(third)).toMatchObject({ ch_news: 'opt_in' });
});

async function exported() {
  const folder = await scratch();
  const path = join(folder, 'people.csv');
  writeFileSync(path, people());
  utimesSync(path, new Date(0), new Date(0));
  const output = join(folder, 'mirror.yaml');
  const init = async (...flags: string[]) => {
    const channel = ['--channel', `ch_news=${column}`];
    const result = await calling(['init', path, '--yes', '--output', output, ...channel, ...flags]);
    const contacts = existsSync(output) ? parse(readFileSync(output, 'utf8')).contacts : undefined;
    return { ...result, stated: contacts?.channels[0].subscription };
  };
  return { init };
}

test('init refuses the column as a consent, and names the flags that say what it is', async () => {
  const { init } = await exported();
  const { code, err, stated } = await init();
  expect([code, stated]).toEqual([2, undefined]);
  expect(err.split('\n').at(-2)).toBe(
    'crm-mirror: column "Email Opt Out" is named like an opt-out, so its yes is not taken as a consent → ' +
      'add --opt-out "Email Opt Out" if yes means no mail, or --else-in "Email Opt Out" if everybody else wants this mail, too; ' +
      'or name all words: --words "Email Opt Out:in=WORD,WORD,out=WORD,WORD"',
  );
});

test.each<[string[], unknown, string]>([
  [['--opt-out', column], { optOut: column }, 'a yes opts out, everything else is no opinion'],
  [['--else-in', column], { optOut: column, else: 'in' }, 'a yes opts out, everybody else is in'],
  [
    ['--opt-out', column, '--else-in', column, '--words', `${column}:no=nie`],
    { optOut: column, no: ['nie'], else: 'in' },
    'a yes opts out, everybody else is in',
  ],
  [['--words', `${column}:in=0,out=1`], { field: column, in: ['0'], out: ['1'] }, 'as you said'],
])('init writes the column with %j', async (flags, expected, because) => {
  const { init } = await exported();
  const { code, out, stated } = await init(...flags);
  expect([code, stated]).toEqual([0, expected]);
  expect(out).toMatch(new RegExp(`^ {2}ch_news +Email Opt Out +.*${because}$`, 'm'));
});

test.each([
  [['--words', `${column}:in=1`], 'add --opt-out'],
  [['--else-in', column, '--words', `${column}:yes=1,no=any`], 'opts in by a no'],
  [
    ['--opt-out', column, 'email'],
    '--opt-out "email": no channel has this column → add --channel "ID=email"',
  ],
  [['--opt-out', column, '--else-in', 'Emial'], '--else-in "Emial": no channel has this column'],
])('init refuses %j', async (flags, reason) => {
  const { init } = await exported();
  const { code, err, stated } = await init(...flags);
  expect([code, stated, err]).toEqual([2, undefined, expect.stringContaining(reason)]);
});
