import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { launch } from '../support/engine/engine-world.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const copyOf = ({ folder }: Mirrored) => join(folder, 'copy.sqlite');

/** Puts a backup where the snapshot is, as docs/backup-and-restore.md says. */
function restore(world: Mirrored): void {
  for (const end of ['', '-wal', '-shm']) rmSync(world.path + end, { force: true });
  copyFileSync(copyOf(world), world.path);
}

function rowsOf(file: string): unknown[] {
  const db = new Database(file);
  try {
    return db.prepare('select key, body from recorded order by key').all();
  } finally {
    db.close();
  }
}

describe('backup', () => {
  test('copies snapshot, memory and key completely, readable by the owner alone', async () => {
    const world = await mirrored();
    await world.call('sync');
    const file = copyOf(world);
    const { code, json } = await world.call('backup', file, '--json');
    const { size: bytes, mode } = statSync(file);
    const at = expect.stringMatching(/Z$/);
    const memory = { file: `${file}-memory`, key: `${file}-memory-key`, keyCopied: true };
    expect(json).toEqual({ mirror: 'world', file, bytes, at, integrity: 'ok', memory });
    expect({ code, mode: mode & 0o777 }).toEqual({ code: 0, mode: 0o600 });
    for (const one of [memory.file, memory.key]) expect(statSync(one).mode & 0o777).toBe(0o600);
    expect(rowsOf(file)).toEqual(rowsOf(world.path));
    expect(rowsOf(file)).toHaveLength(2);
    expect(readdirSync(world.folder).filter((name) => name.startsWith('copy'))).toEqual([
      'copy.sqlite',
      'copy.sqlite-memory',
      'copy.sqlite-memory-key',
    ]);
    const { out } = await world.call('backup', `${file}2`);
    expect(out).toMatch(/copy.sqlite2: \d+ kB, whole.*\n.*copy.sqlite2-memory: \d+ kB, whole/);
    expect(out).toContain(`${file}2-memory-key: the key of the memory`);
  });

  test('never overwrites a file', async () => {
    const world = await mirrored();
    await world.call('sync');
    const names = ['', '.part', '-memory', '-memory.part', '-memory-key', '-memory-key.part'];
    for (const name of names.map((end) => `copy.sqlite${end}`)) {
      writeFileSync(join(world.folder, name), 'mine');
      const { code, err } = await world.call('backup', copyOf(world));
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`${name}: `) });
      expect(statSync(join(world.folder, name)).size).toBe(4);
      // What was copied before that was found out is gone again.
      expect(readdirSync(world.folder).filter((one) => one.startsWith('copy'))).toEqual([name]);
      rmSync(join(world.folder, name));
    }
    expect((await world.call('backup', world.path)).code).toBe(2);
    const nowhere = await world.call('backup', join(world.folder, 'none/copy'));
    const says = expect.stringMatching(/none\/copy: there is no folder .*none →/);
    expect(nowhere).toMatchObject({ code: 2, err: says });
  });

  test('refuses a snapshot with broken pages and leaves no copy behind', async () => {
    const world = await mirrored();
    await world.call('sync');
    const bytes = readFileSync(world.path);
    writeFileSync(world.path, bytes.fill('x', bytes.length - 4096));
    const { code, err } = await world.call('backup', copyOf(world));
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('not a readable') });
    expect(readdirSync(world.folder).filter((name) => name.startsWith('copy'))).toEqual([]);
  });

  test('copies one moment of a snapshot that a run is writing, and does not disturb the run', async () => {
    const world = await mirrored();
    world.people(
      Array.from({ length: 60 }, (_, at) => ({ email: `p${at}@example.com`, news: 'yes' })),
    );
    const copied: number[] = [];
    world.server.watch.arrived = async ({ route, nth }) => {
      if (route !== 'contacts.enrol' || ![1, 21, 41].includes(nth)) return;
      copied.push((await world.call('backup', `${copyOf(world)}${nth}`)).code);
    };
    expect((await launch(['sync', '-c', world.file]).ended).code).toBe(0);
    expect(copied).toEqual([0, 0, 0]);
  });

  test('can be restored: people who unsubscribed since stay out, and the next run is full', async () => {
    const world = await mirrored();
    await world.call('sync');
    await world.call('backup', copyOf(world));
    world.people([{ email: bob, news: 'no', product: 'no' }]);
    await world.call('sync');
    world.emulator.dashboard.leave(ann, 'ch_news');
    restore(world);
    const standing = (await world.call('status', '--json')).json;
    expect(standing.attention).toMatchObject([{ code: 'restored' }]);
    expect(standing.restored.backupOf).toEqual(expect.any(String));
    world.people([
      { email: ann, news: 'yes' },
      { email: bob, news: 'yes' },
    ]);
    world.writes();
    const { json, err } = await world.call('sync', '--fast', '--json');
    expect(json).toMatchObject({ mode: 'full', status: 'done', contacts: { conflicts: 2 } });
    expect(err).toContain('put back from a backup of');
    expect(world.writes()).toEqual([]);
    expect((await world.call('status', '--json')).json).toMatchObject({ restored: null, ok: true });
    expect((await world.call('sync', '--fast', '--json')).json).toMatchObject({ mode: 'fast' });
  });

  test('refuses an unreadable memory and leaves no copy behind', async () => {
    const world = await mirrored();
    await world.call('sync');
    rmSync(`${world.path}-memory-key`);
    const { code, err } = await world.call('backup', copyOf(world));
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining('key of the memory'),
    });
    expect(readdirSync(world.folder).filter((name) => name.startsWith('copy'))).toEqual([]);
  });

  test('says that a key kept elsewhere is not copied', async () => {
    const world = await mirrored();
    const config = JSON.parse(readFileSync(world.file, 'utf8'));
    const keyFile = join(world.folder, 'memory.key');
    writeFileSync(world.file, JSON.stringify({ ...config, memoryKeyFile: keyFile }));
    await world.call('sync');
    const { code, out } = await world.call('backup', copyOf(world));
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(`${keyFile}: the key`) });
    expect(existsSync(`${copyOf(world)}-memory`)).toBe(true);
    expect(existsSync(`${copyOf(world)}-memory-key`)).toBe(false);
  });
});
