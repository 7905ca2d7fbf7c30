/** What `check` says before anything is sent: the counts of a plan, and what each value means. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { whyNotWritable } from '../../src/store/database/snapshot-folder.ts';
import { mirrored, type MirroredOptions } from '../support/commands/mirrored-contacts.ts';

const header = 'id;email;news;product;stop;gone;when';
const contacts = {
  unsubscribed: 'stop',
  deleted: 'gone',
  consentAt: 'when',
  channels: [
    { id: 'ch_news', subscription: { field: 'news', in: ['Ja'], out: ['Nein'] } },
    { id: 'ch_product', subscription: 'product' },
  ],
};

async function begin(lines: MirroredOptions['lines'] = {}, options: MirroredOptions = {}) {
  const world = await mirrored(options);
  const source = { type: 'csv', path: './people.csv' };
  const { contacts: own, ...rest } = lines ?? {};
  world.config({ ...rest, contacts: { source, ...contacts, ...own } });
  const write = (...rows: string[]) => world.csv([header, ...rows, ''].join('\n'));
  return { ...world, write };
}

const people = (count: number, rest = 'Ja;yes;;;') =>
  Array.from({ length: count }, (_, at) => `${at};p${at}@example.com;${rest}`);
const notes = ({
  json,
}: {
  json: { findings: { what: string; level: string; found: string }[] };
}) => json.findings.filter(({ level }) => level !== 'ok').map(({ what, found }) => [what, found]);

describe('the counts', () => {
  test('are those of a plan, whatever is wrong with the records', async () => {
    const world = await begin();
    world.write(
      ...people(6),
      '10;twin@example.com;Ja;;;;',
      '11;twin@example.com;Nein;;;;',
      '12;again@example.com;Ja;;;;',
      '12;again@example.com;Ja;;;;',
      '13;one@example.com;Ja;;;;',
      '13;other@example.com;Ja;;;;',
      '14;;Ja;;;;',
      ';;;;;;',
      '15;no address;Ja;;;;',
      '16;word@example.com;vielleicht;;;;',
    );
    const { code, json } = await world.call('check', '--json');
    const plan = await world.call('plan', '--json');
    const { desired, skipped, invalid } = plan.json.contacts;
    expect(json.contacts).toEqual({
      records: 16,
      desired,
      wanted: 8,
      skipped,
      invalid,
      missing: 0,
      duplicateIds: 1,
      sharedIds: 1,
      duplicateKeys: 2,
    });
    expect([desired, skipped, invalid]).toEqual([8, 2, 4]);
    expect(json.skipped).toEqual(['line 14', 'line 15']);
    expect([code, json.ok]).toEqual([4, true]);
    const { out } = await world.call('check');
    expect(out).toContain('16 records · people 8 · skipped 2 · invalid 4');
    expect(out).toContain('1 id has several addresses: those records are invalid');
  });
});

describe('the columns', () => {
  const rows = [
    ...people(4, 'Ja;yes;;;'),
    ...people(3, 'Nein;;;;').map((row) => `1${row}`),
    '20;a@b.cd;Frau Klein;no;;yes;2026-01-01',
    '21;a2@b.cd;nie;no;;yes;1.1.26',
  ];

  test('show each value, how often it occurs and what it means, unknown ones first', async () => {
    const world = await begin();
    world.write(...rows);
    const { json } = await world.call('check', '--json', '--addresses');
    const byOption = new Map(
      json.columns.map((one: { option: string; values: object[] }) => [one.option, one.values]),
    );
    expect(byOption.get('contacts.channels[0].subscription')).toEqual([
      { value: 'Frau Klein', records: 1, means: 'unknown' },
      { value: 'nie', records: 1, means: 'unknown' },
      { value: 'Ja', records: 4, means: 'in' },
      { value: 'Nein', records: 3, means: 'out' },
    ]);
    expect(byOption.get('contacts.deleted')).toEqual([
      { value: '', records: 7, means: 'no' },
      { value: 'yes', records: 2, means: 'yes' },
    ]);
    expect(byOption.get('contacts.consentAt')).toEqual([
      { value: '1.1.26', records: 1, means: 'unknown' },
      { value: '', records: 7, means: 'empty' },
      { value: '9999-99-99', records: 1, means: 'time' },
    ]);
    expect(byOption.get('contacts.email')).toEqual([
      { value: 'a…@…', records: 9, means: 'address' },
    ]);
    expect(json.columns.map((one: { channel: string | null }) => one.channel)).toEqual([
      null,
      null,
      null,
      null,
      null,
      'ch_news',
      'ch_product',
    ]);
  });

  test('mask what may be personal in a pipe, and nothing on a terminal', async () => {
    const world = await begin();
    world.write(...rows);
    const { out } = await world.call('check');
    expect(out).toContain('"aaaa aaaaa"  unknown');
    expect(out).toContain('4  "Ja"          in');
    expect(out).not.toMatch(/Klein|@b\.cd/);
    expect((await world.seen('check')).out).toContain('"Frau Klein"  unknown');
  });

  test('name the fields of a condition', async () => {
    const when = 'record.news == "Ja" && record.product == "yes"';
    const channels = [{ id: 'ch_news', subscription: { when } }];
    const world = await begin({ contacts: { channels } });
    world.write(...people(3, 'Ja;yes;;;'), '9;z@example.com;Ja;no;;;');
    const { json } = await world.call('check', '--json');
    expect(json.columns.at(-1)).toEqual({
      option: 'contacts.channels[0].subscription',
      channel: 'ch_news',
      fields: ['news', 'product'],
      values: [
        { value: 'Ja · yes', records: 3, means: 'in' },
        { value: 'aa ? aa', records: 1, means: 'out' },
      ],
      others: 0,
    });
  });
});

test('the people show what becomes of them, one of each kind', async () => {
  const world = await begin();
  world.write(
    '1;in@example.com;Ja;no;;;',
    '2;gone@example.com;Ja;;;yes;',
    '3;left@example.com;Ja;yes;yes;;',
    '4;odd@example.com;hm;yes;;;',
    '5;broken;Nein;;;;',
    '6;more@example.com;;;;;',
  );
  const { json } = await world.call('check', '--json', '--addresses');
  expect(json.people).toEqual([
    person('in@example.com', 'line 2', 'mapped', { ch_news: 'in', ch_product: 'out' }),
    person('more@example.com', 'line 7', 'mapped', { ch_news: 'none', ch_product: 'none' }),
    {
      ...person('odd@example.com', 'line 5', 'invalid', { ch_news: 'unknown', ch_product: 'none' }),
      reason: '"news" holds no known word',
    },
    person('gone@example.com', 'line 3', 'gone', { ch_news: 'in', ch_product: 'none' }),
    person('left@example.com', 'line 4', 'unsubscribed', { ch_news: 'out', ch_product: 'out' }),
  ]);
  const { out } = await world.call('check');
  expect(out).not.toContain('@example.com');
  expect(out).toMatch(/#[0-9a-f]{12} +out +out +no mail: unsubscribed from everything/);
});

function person(address: string, place: string, state: string, channels: object) {
  return { person: address, place, state, reason: null, channels };
}

describe('exit code 1', () => {
  test('is for an export that is empty although people are recorded', async () => {
    const world = await begin();
    world.write(...people(3));
    await world.call('sync');
    world.write();
    const { code, out } = await world.call('check');
    expect(code).toBe(1);
    expect(out).toContain('FAIL source of contacts: the source of contacts is empty, but 3 are');
  });

  test('is for records of which most are invalid', async () => {
    const world = await begin();
    world.write(...people(3, 'Oui;;;;'), ...people(2).map((row) => `1${row}`));
    const { code, out } = await world.call('check');
    expect(code).toBe(1);
    expect(out).toMatch(/FAIL source of contacts: most are invalid: 5 records, 3 of them invalid/);
    expect(out).toContain('3  "Oui"  unknown\n  2  "Ja"   in');
  });

  test('is for an address column that holds no addresses any more', async () => {
    const world = await begin();
    world.write(...people(6));
    await world.call('sync');
    world.config({
      contacts: { source: { type: 'csv', path: './people.csv' }, ...contacts, email: 'news' },
    });
    const { code, out } = await world.call('check');
    expect(code).toBe(1);
    expect(out).toContain('6 of 6 recorded people have no valid address any more');
    const run = await world.call('sync');
    expect([run.code, run.said]).toEqual([1, expect.stringContaining('6 of 6 recorded people')]);
  });

  test('is for a key file that cannot be created', async () => {
    const world = await begin();
    world.write(...people(2));
    const file = JSON.parse(readFileSync(world.file, 'utf8'));
    writeFileSync(world.file, JSON.stringify({ ...file, memoryKeyFile: '/proc/x/key' }));
    const { code, out } = await world.call('check');
    expect(code).toBe(1);
    expect(out).toContain('FAIL key of the memory: no file can be made in /proc → let the user');
  });

  test('is for a channel that the contacts of the platform do not name', async () => {
    const channels = [{ id: 'ch_typo', subscription: 'news' }];
    const world = await begin({ contacts: { channels } });
    world.write('1;a@example.com;yes;;;;');
    const { seed } = world.emulator;
    const named = { ch_news: 'opt_in', ch_product: 'opt_out' } as const;
    seed.contact({ email: 'x@example.com', channels: named });
    seed.contact({ email: 'y@example.com', channels: named });
    const { code, out } = await world.call('check');
    expect(code).toBe(1);
    expect(out).toContain(
      'FAIL channels: the platform has no ch_typo; 2 contacts there name ch_news, ch_product → correct the ids',
    );
  });
});

describe('a file that cannot be written', () => {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-places-'));
  const closed = join(folder, 'closed');
  mkdirSync(closed);
  writeFileSync(join(closed, 'there'), '');
  writeFileSync(join(folder, 'file'), '');
  chmodSync(join(closed, 'there'), 0o444);
  chmodSync(closed, 0o555);
  chmodSync(folder, 0o755);

  const module = new URL('../../src/store/database/snapshot-folder.ts', import.meta.url);
  /** The answer for a user who is not root: root may write everywhere. */
  const asNobody = (path: string) => {
    if (process.getuid?.() !== 0) return whyNotWritable(path);
    const script = `import { whyNotWritable } from ${JSON.stringify(module.href)};
      process.stdout.write(String(whyNotWritable(${JSON.stringify(path)})));`;
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      uid: 65_534,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return String(said);
  };

  test('is found by its folder, whether the file is there or not', () => {
    onTestFinished(() => rmSync(folder, { recursive: true }));
    expect(asNobody(join(closed, 'new.sqlite'))).toBe(`${closed} cannot be written`);
    expect(asNobody(join(closed, 'a/b/new.sqlite'))).toBe(`${closed} cannot be written`);
    expect(asNobody(join(closed, 'there'))).toBe(`${closed} cannot be written`);
    expect(whyNotWritable(join(folder, 'file/x'))).toBe(`${folder}/file is no folder`);
    expect(whyNotWritable('/proc/x/y/z')).toBe('no file can be made in /proc');
    expect(whyNotWritable(join(folder, 'a/b'))).toBeUndefined();
  });
});

