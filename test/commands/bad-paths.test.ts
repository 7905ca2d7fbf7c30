/** Paths of the configuration that lead to nothing that can be used: one line, and exit 2. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { calling } from '../support/commands/mirrored-contacts.ts';

const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-paths-'));
afterAll(() => rmSync(folder, { recursive: true }));
symlinkSync('loop', join(folder, 'loop'));
writeFileSync(join(folder, 'people.csv'), 'id,email,news\n1,ann@example.com,yes\n');

interface Paths {
  snapshot?: string;
  key?: string;
  people?: string;
  memoryKey?: string;
}

function configuration(paths: Paths): string {
  const { snapshot = 'a.sqlite', key = 'apiKey: k', people = 'people.csv', memoryKey } = paths;
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
    ...(memoryKey === undefined ? [] : [`memoryKeyFile: ${memoryKey}`]),
  ];
  writeFileSync(file, lines.join('\n'));
  return file;
}

/** What a command says, without logs, and its exit code. */
async function call(command: string, paths: Paths) {
  const { code, said } = await calling([command, '-c', configuration(paths)]);
  const lines = said.split('\n').filter((line) => line.startsWith('crm-mirror: '));
  return { code, lines: lines.map((line) => line.replaceAll(folder, '').slice(12)) };
}

// prettier-ignore
test.each<[string, Paths, string]>([
  ['a folder that is a link to itself', { snapshot: 'loop/y.sqlite' }, '/loop/y.sqlite: the folder /loop cannot be made (EEXIST) →'],
  ['a snapshot that links to itself',   { snapshot: 'loop' }, '/loop: the symbolic links lead in a circle →'],
  ['a snapshot that is a device',       { snapshot: '/dev/zero' }, '/dev/zero: this is no regular file, as the snapshot is →'],
  ['a key file without end',            { key: 'apiKeyFile: /dev/zero' }, '/mirror.yaml:3:52  platform.apiKeyFile  names a file that holds more than a key  →'],
  ['a key file that links to itself',   { key: 'apiKeyFile: loop' }, '/mirror.yaml:3:52  platform.apiKeyFile  names a file that cannot be read (ELOOP)  →'],
  ['an export that links to itself',    { people: 'loop' }, '/loop: the symbolic links lead in a circle;'],
  ['a memory key without end',          { memoryKey: '/dev/zero' }, '/dev/zero: this is no regular file, as the key of the memory is →'],
  ['a ledger key that links to itself', { memoryKey: 'loop' }, '/loop: the symbolic links lead in a circle →'],
])('%s', async (_, paths, line) => {
  const { code, lines } = await call('sync', paths);
  expect(lines.map((one) => one.slice(0, line.length))).toEqual([line]);
  expect(code).toBe(2);
});

// prettier-ignore
describe.each<[string, string]>([
  ['/dev/null/x.sqlite',   '/dev/null is no folder'],
  ['/dev/null/x/y.sqlite', '/dev/null is no folder'],
  ['people.csv/x.sqlite',  '/people.csv is no folder'],
  ['/proc/x.sqlite',       'no file can be made in /proc'],
  ['/proc/x/y.sqlite',     'no file can be made in /proc'],
])('a snapshot where none can be: %s', (snapshot, why) => {
  test.each(['sync', 'status'])('is refused by %s', async (command) => {
    const { code, lines } = await call(command, { snapshot });
    const path = snapshot.startsWith('/') ? snapshot : `/${snapshot}`;
    expect(lines).toEqual([`${path}: ${why} → write another path into snapshot`]);
    expect(code).toBe(2);
  });
});
