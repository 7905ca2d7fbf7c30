/**
 * From an export to a plan: `init` with the options of a user, then `plan` and `check`. What comes
 * out is what expected.json says, both count the same, and nobody is subscribed or unsubscribed on
 * a guess.
 */
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { expectedOf, refusalOf } from './expected-outcome.ts';
import { makeExport } from './german/make.ts';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { calling } from '../../support/commands/mirrored-contacts.ts';
import { servePlatform } from '../../support/engine/platform-server.ts';
import { scratch } from '../../support/sources/source-reading.ts';

const here = import.meta.dirname;
const platform = {
  clock: systemClock,
  random: seeded(1),
  apiKey: 'key_of_the_test',
  channels: [
    { id: 'ch_news', name: 'Newsletter' },
    { id: 'ch_product', name: 'Product updates' },
  ],
  limits: ['*=1000000/1'],
};
const copied = (name: string) => (from: string) => readFileSync(join(here, from, name));

/** The file of each export, and how it is made. */
const files: Record<string, [name: string, content: (from: string) => Buffer | string]> = {
  german: ['kunden.csv', makeExport],
  'google-sheets': ['signups.csv', copied('signups.csv')],
  'excel-semicolon': ['kunden.csv', copied('kunden.csv')],
  cp1252: ['kontakte.csv', copied('kontakte.csv')],
  utf16: ['contacts.txt', copied('contacts.txt')],
  'salesforce-report': ['report.csv', copied('report1743412320123.csv')],
  audience: ['audience.csv', copied('audience.csv')],
  'ndjson-nested': ['people.ndjson', copied('people.ndjson')],
  'sqlite-dump': ['crm.sqlite', loadedDump],
  xlsx: ['contacts.xlsx', copied('contacts.xlsx')],
  'free-text': ['contacts.csv', copied('contacts.csv')],
};

function loadedDump(from: string): Buffer {
  const db = new Database(':memory:');
  db.exec(readFileSync(join(here, from, 'dump.sql'), 'utf8'));
  const bytes = db.serialize();
  db.close();
  return bytes;
}

async function initialized(name: string, flags: readonly string[]) {
  const folder = await scratch();
  const [file = '', content] = files[name] ?? [];
  const path = join(folder, file);
  writeFileSync(path, content?.(name) ?? '');
  // A source is not read while it may still be written.
  const before = new Date(Date.now() - 60_000);
  utimesSync(path, before, before);
  const output = join(folder, 'mirror.yaml');
  const { url } = await servePlatform(createEmulator(platform));
  const env = { PLATFORM_URL: url, PLATFORM_API_KEY: platform.apiKey };
  const init = () => calling(['init', path, '--yes', '--output', output, ...flags]);
  const plan = () => calling(['plan', '--json', '--addresses', '-c', output], { env });
  const check = () => calling(['check', '--json', '--addresses', '-c', output], { env });
  return { output, init, plan, check };
}

describe.each(Object.keys(files).filter((name) => name !== 'free-text'))('%s', (name) => {
  const expected = expectedOf(name);

  test('becomes exactly the plan that is expected', async () => {
    const unused = expected.unused.flatMap((column) => ['--unused', column]);
    const { init, plan, check } = await initialized(name, [...expected.flags, ...unused]);
    const { code, err } = await init();
    expect([code, err]).toEqual([0, '']);
    const { json } = await plan();
    const { desired, skipped, invalid, changes } = json.contacts;
    expect(json.certificate.source).toBe(true);
    expect({ desired, skipped, invalid }).toEqual({
      desired: expected.desired,
      skipped: expected.skipped.count,
      invalid: expected.invalid.length,
    });
    expect(changes).toMatchObject(expected.plan);

    const checked = await check();
    expect(checked.code).toBe(4);
    expect(checked.json).toMatchObject({ ok: true, contacts: { desired, skipped, invalid } });
    expect(checked.json.people).toHaveLength(5);
    const columns = checked.json.columns.map((column: { fields: string[] }) => column.fields[0]);
    expect(columns).toEqual(expect.arrayContaining(Object.values(expected.columns.channels)));
  });
});

test('a column of free text is refused with its words, and nothing is written', async () => {
  const { flags, refusal } = refusalOf('free-text');
  const { init, plan } = await initialized('free-text', flags);
  const { code, said } = await init();
  expect(code).toBe(refusal.exit);
  expect(said).toContain(`"${refusal.mustName.column}"`);
  for (const [word, records] of Object.entries(refusal.mustName.words)) {
    expect(said).toMatch(new RegExp(`${records} (records )?holds? "${word}"`));
  }
  for (const text of refusal.mustNotShow) expect(said).not.toContain(text);
  expect((await plan()).code).toBe(2);
});
