import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Interrupted } from '../../src/domain/errors.ts';
import { backUp, type BackupPart } from '../../src/store/database/database-backup.ts';
import { lookInto, openSnapshot } from '../../src/store/open-snapshot.ts';
import { scratchFolder } from '../support/waiting.ts';

async function* one(part: Promise<BackupPart>) {
  yield part;
}

test('an interrupted copy leaves nothing behind, and can be repeated', async () => {
  const folder = scratchFolder();
  const snapshot = openSnapshot(join(folder, 'a.sqlite'));
  onTestFinished(() => snapshot.close());
  const stop = new AbortController();
  stop.abort(new Interrupted('SIGTERM'));
  const file = join(folder, 'copy.sqlite');
  const copied = (signal: AbortSignal) => backUp(one(snapshot.copy(file, { at: 0, signal })));
  const copies = () => readdirSync(folder).filter((name) => name.startsWith('copy'));
  await expect(copied(stop.signal)).rejects.toThrow('SIGTERM');
  expect(copies()).toEqual([]);
  await copied(new AbortController().signal);
  expect(copies()).toEqual(['copy.sqlite']);
});

test('a reader sees what others write, and can write nothing', () => {
  const path = join(scratchFolder(), 'a.sqlite');
  expect(lookInto(path)).toBeUndefined();
  const snapshot = openSnapshot(path);
  const looking = lookInto(path);
  snapshot.transaction(() => snapshot.meta.set('x', 'y'));
  expect(looking?.meta.get('x')).toBe('y');
  expect(() => looking?.meta.set('x', 'z')).toThrow(/readonly/);
  looking?.close();
  snapshot.close();
});

test('the first copy gets its name last, and without another one none does', async () => {
  const named: string[] = [];
  const part = (name: string, isBroken = false): BackupPart => ({
    name() {
      if (isBroken) throw new Error('the disk is full');
      named.push(name);
    },
    drop: () => void named.push(`drop ${name}`),
  });
  async function* parts(isBroken: boolean) {
    yield part('snapshot');
    yield part('list', isBroken);
  }
  await backUp(parts(false));
  expect(named).toEqual(['list', 'snapshot']);
  named.length = 0;
  await expect(backUp(parts(true))).rejects.toThrow('the disk is full');
  expect(named).toEqual(['drop snapshot', 'drop list']);
});
