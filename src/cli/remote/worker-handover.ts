/**
 * A command that writes, called beside a worker that holds the mirror: the worker does it, and what
 * it prints is printed here. Without Redis, or a worker, the command is done here.
 *
 *   caller   argv and what it reads, sealed   →   worker   the same command line, in its own mirror
 *   stderr   notes and progress, as they come ←
 *   stdout   all lines at the end, exit code  ← with every note: the last may be late by themselves
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Invalid, isExpected } from '../../domain/errors.ts';
import { systemClock } from '../../http/system-clock.ts';
import { homeRecord } from '../../worker/queues/assignment-store.ts';
import { sealOf } from '../../worker/queues/payload-encryption.ts';
import { readKey } from '../../do-not-contact/list-key.ts';
import { besides, callOf } from './command-call.ts';
import type { Shell } from '../compose/process-shell.ts';

export const news = z.object({ note: z.string() }).or(z.object({ progress: z.string() }));
export type News = z.infer<typeof news>;

export const outcome = z.object({
  code: z.number(),
  lines: z.array(z.string()),
  notes: z.array(z.string()).default([]),
});
export type HandoverOutcome = z.infer<typeof outcome>;

/** Has the worker do it, where one holds the mirror; else does it here. Answers the exit code. */
export async function orHandOver(
  config: Config,
  shell: Shell,
  here: () => Promise<number>,
): Promise<number> {
  const { redis, mirror, ledger } = config;
  if (redis === undefined || shell.held || !shell.argv) return here();
  // Loaded only where there is a Redis: most commands of most mirrors start without.
  const { connectQuickly } = await import('../../worker/queues/redis-connections.ts');
  const quick = connectQuickly(redis);
  const isServed = async () => homeRecord(quick, mirror, randomBytes(8).toString('hex')).isServed();
  // Where Redis is away this process stands alone, as it does for the limits.
  const served = await isServed().catch((error: unknown) => {
    if (isExpected(error)) return false;
    quick.close();
    throw error;
  });
  if (!served) {
    quick.close();
    return here();
  }
  try {
    const key = readKey(ledger.keyFile);
    if (key === undefined) {
      throw new Invalid(
        `${ledger.keyFile}: the key of the ledger is not there, and without it nothing is handed to ` +
          'the worker that holds this mirror → give it here as ledgerKeyFile, or call it there',
      );
    }
    const seal = sealOf(key, randomBytes);
    shell.note(`crm-mirror: the worker that holds ${mirror} does it`);
    const sealed = seal.close(JSON.stringify(callOf(shell, shell.argv)));
    const queue = { url: redis, mirror, clock: systemClock };
    let noted = 0;
    const { handOver } = await import('../../worker/queues/command-queue.ts');
    const answer = await handOver(queue, {
      sealed,
      how: besides.has(shell.argv[0] ?? '') ? 'beside' : 'alone',
      urgent: shell.argv[0] === 'forget',
      tell(text) {
        const told = news.parse(JSON.parse(seal.open(text)));
        if ('note' in told) noted += 1;
        hear(shell, told);
      },
      signal: shell.stop,
      isServed,
    });
    const { code, lines, notes } = outcome.parse(JSON.parse(seal.open(answer)));
    for (const note of notes.slice(noted)) shell.note(note);
    for (const line of lines) shell.print(line);
    return code;
  } finally {
    quick.close();
  }
}

function hear(shell: Shell, told: News): void {
  if ('note' in told) shell.note(told.note);
  else shell.progress(told.progress);
}
