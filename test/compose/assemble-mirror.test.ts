/** A mirror that cannot be built leaves nothing open. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { assemble } from '../../src/compose/assemble-mirror.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { silentShell } from '../support/commands/mirrored-contacts.ts';
import { createWorld } from '../support/engine/engine-world.ts';
import { openFiles } from '../support/waiting.ts';

test('a mirror whose key cannot be written is free for the next attempt', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  const keyFile = join(world.folder, 'missing/key');
  const { signal } = new AbortController();
  const shell = { ...silentShell, stop: signal, abort: signal };
  const loaded = loadConfig(world.config(), {});
  const config = { ...loaded, memory: { ...loaded.memory, keyFile } };
  const open = async () => assemble(config, shell, { writes: true });
  const before = openFiles(world.folder);
  for (const _ of [1, 2]) await expect(open()).rejects.toThrow('ENOENT');
  expect(openFiles(world.folder)).toEqual(before);

  mkdirSync(dirname(keyFile));
  const { mirror, close } = await open();
  expect(mirror.audit).toBeDefined();
  await close();
  expect(openFiles(world.folder)).toEqual(before);
});
