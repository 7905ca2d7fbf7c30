/**
 * Exports whose opt-outs stand in several columns: at most three flags decide all of them, and
 * `init` names them in one line.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calling } from '../support/commands/mirrored-contacts.ts';
import { scratch } from '../support/sources/source-reading.ts';

/** An export of twenty people, of whom the first ones have these rows, and the others the last. */
async function exported(header: string, rows: readonly string[]) {
  const path = join(await scratch(), 'people.csv');
  const all = Array.from({ length: 20 }, (_, at) => rows[at] ?? rows.at(-1) ?? '');
  const lines = all.map((row, at) => `${at + 1};p${at + 1}@example.com;${row}`);
  writeFileSync(path, `${[`id;Email;${header}`, ...lines].join('\n')}\n`);
  utimesSync(path, new Date(0), new Date(0));
  const output = join(path, '..', 'mirror.yaml');
  return { path, output, init: (flags: readonly string[]) => initialized(path, output, flags) };
}

async function initialized(path: string, output: string, flags: readonly string[]) {
  const argv = ['init', path, '--yes', '--addresses', '--output', output, ...flags];
  const { code, out, err } = await calling(argv);
  const stateOf = (at: number) =>
    new RegExp(`^ {2}p${at}@example\\.com +(in|out|–) `, 'm').exec(out)?.[1];
  const subscribed = Array.from({ length: 20 }, (_, at) => at + 1).filter(
    (at) => stateOf(at) === 'in',
  );
  return { code, err, out, subscribed, isWritten: existsSync(output) };
}

