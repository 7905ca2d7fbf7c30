/** A mirror whose parts cannot be connected leaves nothing open. */
import { expect, test } from 'vitest';
import { assemble } from '../../../src/cli/compose/assemble-mirror.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { silentShell } from '../../support/commands/silent-shell.ts';
import { createWorld } from '../../support/engine/engine-world.ts';

test('a connection that cannot be made leaves the mirror free for the next attempt', async () => {
  const { config } = await createWorld({ kinds: ['contact'] });
  const { signal } = new AbortController();
  const shell = { ...silentShell, stop: signal, abort: signal };
  const standIns = {
    clock: systemClock,
    random: Math.random,
    sourceFor: (_: string, source: never) => source,
    connect: () => {
      throw new Error('no connection');
    },
  };
  const loaded = loadConfig(config(), {});
  await expect(assemble(loaded, shell, { writes: true, standIns })).rejects.toThrow(
    'no connection',
  );
  const { close } = await assemble(loaded, shell, { writes: true });
  await close();
});
