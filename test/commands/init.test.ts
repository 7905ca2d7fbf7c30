/** What `init` shows, writes and refuses. test/e2e/first-contact tries it with whole exports. */
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createEmulator } from '../../src/emulator/emulator.ts';
import { seeded } from '../../src/emulator/shared/seeded-random.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { servePlatform } from '../support/engine/platform-server.ts';
import { calling } from '../support/commands/mirrored-contacts.ts';
import { scratch } from '../support/sources/source-reading.ts';

const text = [
  'Customer ID,Email,Newsletter,Do not mail,Archived',
  '1,ann@example.com,Ja,,no',
  '2,bob@example.com,Nein,,no',
  '3,cy@example.com,Ja,yes,no',
  '4,,Ja,,no',
  '5,dee@example.com,vielleicht,,yes',
  '',
].join('\n');

async function exported(content = text) {
  const folder = await scratch();
  const path = join(folder, 'People 2026.csv');
  writeFileSync(path, content);
  const before = new Date(Date.now() - 60_000);
  utimesSync(path, before, before);
  const output = join(folder, 'mirror.yaml');
  const inside =
    (env: Record<string, string>) =>
    (...flags: string[]) =>
      calling(['init', path, '--output', output, ...flags], { env });
  return { output, init: Object.assign(inside({}), { in: inside }) };
}

const news = ['--channel', 'ch_news=Newsletter'];

test('proposes each column with its reason, and previews the first people', async () => {
  const { init, output } = await exported();
  const { code, out } = await init('--yes', '--addresses', ...news);
  expect(code).toBe(0);
  expect(out).toMatch(/^ {2}id +Customer ID +named like an id; 5 different in 5 records$/m);
  expect(out).toMatch(/^ {2}email +Email +an address in 4 of 5 records$/m);
  expect(out).toMatch(/^ {2}unsubscribed +Do not mail +named like an opt-out/m);
  expect(out).toMatch(/^ {2}ch_news +Newsletter +as you said$/m);
  expect(out).toMatch(/^ {2}ann@example.com +in \(Ja\)$/m);
  expect(out).toMatch(/^ {2}cy@example.com +out +no mail: Do not mail \(yes\)$/m);
  expect(out).toMatch(/^ {2} +– +skipped: no address$/m);
  expect(out).toMatch(/^ {2}dee@example.com +– +invalid: /m);
  expect(readFileSync(output, 'utf8')).toContain(
    'subscription: { field: Newsletter, in: [ Ja ], out: [ Nein ] }',
  );
});

test('quotes a name that YAML would read as a number', async () => {
  const { init, output } = await exported();
  expect((await init('--yes', '--mirror', '2026', ...news)).code).toBe(0);
  expect(readFileSync(output, 'utf8')).toContain('mirror: "2026"\n');
});

test('shows no address where stdout is no terminal', async () => {
  const { init } = await exported();
  const { said } = await init('--yes', ...news);
  expect(said).not.toContain('@example.com');
  expect(said).toMatch(/^ {2}line 2 +in \(Ja\)$/m);
});

test('writes nothing without --yes', async () => {
  const { init, output } = await exported();
  const { code, err } = await init(...news);
  expect(code).toBe(2);
  expect(err).toContain('nothing is written yet → if this is right, add --yes');
  expect(existsSync(output)).toBe(false);
});

test('says how a column of dates is a consent, and takes none for one', async () => {
  const { init } = await exported(
    'id,Email,Agreed\n1,ann@example.com,2026-01-02\n2,bob@example.com,\n',
  );
  const { code, err } = await init('--yes', '--channel', 'ch_news=Agreed');
  expect(code).toBe(2);
  expect(err).toContain(`subscription: { when: 'record["Agreed"] != "" ? true : null' }`);
});

