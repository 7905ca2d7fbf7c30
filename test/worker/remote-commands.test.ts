/** A command that waits for a run, in the hands of a worker. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { explain } from '../../src/compose/output/failure-report.ts';
import type { Shell } from '../../src/compose/process-shell.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { sealOf } from '../../src/compose/queues/payload-encryption.ts';
import { doHanded } from '../../src/worker/remote-commands.ts';
import { assemble } from '../../src/compose/assemble-mirror.ts';
import { createWorld } from '../support/engine/engine-world.ts';
import { silentShell } from '../support/commands/mirrored-contacts.ts';

const seal = sealOf({ key: '7f'.repeat(32), mirror: 'world', random: randomBytes });
const [begin, minute] = [Date.UTC(2026, 10, 28), 60_000];
const caller = { terminal: false, interactive: false, colored: false, operator: 'Anna' };
const text = JSON.stringify({ argv: ['sync'], files: [], ...caller });
const given = (now: number, number?: string) => seal.closeOrder(text, 'command', now, number);

test.each([
  ['begins if its caller waits', 1, (number: string) => given(begin + 59 * minute, number)],
  [
    'does not begin if its caller has left',
    0,
    (number: string) => given(begin + 57 * minute, number),
  ],
  ['does not begin if another one stands in its place', 0, () => given(begin + 60 * minute)],
])('a command that has waited for an hour %s', async (_, times, latest) => {
  const world = await createWorld({ kinds: ['contact'] });
  const config = loadConfig(world.config(), {});
  const stop = new AbortController().signal;
  let called = 0;
  const call: Shell['call'] = async (_argv, { admit, note }) => {
    const run = async () => (called += 1);
    const code = admit?.({ effect: 'run', where: 'alone' }, run);
    // As the command line does with every error.
    await code?.catch((error: unknown) => note(explain(error).text));
    return 0;
  };
  const shell = { ...silentShell, stop, abort: stop, call };
  const held = await assemble(config, shell, { writes: true, acceptLostLedger: false });
  let now = begin;
  const { sealed, number } = given(now);
  const outcome = await doHanded(
    {
      config,
      shell,
      seal,
      now: () => now,
      host: {
        reopen: async () => undefined,
        async hold(__, work) {
          now += 60 * minute;
          return work(held, stop);
        },
      },
    },
    { sealed, latest: async () => latest(number).sealed, tell: () => undefined },
  );
  await held.close();
  const { notes } = JSON.parse(seal.open(outcome, { purpose: 'outcome', about: number }));
  expect([called, String(notes).includes('was valid until')]).toEqual([times, times === 0]);
});