describe('a note', () => {
  test('says that channels are not known before there are contacts', async () => {
    const world = await begin({
      contacts: { channels: [{ id: 'ch_news', subscription: 'news' }] },
    });
    world.write('1;a@example.com;yes;;;;');
    const checked = await world.call('check', '--json');
    expect(checked.code).toBe(0);
    expect(notes(checked)).toEqual([
      ['channels', expect.stringMatching(/ch_news is not known, because it has no contacts yet/)],
    ]);
  });

  test('says that many people are missing, in check, plan and sync', async () => {
    const world = await begin();
    world.write(...people(40));
    await world.call('sync');
    world.write(...people(29));
    const line =
      '11 of 40 recorded people are missing since the last reading → check that the export is whole';
    const checked = await world.call('check', '--json');
    expect(notes(checked)).toContainEqual(['people who are missing', line]);
    expect([checked.code, checked.json.contacts.missing]).toEqual([0, 11]);
    for (const command of ['plan', 'sync']) {
      const { code, json } = await world.call(command, '--json');
      expect([code, json.contacts.missing, json.reasons]).toEqual([0, 11, [line]]);
    }
    // The sync has counted them: they are no news any more.
    const again = await world.call('plan', '--json');
    expect([again.json.contacts.missing, again.json.reasons]).toEqual([0, []]);
    world.write(...people(19));
    expect((await world.call('plan', '--json')).json.contacts.missing).toBe(10);
    expect((await world.call('plan', '--json')).json.reasons).toEqual([]);
  });

  test('says that a UTF-8 file is read as windows-1252', async () => {
    const source = { type: 'csv', path: './people.csv', encoding: 'windows-1252' };
    const world = await begin({ contacts: { source } });
    world.write('1;a@example.com;Ja;;;;', '2;b@example.com;Ja;;;;Grüße');
    expect((await world.call('check')).out).toContain(
      'NOTE encoding: 1 record holds text such as "Ã¤" in place of "ä"',
    );
  });

  test('names the settings that keep people as they are', async () => {
    const protect = ['boss@example.com', { when: 'record.news == "x"' }];
    const world = await begin({ policy: { optIns: 'off' }, contacts: { protect } });
    world.write(...people(2));
    const found = notes(await world.call('check', '--json'));
    expect(found).toContainEqual(['policy.optIns', 'off: nobody is created or opted in']);
    expect(found).toContainEqual([
      'contacts.protect',
      '1 address and 1 condition: of these people, only opt-outs that the CRM states are sent',
    ]);
  });
});