test('overwrites nothing', async () => {
  const { init, output } = await exported();
  writeFileSync(output, 'mine');
  const { code, err } = await init('--yes', ...news);
  expect([code, err]).toEqual([2, expect.stringContaining('exists, and init overwrites nothing')]);
  expect(readFileSync(output, 'utf8')).toBe('mine');
});

describe('refuses with the option that decides', () => {
  const strange = text.replace(/,yes,no$/m, ',maybe,no');

  test.each([
    ['no channel', text, [], 'add --channel "ID=Newsletter", with the id of the channel'],
    ['a channel without a column', text, ['--channel', 'ch_news'], 'write ID=COLUMN'],
    [
      'a column that is not there',
      text,
      ['--channel', 'ch_news=Newsleter'],
      'did you mean "Newsletter"',
    ],
    [
      'words without a meaning',
      text,
      [...news, '--words', 'Newsletter=Ja'],
      'write COLUMN:in=WORD',
    ],
    [
      'an opt-out that cannot be read',
      strange,
      news,
      '--words "Do not mail:yes=WORD,WORD,no=WORD,WORD"',
    ],
    [
      'words of a column that is not there',
      text,
      [...news, '--words', 'Vip:yes=x'],
      'no column "Vip"',
    ],
    ['no address', 'id,name\n1,Ann\n', news, '--email COLUMN'],
    ['no id', 'Email,Newsletter\na@b.example,yes\na@b.example,no\n', news, '--id COLUMN'],
    ['a name that is none', text, [...news, '--mirror', 'A b'], 'write up to 40 of a-z'],
    ['no record', 'id,Email\n', news, 'it has no records'],
  ])('%s', async (_, content, flags, fix) => {
    const { init, output } = await exported(content);
    const { code, err } = await init('--yes', ...flags);
    expect(err).toContain(fix);
    expect(code).toBe(2);
    expect(existsSync(output)).toBe(false);
  });
});

test('proposes the address as the id if nothing else is one', async () => {
  const { init, output } = await exported(
    'Email,Newsletter\nann@example.com,yes\nbob@example.com,no\n',
  );
  const { code, out } = await init('--yes', ...news);
  expect(code).toBe(0);
  const said = 'a changed address then counts as one person gone and a new one';
  expect(out).toMatch(new RegExp(`^ {2}id +Email +no column is an id, .*; ${said}$`, 'm'));
  expect(readFileSync(output, 'utf8')).toMatch(new RegExp(`${said}\\n {2}id: Email$`, 'm'));
});

describe('an export in Dutch', () => {
  const header =
    'Relatienummer;Achternaam;E-mail;Nieuwsbrief;Productnieuws;Uitgeschreven op;Gearchiveerd;Niet mailen';
  const product = ['aangemeld', 'afgemeld', 'n.v.t.'];
  const rows = Array.from({ length: 90 }, (_, at) => {
    const day = `${String((at % 28) + 1).padStart(2, '0')}-03-2024`;
    const left = at < 62 ? day : (['per telefoon'][at - 62] ?? '');
    const cells = [product[at % 3], left, '', at % 20 === 0 ? 'x' : ''];
    return `R${at};N${at};p${at}@example.com;${at % 2 ? 'Ja' : 'Nee'};${cells.join(';')}`;
  });
  const dutch = `${[header, ...rows].join('\n')}\n`;
  const channel = ['--channel', 'ch_news=Nieuwsbrief'];

  test('is refused with the flags of each opt-out column', async () => {
    const { init, output } = await exported(dutch);
    const { code, err } = await init('--yes', '--addresses', ...channel);
    expect(code).toBe(2);
    expect(err).toContain('column "Uitgeschreven op": 1 record holds "per telefoon", which is no');
    expect(err).toMatch(
      /say what they mean: --words "Uitgeschreven op:yes=any" if .* add --no-uns/,
    );
    expect(err).toContain('column "Niet mailen": 5 records hold "x"');
    expect(err).toContain('--words "Niet mailen:yes=WORD,WORD,no=WORD,WORD"');
    expect(existsSync(output)).toBe(false);
  });
});