/** The flags that the last line of a refusal adds to those that were given. */
function lineOf(err: string): string[] {
  const line = err.split(' → crm-mirror init ').at(-1) ?? '';
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${line}`]);
  const [, ...flags] = String(words).split('\0').slice(0, -1);
  const own = flags.indexOf('--output');
  return flags.filter((flag, at) => flag !== '--yes' && at !== own && at !== own + 1);
}

const news = ['--channel', 'ch_news=Newsletter'];

test.each<{
  about: string;
  header: string;
  rows: string[];
  /** Flags that state the truth about the export. */
  flags: string[];
  /** How many of the first people opted out. */
  optedOut: number;
}>([
  {
    about: 'flags beside the opt-out: one --unused for all of them',
    header: 'Newsletter;VIP;Kunde;Region, alt;Abgemeldet am',
    rows: ['Ja;1;0;;03.04.2025', 'Ja;0;1;x;', 'Ja;0;1;;'],
    flags: ['--unused', String.raw`VIP,Kunde,Region\, alt`],
    optedOut: 1,
  },
  {
    about: 'several opt-outs with words of their own, and flags',
    header: 'Newsletter;Werbesperre;Robinson;VIP;KZ',
    rows: ['Ja;X;;1;', 'Ja;;J;0;', 'Ja;;;0;W', 'Ja;N;N;1;K', 'Ja;N;N;0;K'],
    flags: ['--unused', 'VIP', '--words', 'Werbesperre:yes=X', 'Robinson:yes=J', 'KZ:yes=W,no=K'],
    optedOut: 3,
  },
  {
    about: 'a status column without a name that says so',
    header: 'Newsletter;Status;Aktiv;Test',
    rows: ['yes;Unsubscribed;1;0', 'yes;Cleaned;1;0', 'yes;Lead;1;1', 'yes;Customer;0;0'],
    flags: ['--unused', 'Aktiv,Test', '--words', 'Status:yes=Cleaned,no=Lead,Customer'],
    optedOut: 2,
  },
  {
    about: 'flags that are opt-outs, of known words alone',
    header: 'Newsletter;K1;K2;K3',
    rows: ['yes;1;0;0', 'yes;0;1;0', 'yes;0;0;1', 'yes;0;0;0'],
    flags: ['--unused', 'K3', '--unsubscribed', 'K1,K2'],
    optedOut: 2,
  },
  {
    about: 'no opt-out besides what the words of a channel say, and deletions',
    header: 'Newsletter;Archived;Deleted at;VIP',
    rows: ['abgemeldet;0;;1', 'angemeldet;1;2025-03-04;0', 'angemeldet;0;;0'],
    flags: ['--unused', 'VIP,Archived', '--words', 'Newsletter:in=angemeldet,out=abgemeldet'],
    optedOut: 1,
  },
  {
    about: 'consents of which a no opts out',
    header: 'Newsletter;Contact allowed;Zgoda;Spärr',
    rows: ['yes;N;TAK;N', 'yes;Y;NIE;N', 'yes;Y;TAK;J', 'yes;Y;TAK;N'],
    flags: ['--words', 'Contact allowed:yes=N,no=Y', 'Zgoda:yes=NIE,no=TAK', 'Spärr:yes=J'],
    optedOut: 3,
  },
  {
    about: 'a note among sentences, and a request to be forgotten',
    header: 'Newsletter;GDPR;Notes',
    rows: ['yes;right to erasure;', 'yes;;no longer subscribed', 'yes;;', 'yes;;likes long calls'],
    flags: ['--words', 'GDPR:yes=right to erasure', 'Notes:yes=no longer subscribed,no=any'],
    optedOut: 2,
  },
  {
    about: 'a repeated column, and one without a name',
    header: 'Newsletter;Opt out;Opt out;;Notes;Notes',
    rows: ['yes;;yes;;was met at the fair;', 'yes;;;x;;', 'yes;;;;;likes long calls'],
    flags: ['--words', 'unnamed (1):yes=x'],
    optedOut: 2,
  },
])('$about', async ({ header, rows, flags, optedOut }) => {
  const { init } = await exported(header, rows);
  const before = await init(news);
  expect([before.code, before.isWritten]).toEqual([2, false]);
  expect(flags.filter((flag) => flag.startsWith('--')).length).toBeLessThanOrEqual(2);
  const { code, err, subscribed } = await init([...news, ...flags]);
  expect([code, err]).toEqual([0, '']);
  expect(subscribed[0]).toBe(optedOut + 1);
});

test('of many values one flag names the yes, and leaves open what may opt out as well', async () => {
  const tags = Array.from({ length: 17 }, (_, at) => `yes;tag ${at}, tag ${at + 1}, tag ${at * 2}`);
  const more = ['yes;Unsubscribed', 'yes;vip', 'yes;he asked in May to be unsubscribed from all'];
  const { init } = await exported('Newsletter;Tags', [...more, ...tags]);
  const words = (list: string) => [...news, '--words', `Tags:yes=${list},no=any`];
  const open = await init(words('Unsubscribed'));
  expect([open.code, open.err]).toEqual([2, expect.stringContaining('"Tags": 1 record holds "he')]);
  const all = await init(words('Unsubscribed,he asked in May to be unsubscribed from all'));
  expect([all.code, all.subscribed[0], all.subscribed.length]).toEqual([0, 2, 18]);
});

test.each([
  ['tags', (tags: readonly string[]) => ({ tags })],
  [
    'its.consents[].status',
    (words: readonly string[]) => ({
      its: { consents: words.map((status) => ({ by: 'mail', status })) },
    }),
  ],
])('a list in a field of JSON is asked about by its elements: %s', async (name, holding) => {
  const path = join(await scratch(), 'people.ndjson');
  const words = [['vip', 'Do Not Email'], ['suppressed'], ['customer', 'vip'], []];
  const people = Array.from({ length: 20 }, (_, at) => {
    const person = { id: at + 1, email: `p${at + 1}@example.com`, Newsletter: 'yes' };
    return JSON.stringify({ ...person, ...holding(words[at] ?? ['customer']) });
  });
  writeFileSync(path, `${people.join('\n')}\n`);
  utimesSync(path, new Date(0), new Date(0));
  const output = join(path, '..', 'mirror.yaml');
  const open = await initialized(path, output, news);
  expect([open.code, open.isWritten]).toEqual([2, false]);
  expect(open.err).toContain(`column "${name}" looks like a flag and would not be used`);
  const half = await initialized(path, output, [...news, '--words', `${name}:yes=suppressed`]);
  expect([half.code, half.err]).toEqual([2, expect.stringContaining('"Do Not Email"')]);
  const named = ['--words', `${name}:yes=Do Not Email,suppressed`];
  const { code, err, subscribed } = await initialized(path, output, [...news, ...named]);
  expect([code, err, subscribed[0], subscribed.length]).toEqual([0, '', 3, 18]);
});

test('a refusal ends with one line that decides all of it, and says what it states', async () => {
  const { init } = await exported('Newsletter;Werbesperre;Status;VIP;Region, alt;O’Neill', [
    'Ja;X;Lead;1;;1',
    'Ja;;Unsubscribed;0;x;0',
    'Ja;;Lead;0;;0',
  ]);
  const { code, err } = await init(news);
  expect(code).toBe(2);
  expect(err).toContain(
    'all of it in one line, if this is true: "X" in "Werbesperre" says that a person wants no mail; ' +
      'a yes in "Status" says that a person wants no mail, and WORD stands for the values that do not; ' +
      'COLUMN stands for those of "VIP", "Region, alt", "O’Neill" that say nothing about who wants ' +
      'no mail → crm-mirror init ',
  );
  const flags = lineOf(err);
  expect(flags).toEqual([
    '--unused',
    'COLUMN',
    ...news,
    '--words',
    'Werbesperre:yes=X',
    'Status:no=WORD',
  ]);
  const named = flags.map((flag) => flag.replace('WORD', 'Lead'));
  for (const [open, why] of [
    [flags, 'WORD is no value of column "Status"'],
    [named, 'there is no column "COLUMN"'],
  ] as const) {
    const pasted = await init(open);
    expect([pasted.code, pasted.isWritten]).toEqual([2, false]);
    expect(pasted.err).toContain(why);
  }
  const unused = String.raw`VIP,Region\, alt,O’Neill`;
  const { code: end, subscribed } = await init(named.map((flag) => flag.replace('COLUMN', unused)));
  expect([end, subscribed[0]]).toEqual([0, 3]);
});

test('the line proposes the words that refuse, and leaves open what the others mean', async () => {
  const { init } = await exported('Newsletter;State', ['yes;Do not disturb', 'yes;New']);
  const { err } = await init(news);
  const { code, subscribed } = await init(lineOf(err).map((flag) => flag.replace('WORD', 'New')));
  expect([code, subscribed[0]]).toEqual([0, 2]);
});

test.each([
  ['Not opted out', 'no', 'yes'],
  ['Nicht abgemeldet', 'nein', 'ja'],
  ['Unsubscribe count', '1', '0'],
  ['Opt-in status', '0', '1'],
  ['Contact allowed', 'N', 'Y'],
  ['Mail allowed', 'blocked', 'yes'],
  ['Mail state', 'Opted out', 'Not opted out'],
  ['Odjavljen', 'da', 'ne'],
  ['Removed', 'x', ''],
])('the line guesses no direction: %s, %s', async (name, out, other) => {
  const { init } = await exported(`Newsletter;${name}`, [
    `yes;${out}`,
    `yes;${out}`,
    `yes;${other}`,
  ]);
  const { err } = await init(news);
  const flags = lineOf(err);
  expect(flags).toEqual(['--unused', 'COLUMN', ...news]);
  expect(await init(flags)).toMatchObject({ code: 2, isWritten: false });
});

test('a channel whose name says no is no consent, beside others that are', async () => {
  const { init } = await exported('Tips;No events', ['1;1', '1;0']);
  const channels = ['--channel', 'ch_tips=Tips', 'ch_events=No events'];
  const { code, err } = await init(channels);
  expect([code, err]).toEqual([2, expect.stringContaining('add --opt-out "No events" if yes')]);
});

test('a line that is pasted as it is leaves out no consent that has to be named', async () => {
  const { init } = await exported('Newsletter;Kontakt', [
    'vielleicht;a',
    'gern;b',
    'lieber nicht;',
  ]);
  const { err } = await init(news);
  const flags = lineOf(err);
  expect(flags).toContain('Newsletter:in=WORD,WORD,out=WORD,WORD,none=WORD,WORD');
  const { code, isWritten } = await init(flags);
  expect([code, isWritten]).toEqual([2, false]);
});

test.each([
  ['Deceased', '1', '0', '--unsubscribed', 'Deceased'],
  ['Queixa de spam', 'sim', 'não', '--unsubscribed', 'Queixa de spam'],
  ['Skarga na spam', '1', '0', '--unsubscribed', 'Skarga na spam'],
  ['Anonymized', '1', '0', '--unsubscribed', 'Anonymized'],
  ['Bounced soft', '2', '0', '--words', 'Bounced soft:yes=2'],
  ['CLEAN_TIME', '2026-01-02', '', '--unsubscribed', 'CLEAN_TIME'],
  ['Status', 'odbity', 'zapisany', '--words', 'Status:yes=odbity,no=WORD'],
  ['Reply', 'ABUSE', 'fine', '--words', 'Reply:yes=ABUSE,no=WORD'],
])(
  'a pasted line never leaves out a sign against mail: %s, %s',
  async (name, yes, no, flag, value) => {
    const { init } = await exported(`Newsletter;${name}`, [
      `yes;${yes}`,
      `yes;${yes}`,
      `yes;${no}`,
    ]);
    const open = await init(news);
    const flags = open.code === 0 ? [] : lineOf(open.err);
    if (open.code !== 0)
      expect([flags.includes('--unused'), flags[flags.indexOf(flag) + 1]]).toEqual([false, value]);
    const pasted = open.code === 0 ? open : await init(flags);
    if (value.includes('WORD')) expect([pasted.code, pasted.isWritten]).toEqual([2, false]);
    else expect([pasted.code, pasted.subscribed[0]]).toEqual([0, 3]);
  },
);

test.each(['Deceased', 'On Hold', 'Queixa de spam', 'Hard bounce'])(
  'no yes of a column is a consent that is named like a reason against mail: %s',
  async (name) => {
    const { init } = await exported(`VIP;${name};Email opt out`, ['1;1;0', '0;0;0']);
    const open = await init([]);
    expect(open.err).toContain('columns that may hold a consent: "VIP";');
    expect(open.err).toContain(
      '--channel "ID=Email opt out" --else-in "Email opt out", which opts',
    );
    const { code, err, isWritten } = await init(['--channel', `ch_news=${name}`]);
    expect([code, isWritten]).toEqual([2, false]);
    expect(err).toContain(`column "${name}" is named like`);
  },
);
