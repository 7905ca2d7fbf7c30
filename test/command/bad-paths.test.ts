/** Paths of the configuration that lead to nothing that can be used: one line, and exit 2. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { calling } from './calling.ts';

const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-paths-'));
afterAll(() => rmSync(folder, { recursive: true }));
symlinkSync('loop', join(folder, 'loop'));
writeFileSync(join(folder, 'people.csv'), 'id,email,news\n1,ann@example.com,yes\n');

interface Paths {
  snapshot?: string;
  key?: string;
  people?: string;
  ledgerKey?: string;
}

function configuration(paths: Paths): string {
  const { snapshot = 'a.sqlite', key = 'apiKey: k', people = 'people.csv', ledgerKey } = paths;
  const file = join(folder, 'mirror.yaml');
  const lines = [
    'mirror: acme',
    `snapshot: ${snapshot}`,
    `platform: { url: "http://127.0.0.1:1", ${key} }`,
    'contacts:',
    `  source: { type: csv, path: ${people} }`,
    '  id: id',
    '  email: email',
    '  channels: [{ id: ch, subscription: news }]',
    ...(ledgerKey === undefined ? [] : [`ledgerKeyFile: ${ledgerKey}`]),
  ];
  writeFileSync(file, lines.join('\n'));
  return file;
}

/** What `sync` says, without logs, and its exit code. */
async function sync(paths: Paths) {
  const { code, said } = await calling(['sync', '-c', configuration(paths)]);
  const lines = said.split('\n').filter((line) => line.startsWith('crm-mirror: '));
  return { code, lines: lines.map((line) => line.replaceAll(folder, '').slice(12)) };
}

// prettier-ignore
test.each<[string, Paths, string]>([
  ['a folder that cannot be made',      { snapshot: '/proc/x/y.sqlite' }, '/proc/x/y.sqlite: the folder /proc/x cannot be made (ENOENT) →'],
  ['a folder below a file',             { snapshot: '/dev/null/x/y.sqlite' }, '/dev/null/x/y.sqlite: the folder /dev/null/x cannot be made (ENOTDIR) →'],
  ['a folder that is a link to itself', { snapshot: 'loop/y.sqlite' }, '/loop/y.sqlite: the folder /loop cannot be made (EEXIST) →'],
  ['a snapshot that links to itself',   { snapshot: 'loop' }, '/loop: the symbolic links lead in a circle →'],
  ['a snapshot that is a device',       { snapshot: '/dev/zero' }, '/dev/zero: this is no regular file, as the snapshot is →'],
  ['a key file without end',            { key: 'apiKeyFile: /dev/zero' }, '/mirror.yaml:3:52  platform.apiKeyFile  names a file that holds more than a key  →'],
  ['a key file that links to itself',   { key: 'apiKeyFile: loop' }, '/mirror.yaml:3:52  platform.apiKeyFile  names a file that cannot be read (ELOOP)  →'],
  ['an export that links to itself',    { people: 'loop' }, '/loop: the symbolic links lead in a circle;'],
  ['a ledger key without end',          { ledgerKey: '/dev/zero' }, '/dev/zero: this is no regular file, as the key of the ledger is →'],
  ['a ledger key that links to itself', { ledgerKey: 'loop' }, '/loop: the symbolic links lead in a circle →'],
])('%s', async (_, paths, line) => {
  const { code, lines } = await sync(paths);
  expect(lines.map((one) => one.slice(0, line.length))).toEqual([line]);
  expect(code).toBe(2);
});
