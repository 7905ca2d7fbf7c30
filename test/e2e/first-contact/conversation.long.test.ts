/** `init` without flags on a terminal: what it asks, and what comes of the answers. */
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeExport } from './german/make.ts';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { calling } from '../../support/commands/mirrored-contacts.ts';
import { inTerminal, keys } from '../../support/commands/terminal-session.ts';
import { servePlatform } from '../../support/engine/platform-server.ts';
import { serve } from '../../support/http/test-server.ts';
import { scratch } from '../../support/sources/source-reading.ts';

const { backspace, enter, down, interrupt } = keys;

async function exported() {
  const folder = await scratch();
  const path = join(folder, 'kunden.csv');
  writeFileSync(path, makeExport());
  utimesSync(path, new Date(0), new Date(0));
  return { folder, output: join(folder, 'mirror.yaml') };
}

test('an export is asked about, previewed, written and checked', async () => {
  const { folder, output } = await exported();
  const channels = [{ id: 'ch_news', name: 'Newsletter' }];
  const options = { clock: systemClock, random: seeded(1), apiKey: 'key', channels };
  const { url } = await servePlatform(createEmulator(options));
  const env = { PLATFORM_URL: url, PLATFORM_API_KEY: 'key' };
  const { answer, seen, shown, ended } = inTerminal(['init'], { cwd: folder, env });
  await answer('Where are the people?', enter);
  await answer('Which file?', 'kunden.csv', enter);
  await answer('What is the id of the channel', 'ch_news', enter);
  await answer('Which column holds the consent to ch_news?', enter);
  await answer('Is there another channel?', 'n');
  await answer('what does "unbekannt" mean? (525 records)', down, down, down, enter);
  await answer('what does "naja" mean?', down, down, down, down, enter);
  await answer('Is this right?', down, down, down, down, enter);
  await answer('Which column says that a person is gone?', down, down, enter);
  await seen('no column');
  await answer('Is this right?', enter);
  await answer('Where is the configuration written to?', enter);
  await answer('What is the name of this mirror?', enter);
  await seen('ok   configuration');
  await seen('Next: crm-mirror plan -c mirror.yaml');
  await seen('The same without questions:');
  expect([0, 4]).toContain(await ended);
  expect(shown()).toMatch(/frieda\.1@example\.org +out \(nein\)/);
  expect(shown()).toMatch(/kathe\.2@example\.org +– \(unbekannt\)/);
  const line =
    'crm-mirror init kunden.csv --mirror kunden --no-deleted --channel ch_news=Newsletter ' +
    '--words Newsletter:none=unbekannt --yes';
  expect(shown().replaceAll(/\s+/g, ' ')).toContain(line);
  const other = join(folder, 'other.yaml');
  const flags = line.split(' ').slice(3);
  await calling(['init', join(folder, 'kunden.csv'), '--output', other, ...flags], { env });
  expect(readFileSync(output, 'utf8')).toBe(readFileSync(other, 'utf8'));
});

test('Ctrl-C writes nothing', async () => {
  const { folder, output } = await exported();
  const { answer, seen, ended } = inTerminal(['init', 'kunden.csv'], { cwd: folder });
  await answer('What is the id of the channel', interrupt);
  await seen('Nothing was written.');
  expect(await ended).toBe(130);
  expect(existsSync(output)).toBe(false);
});

test('a narrow terminal shows the same questions', async () => {
  const { folder, output } = await exported();
  const argv = ['init', 'kunden.csv', '--channel', 'ch_news=Newsletter'];
  const { answer, shown, ended } = inTerminal(argv, { cwd: folder, columns: 32 });
  await answer('unbekannt', down, down, down, down, enter);
  await answer('Is this right?', enter);
  await answer('written to?', enter);
  await answer('mirror?', enter);
  expect(await ended).toBe(0);
  expect(shown().replaceAll('\r', '')).toMatch(/│ {4}frieda\.1@exam… {2}out \(nein\)$/m);
  expect(existsSync(output)).toBe(true);
});

test('an API is asked about, and a word of an opt-out that is not known', async () => {
  const people = [1, 2, 3].map((id) => {
    return { id, email: `p${id}@example.com`, news: 'yes', do_not_mail: id === 1 ? 'X' : '' };
  });
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ people }));
  });
  const folder = await scratch();
  const { answer, seen, shown, ended } = inTerminal(['init'], { cwd: folder });
  await answer('Where are the people?', down, down, enter);
  await answer('What is the address of the list?', `${url}/api`, enter);
  await answer('Does it need a header', 'n');
  await answer('1 record of do_not_mail holds an unknown word.', enter);
  await answer('do_not_mail: what does "X" mean? (1 record)', enter);
  await answer('What is the id of the channel', 'ch_news', enter);
  await answer('Which column holds the consent to ch_news?', enter);
  await answer('Is there another channel?', 'n');
  await answer('Is this right?', enter);
  await answer('written to?', enter);
  await answer('name of this mirror?', enter);
  await seen('--words do_not_mail:yes=X --yes');
  expect(await ended).toBe(0);
  expect(shown()).toMatch(/p1@example\.com +out +no mail: do_not_mail \(X\)/);
  expect(readFileSync(join(folder, 'mirror.yaml'), 'utf8')).toContain('records: people');
});