describe('the channels of the platform', () => {
  async function platform() {
    const channels = [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ];
    const emulator = createEmulator({
      clock: systemClock,
      random: seeded(1),
      apiKey: 'key',
      channels,
    });
    emulator.dashboard.signUp({ email: 'zoe@example.com', channels: ['ch_news', 'ch_product'] });
    const { url } = await servePlatform(emulator);
    return { PLATFORM_URL: url, PLATFORM_API_KEY: 'key' };
  }

  test('are matched with columns of the same name, and one without a column is named', async () => {
    const env = await platform();
    const { init, output } = await exported();
    const { code, out } = await init.in(env)('--yes');
    expect(code).toBe(0);
    expect(out).toMatch(/^ {2}ch_news +Newsletter +it is named like the platform's channel/m);
    expect(out).toContain("No column for the platform's channel ch_product (Product updates)");
    expect(readFileSync(output, 'utf8')).toContain('- id: ch_news\n      name: Newsletter\n');
  });

  test('are named in the refusal if no column is called like one', async () => {
    const env = await platform();
    const { init } = await exported(text.replace('Newsletter', 'For newsletter'));
    const { code, err } = await init.in(env)('--yes');
    expect(err).toContain(
      'add --channel "ch_news=For newsletter", or another of its channels: ch_news (Newsletter), ch_product',
    );
    expect(code).toBe(2);
  });
});

test('lists flags, and only counts dates', async () => {
  const rows = Array.from({ length: 6 }, (_, at) => [
    at,
    `p${at}@example.com`,
    'yes',
    at % 2 ? 'no' : '',
    `2024-01-0${at + 1}`,
  ]);
  const lines = [['id', 'Email', 'Newsletter', 'Vip', 'Changed'], ...rows];
  const { init, output } = await exported(`${lines.map((row) => row.join(',')).join('\n')}\n`);
  const { out } = await init('--yes', ...news, '--unused', 'Vip');
  expect(out).toContain(':\n  Vip ("no" 3×)\n  Changed (dates, 6 different)\n');
  expect(readFileSync(output, 'utf8')).toContain('  # not used: Changed (dates, 6 different)\n');
});

test('asks nothing without a terminal', async () => {
  const { code, err } = await calling(['init', '--output', join(await scratch(), 'mirror.yaml')]);
  expect(err).toBe(
    'crm-mirror: init asks its questions only on a terminal, and no source is named → ' +
      'write crm-mirror init FILE --channel ID=COLUMN --yes',
  );
  expect(code).toBe(2);
});

test('names neither a column nor a word so that it becomes another line or a variable', async () => {
  const { init, output } = await exported(
    text.replace('Do not mail', '"Do not\nmail: ${X}"').replace('Archived', '"Vip\n${Y}"'),
  );
  const unused = ['--unused', 'Vip\n${Y}', '--no-deleted'];
  const flags = ['--unsubscribed', 'Do not\nmail: ${X}', ...unused];
  expect((await init('--yes', ...news, ...flags)).code).toBe(0);
  const written = readFileSync(output, 'utf8');
  expect(written).toContain('unsubscribed: "Do not\\nmail: $${X}"\n');
  expect(written).toContain('# not used: Vip\\u000a${Y}');
});

test('names unknown words where they may be shown', async () => {
  const line = (words: string) => `  Unknown in Newsletter: ${words}.\n`;
  const shown = await exported();
  const { out } = await shown.init('--yes', '--addresses', ...news);
  expect(out).toContain(line('"vielleicht" 1×'));
  const hidden = await exported();
  const piped = await hidden.init('--yes', ...news);
  expect(piped.out).toContain(line('1 record with words that only --addresses shows'));
});

test('every column that is named like an opt-out is one, besides those that the user names', async () => {
  const { init, output } = await exported(text.replace('Archived', 'Email opt-out'));
  expect((await init('--yes', ...news, '--unsubscribed', 'Do not mail')).code).toBe(0);
  expect(readFileSync(output, 'utf8')).toMatch(/ - Do not mail\n.*\n.*\n {4}- Email opt-out\n/);
});

test('takes the columns and words that the user names', async () => {
  const { init, output } = await exported();
  const flags = ['--id', 'Email', '--unsubscribed', 'Archived', '--deleted', 'Do not mail'];
  const words = ['--words', 'Newsletter:none=vielleicht', '--mirror', 'acme'];
  const { code } = await init('--yes', ...news, ...flags, ...words);
  expect(code).toBe(0);
  const written = readFileSync(output, 'utf8');
  expect(written).toContain('mirror: acme\n');
  expect(written).toMatch(/^ {2}# as you said; a changed address .*\n {2}id: Email$/m);
  expect(written).toMatch(/^ {2}unsubscribed: Archived$/m);
  expect(written).toMatch(/^ {2}deleted: Do not mail$/m);
  expect(written).toContain('none: [ vielleicht ]');
});

test('names an encoding that is not UTF-8, and says what kind of file it cannot read', async () => {
  const folder = await scratch();
  const path = join(folder, 'a.csv');
  writeFileSync(path, Buffer.from('ID,Email,Straße\n1,ann@example.com,ja\n', 'latin1'));
  utimesSync(path, new Date(0), new Date(0));
  const output = join(folder, 'mirror.yaml');
  await calling(['init', path, '--yes', '--output', output, '--channel', 'ch_news=Straße']);
  expect(readFileSync(output, 'utf8')).toContain('encoding: windows-1252');
  writeFileSync(join(folder, 'a.pdf'), '');
  const other = await calling(['init', join(folder, 'a.pdf'), '--output', `${output}2`]);
  expect([other.code, other.err]).toEqual([2, expect.stringContaining('.csv, .tsv')]);
  const none = await calling(['init', join(folder, 'b.csv'), '--output', `${output}2`]);
  expect([none.code, none.err]).toEqual([2, expect.stringContaining('there is no such file')]);
});

describe('a column that looks like a flag and has an unknown name', () => {
  /** An export of twenty people whose last column holds these values first. */
  const people = (name: string, values: readonly string[], rest = '') => {
    const rows = Array.from({ length: 20 }, (_, at) => {
      return `${at},p${at}@example.com,yes,${values[at] ?? rest}`;
    });
    return `${[`id,Email,Newsletter,${name}`, ...rows].join('\n')}\n`;
  };

  const links = ['https://crm.example/unsubscribe', 'unsubscribe@example.com'];
  const states = Array.from('ABCDEFGHIJ', (letter) => `State ${letter}`);

  const thrice = (word: string) => [word, word, word];

  test.each([
    ['KZ 17', ['X', 'X'], '', '("X" 2×, empty 18×)', '--words "KZ 17:yes=X"'],
    ['Bemerkung', thrice('raus'), '', '("raus" 3×, empty 17×)', '--words "Bemerkung:yes=raus"'],
    ['Code A', ['yes', 'yes'], 'no', '("no" 18×, "yes" 2×)', '--unsubscribed "Code A"'],
    ['Kielto', thrice('kyllä'), 'ei', '"kyllä" 3×)', '--unsubscribed "Kielto"'],
    [
      'Berhenti berlangganan',
      thrice('ya'),
      'tidak',
      '("tidak" 17×, "ya" 3×)',
      '--words "Berhenti berlangganan:yes=WORD,no=WORD"',
    ],
    ['Atsisakė', ['taip'], '', '("taip" 1×, empty 19×)', '--words "Atsisakė:yes=taip"'],
    ['Mark', ['🚫'], '', '("🚫" 1×, empty 19×)', '--words "Mark:yes=🚫"'],
    ['K1', ['2'], '1', '("1" 19×, "2" 1×)', '--words "K1:yes=WORD,no=WORD"'],
    ['K2', ['1'], '0', '("0" 19×, "1" 1×)', '--unsubscribed "K2"'],
    ['K3', ['1', '1'], 'NULL', '("NULL" 18×, "1" 2×)', '--words "K3:no=NULL"'],
    ['K4', ['2026-01-02', '2026-03-04'], '', '(dates 2×, empty 18×)', '--unsubscribed "K4"'],
    ['State', thrice('Blocked'), 'Active', '"Blocked" 3×', '--words "State:yes=Blocked,no=WORD"'],
    [
      'Bulk',
      thrice('Do Not Allow'),
      'Allow',
      '"Allow" 17×',
      '--words "Bulk:yes=Do Not Allow,no=WORD"',
    ],
    [
      'Stage',
      ['New', 'Lead', 'Unsubscribed', 'Won', 'Lost'],
      'Open',
      'Open',
      '--words "Stage:no=WORD"',
    ],
    [
      'Etappe',
      ['Abgemeldet', ...states],
      'Neu',
      '("Abgemeldet" 1×, "Neu"',
      '--words "Etappe:yes=Abgemeldet,no=WORD"',
    ],
    [
      'Tags',
      ['fair 2024;unsubscribed;regular customer;Berlin;gold', ...states],
      'gold',
      'fair 2024;unsubscribed',
      "--words 'Tags:yes=fair 2024;unsubscribed;regular customer;Berlin;gold,no=WORD'",
    ],
    [
      'Comms_Preference__c',
      ['No marketing', 'Invoices only', 'None - legal request'],
      'All',
      '"No marketing" 1×',
      "--words 'Comms_Preference__c:yes=",
    ],
    [
      'Wish',
      ['nicht per Mail', ...states],
      'alles',
      'nicht per Mail',
      "--words 'Wish:yes=nicht per Mail",
    ],
    [
      'Wish',
      ['None - legal request', 'Invoices'],
      'All',
      '"None - legal request" 1×',
      '--words "Wish:yes=None - legal request',
    ],
    ['Last name', ['Miller (DO NOT MAIL)', ...states], 'Ash', 'DO NOT MAIL', '--words "Last'],
  ])('is not passed over: %s, which holds %j', async (name, values, rest, shown, flag) => {
    const { init, output } = await exported(people(name, values, rest));
    const { code, err } = await init('--yes', '--addresses', ...news);
    expect(err).toContain(`column "${name}" looks like a flag and would not be used`);
    expect(err).toContain(shown);
    expect(err).toContain(`add --unused "${name}", or, `);
    expect(err).toContain(flag);
    expect(code).toBe(2);
    expect(existsSync(output)).toBe(false);
    const said = await init('--yes', ...news, '--unused', name);
    expect(said.code).toBe(0);
    expect(readFileSync(output, 'utf8')).toMatch(/^ {2}# unsubscribed: COLUMN/m);
  });

  test.each([
    ['a gender', 'Gender', ['m', 'm', 'f'], 'f'],
    ['two ordinary words', 'Kind', ['private', 'private'], 'business'],
    ['countries', 'Land', ['NO', 'SE', 'DK'], 'NO'],
    ['ten states', 'Etappe', states, 'Neu'],
    [
      'a term within sentences',
      'Notes',
      [
        'met in May; he said that he may unsubscribe if it is too much',
        'asked whether she can opt out later. I told her how, she is content',
        ...states,
      ],
      '',
    ],
    ['addresses and links', 'Source', [...links, ...states], ''],
    ['a text of each person', 'Remark', Array.from({ length: 20 }, (_, at) => `met at ${at}`), ''],
    ['dates of most people', 'Changed', Array.from({ length: 20 }, () => '2026-01-02'), ''],
    ['one value of all', 'Tenant', [], '1'],
    ['a consent by SMS', 'SMS', ['yes'], 'no'],
    ['a subscription by SMS', 'SMS: Status', ['unsubscribed', 'subscribed'], 'subscribed'],
  ])('is not asked about: %s', async (_, name, values, rest) => {
    const { init } = await exported(people(name, values, rest));
    const { code, err } = await init('--yes', ...news);
    expect([code, err]).toEqual([0, '']);
  });

  test('is masked where values are not shown', async () => {
    const content = text.replace('Archived', 'Vip').replaceAll(',yes,no', ',yes,maximilian');
    const { init } = await exported(content);
    const { code, err } = await init('--yes', ...news);
    expect(err).toContain('("no" 3×, "aaaaaaaaaa" 1×, "aaa" 1×)');
    expect(err).toContain('--words "Vip:yes=WORD,no=WORD"');
    expect(err).not.toContain('maximilian');
    expect(code).toBe(2);
  });
});

test.each([
  ['Description', 'met at the fair', 0],
  ['Unsubscribe URL', 'https://crm.example/u/', 0],
  ['Fecha de baja', 'contract ', 0],
  ['Unsubscribed', 'contract ', 0],
])(
  'a text of each person is no opt-out, whatever its name says: %s',
  async (name, value, expected) => {
    const rows = Array.from(
      { length: 30 },
      (_, at) => `${at},p${at}@example.com,yes,${value}${at}`,
    );
    const { init, output } = await exported(
      `${[`id,Email,Newsletter,${name}`, ...rows].join('\n')}\n`,
    );
    expect((await init('--yes', ...news)).code).toBe(expected);
    expect(readFileSync(output, 'utf8')).toMatch(/^ {2}# unsubscribed: COLUMN/m);
  },
);

test.each([
  ['dates in words', (at: number) => `Mar ${at + 1}, 2025 9:05 AM`],
  ['dates in words of another language', (at: number) => `${at + 1} Marzo 2025`],
  ['times in digits', (at: number) => `202503121430${at + 10}`],
])('is no text of each person, and is asked about: %s', async (_, value) => {
  const rows = Array.from({ length: 30 }, (_, at) => `${at},p${at}@example.com,yes,"${value(at)}"`);
  const { init, output } = await exported(
    `${['id,Email,Newsletter,Fecha de baja', ...rows].join('\n')}\n`,
  );
  const { code, err } = await init('--yes', ...news);
  expect([code, err]).toEqual([2, expect.stringContaining('column "Fecha de baja": ')]);
  expect(existsSync(output)).toBe(false);
});

test.each([
  ['free text in some records', (at: number) => (at < 14 ? `called on day ${at}` : '')],
  ['NULL for none', (at: number) => (at < 5 ? '2026-01-02' : 'NULL')],
])('every value as a yes is not offered: %s', async (_, value) => {
  const rows = Array.from({ length: 30 }, (_, at) => `${at},p${at}@example.com,yes,${value(at)}`);
  const { init } = await exported(`${['id,Email,Newsletter,Unsubscribed', ...rows].join('\n')}\n`);
  const { code, err } = await init('--yes', ...news);
  expect(err).toContain('--unused "Unsubscribed"');
  expect(err).not.toContain('any');
  expect(code).toBe(2);
});

test('previews and writes the words of a flag, and any value as a yes', async () => {
  const marked = text
    .replace(',yes,no', ',X,no')
    .replace('2,bob@example.com,Nein,,', '2,bob@example.com,Ja,Nein,');
  const { init, output } = await exported(marked);
  const words = ['--words', 'Do not mail:yes=any'];
  const { out } = await init('--yes', '--addresses', ...news, ...words);
  expect(out).toMatch(/^ {2}bob@example.com +in \(Ja\)$/m);
  expect(out).toMatch(/^ {2}cy@example.com +out +no mail: Do not mail \(X\)$/m);
  expect(readFileSync(output, 'utf8')).toContain(
    'unsubscribed: { field: Do not mail, yes: any, no: [ Nein ] }',
  );
});
