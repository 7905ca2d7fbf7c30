/** The id by which the folders of snapshots are told apart. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { diskOf as diskIn } from '../../src/store/database/snapshot-folder.ts';
import { scratch } from '../support/sources/source-reading.ts';

const randomHex = (bytes: number) => randomBytes(bytes).toString('hex');
const diskOf = (folder: string) => diskIn(folder, randomHex);

test('a folder keeps its id, and other folders have other ids', async () => {
  const folder = await scratch();
  const [one, two] = [join(folder, 'one/state'), join(folder, 'two/state')];
  expect(diskOf(one)).toMatch(/^[0-9a-f]{16}$/);
  expect(diskOf(one)).toBe(diskOf(one));
  expect(diskOf(two)).not.toBe(diskOf(one));
  symlinkSync(one, join(folder, 'mounted'));
  expect(diskOf(join(folder, 'mounted'))).toBe(diskOf(one));
});

test('processes that begin at once agree on the id, and leave no other file', async () => {
  const folder = await scratch();
  const module = new URL('../../src/store/database/snapshot-folder.ts', import.meta.url).href;
  const code = `import { diskOf } from '${module}';
    import { randomBytes } from 'node:crypto';
    console.log(diskOf(process.argv[1], (n) => randomBytes(n).toString('hex')));`;
  const args = ['--input-type=module', '-e', code, folder];
  const run = async () => promisify(execFile)(process.execPath, args);
  const told = await Promise.all(Array.from({ length: 8 }, run));
  expect([...new Set(told.map(({ stdout }) => stdout.trim()))]).toEqual([diskOf(folder)]);
  expect(readdirSync(folder)).toEqual(['.crm-mirror-disk']);
});

test('a file without an id gets one, and a folder that cannot be used has none', async () => {
  const folder = await scratch();
  writeFileSync(join(folder, '.crm-mirror-disk'), '');
  expect(diskOf(folder)).toMatch(/^[0-9a-f]{16}$/);
  expect(diskOf(folder)).toBe(diskOf(folder));
  expect(diskOf('/proc/state')).toBeUndefined();
  chmodSync(join(folder, '.crm-mirror-disk'), 0o444);
  expect(diskOf(join(folder, '.crm-mirror-disk'))).toBeUndefined();
});