test('a column that is named like an opt-out is asked about before it is a channel', async () => {
  const folder = await scratch();
  const rows = ['id,email,No_Mail', '1,ann@example.com,0', '2,bob@example.com,1'];
  writeFileSync(join(folder, 'people.csv'), [...rows, ''].join('\n'));
  utimesSync(join(folder, 'people.csv'), new Date(0), new Date(0));
  const argv = ['init', 'people.csv', '--channel', 'ch_news=No_Mail'];
  const { answer, seen, shown, ended } = inTerminal(argv, { cwd: folder });
  await answer('No_Mail is named like an opt-out. What does a yes in it mean?', down, enter);
  await seen('a yes opts out, everybody else is in');
  await answer('Is this right?', enter);
  await answer('written to?', enter);
  await answer('name of this mirror?', enter);
  await seen('--channel ch_news=No_Mail --else-in No_Mail --yes');
  expect(await ended).toBe(0);
  expect(shown()).toMatch(/bob@example\.com +out \(1\)/);
  const written = readFileSync(join(folder, 'mirror.yaml'), 'utf8');
  expect(written).toContain('subscription: { optOut: No_Mail, else: in }');
});

test('a column that looks like a flag is asked about, and Enter alone writes nothing', async () => {
  const folder = await scratch();
  const rows = Array.from(
    { length: 9 },
    (_, at) => `${at},p${at}@example.com,yes,${at ? '' : 'X'}`,
  );
  const path = join(folder, 'people.csv');
  writeFileSync(path, `${['id,Email,News,KZ', ...rows].join('\n')}\n`);
  utimesSync(path, new Date(0), new Date(0));
  const argv = ['init', 'people.csv', '--channel', 'ch_news=News'];
  const first = inTerminal(argv, { cwd: folder });
  await first.answer('KZ looks like a flag ("X" 1×, empty 8×)', enter);
  await first.seen('Nothing was written.');
  expect(await first.ended).toBe(130);
  expect(existsSync(join(folder, 'mirror.yaml'))).toBe(false);
  const second = inTerminal(argv, { cwd: folder });
  await second.answer('KZ looks like a flag', down, down, enter);
  await second.answer('1 record of KZ holds an unknown word.', enter);
  await second.answer('KZ: what does "X" mean? (1 record)', enter);
  await second.answer('Is this right?', enter);
  await second.answer('written to?', enter);
  await second.answer('name of this mirror?', enter);
  await second.seen('--unsubscribed KZ --channel ch_news=News --words KZ:yes=X --yes');
  expect(await second.ended).toBe(0);
});

test('each further channel gets an id and a column that no other has', async () => {
  const folder = await scratch();
  const rows = ['Nr,Email,News,Offers', '1,ann@example.com,yes,no', '2,bob@example.com,no,yes'];
  writeFileSync(join(folder, 'people.csv'), [...rows, ''].join('\n'));
  utimesSync(join(folder, 'people.csv'), new Date(0), new Date(0));
  const env = { npm_command: 'exec' };
  const { answer, seen, ended } = inTerminal(['init', 'people.csv'], { cwd: folder, env });
  await answer('What is the id of the channel', 'ch_news', enter);
  await answer('Which column holds the consent to ch_news?', enter);
  await answer('Is there another channel?', 'y');
  await seen('What is the id of the channel');
  await answer('ch_product', 'ch_news', enter);
  await answer('this channel has its column already', ...Array(7).fill(backspace), 'ch_x', enter);
  await answer('Which column holds the consent to ch_x?', enter);
  await answer('Is there another channel?', 'n');
  await answer('Is this right?', enter);
  await answer('written to?', enter);
  await answer('name of this mirror?', enter);
  await seen('npx crm-mirror check -c mirror.yaml');
  await seen('--channel ch_news=News ch_x=Offers');
  expect(await ended).toBe(0);
});

test('each channel of the platform is asked for, and an unused column may be the consent', async () => {
  const folder = await scratch();
  const states = ['Ja;Nein;', 'Nein;Ja;', ';unbekannt;Ja', 'Ja;Ja;'];
  const rows = states.map((one, at) => `${at + 1};Jörg;Groß;p${at + 1}@example.com;${one}`);
  const names = 'Kundennr;Vorname;Nachname;E-Mail;Newsletter;Produktinfos;Werbesperre';
  const path = join(folder, 'kunden.csv');
  writeFileSync(path, Buffer.from([names, ...rows, ''].join('\r\n'), 'latin1'));
  utimesSync(path, new Date(0), new Date(0));
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
  const env = { PLATFORM_URL: url, PLATFORM_API_KEY: 'key' };
  const argv = ['init', 'kunden.csv'];
  const first = inTerminal(argv, { cwd: folder, env });
  await first.seen('ch_news: the column Newsletter, which is named like it');
  await first.answer(
    'Which column holds the consent to Product updates (ch_product)?',
    down,
    enter,
  );
  await first.answer('Is there another channel?', 'n');
  await first.answer('what does "unbekannt" mean?', down, down, down, enter);
  await first.answer('Is this right?', interrupt);
  expect(await first.ended).toBe(130);
  const second = inTerminal(argv, { cwd: folder, env });
  await second.answer('Which column holds the consent to Product updates (ch_product)?', enter);
  await second.answer('Is there another channel?', 'n');
  await second.answer('Produktinfos looks like a flag', down, down, down, enter);
  await second.answer('The consent to which channel?', enter);
  await second.answer('what does "unbekannt" mean?', down, down, down, enter);
  await second.answer('Is this right?', enter);
  await second.answer('written to?', enter);
  await second.answer('name of this mirror?', enter);
  await second.seen('--channel ch_news=Newsletter ch_product=Produktinfos --words');
  expect([0, 4]).toContain(await second.ended);
  expect(second.shown()).toMatch(/p3@example\.com +out +out +no mail: Werbesperre \(Ja\)/);
});
