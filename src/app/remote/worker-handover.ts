/**
 * Passes a command that writes to the worker that has the mirror, and prints that worker's output
 * here. Without Redis, or without a worker, the command runs here.
 *
 *   caller   argv and its input, encrypted       →   worker   the same command line, in its mirror
 *   stderr   notes and progress, as they come    ←
 *   stdout   at the end, all lines and exit code ←   and every note, as the last may come late
 */
import { checkedJson } from '../../domain/stored-json.ts';
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Invalid, isExpected } from '../../domain/errors.ts';
import { systemClock } from '../../http/system-clock.ts';
import { sealIn } from '../../compose/queues/payload-encryption.ts';
import { type Shell, operatorName } from '../../compose/process-shell.ts';
import { existsSync, readFileSync } from 'node:fs';

const news = z.object({ note: z.string() }).or(z.object({ progress: z.string() }));
export type News = z.infer<typeof news>;

const outcome = z.object({
  code: z.number(),
  lines: z.array(z.string()),
  notes: z.array(z.string()).default([]),
});
export type HandoverOutcome = z.infer<typeof outcome>;

/**
 * Has the worker that has the mirror run the command; without one, if that one is gone, or if it is
 * not `forWorkers`, runs `here`. Throws Invalid without the key that encrypts it, and where an
 * empty snapshot would begin although Redis knows one. Throws Busy if the worker is gone and may
 * have begun it.
 */
export async function orHandOver(
  config: Config,
  shell: Shell,
  here: () => Promise<number>,
  forWorkers = true,
): Promise<number> {
  const { redis, mirror, memory } = config;
  const { argv, form } = shell;
  if (redis === undefined || shell.held || !argv || !form || form.where === 'here') return here();
  const withSnapshotHere = async (): Promise<number> => {
    if (existsSync(config.snapshot)) return here();
    throw new Invalid(
      `${config.snapshot}: there is no snapshot here, and Redis knows one of ${mirror}, whose ` +
        'opt-outs a new one would not have',
      {
        fix:
          'give the command where that snapshot is, or start its worker; if it is lost for good, ' +
          'start a worker once with --accept-lost-snapshot',
      },
    );
  };
  // The modules are loaded only if Redis is configured, because most commands start without it.
  const { connectQuickly } = await import('../../compose/queues/redis-connections.ts');
  const { openLockStore } = await import('../../compose/queues/lock-store.ts');
  const quick = connectQuickly(redis);
  const { isServed, isKnown } = openLockStore(quick, mirror);
  // While Redis is away, this process works on its own, as it does for rate limits.
  const found = await Promise.all([isServed(), isKnown()]).catch((error: unknown) => {
    if (isExpected(error)) return [false, false];
    quick.close();
    throw error;
  });
  if (!found[0] || !forWorkers) {
    quick.close();
    return found[1] ? withSnapshotHere() : here();
  }
  try {
    const seal = sealIn(config, randomBytes);
    if (!seal) {
      throw new Invalid(
        `${memory.keyFile}: the key of the memory is missing, and without it the worker that has this ` +
          'mirror accepts no command',
        {
          fix: 'name a copy of the key as memoryKeyFile here, or run the command where the worker runs',
        },
      );
    }
    shell.note(`crm-mirror: the worker that has ${mirror} runs this command`);
    const called = JSON.stringify(callOf(shell, argv));
    const close = (number?: string) =>
      seal.closeOrder(called, 'command', systemClock.now(), number);
    const { sealed, number: about } = close();
    const queue = { url: redis, mirror, clock: systemClock };
    let noted = 0;
    const { handOver } = await import('../../compose/queues/command-queue.ts');
    const answer = await handOver(queue, {
      sealed,
      renew: () => close(about).sealed,
      how: form.where,
      urgent: form.isUrgent === true,
      tell(text) {
        const told = checkedJson('the progress', news).decode(
          seal.open(text, { purpose: 'progress', about }),
        );
        if ('note' in told) {
          noted += 1;
          shell.note(told.note);
        } else shell.progress(told.progress);
      },
      signal: shell.stop,
      isServed,
    });
    if (answer === undefined) {
      shell.note(`crm-mirror: the worker that had ${mirror} is gone: the command runs here`);
      return await withSnapshotHere();
    }
    const opened = seal.open(answer, { purpose: 'outcome', about });
    const { code, lines, notes } = checkedJson('the answer of the worker', outcome).decode(opened);
    for (const note of notes.slice(noted)) shell.note(note);
    // Without colours of its own, the line is printed as any text.
    for (const line of lines) shell.print(line.includes('\u001B[') ? { styled: line } : line);
    return code;
  } finally {
    quick.close();
  }
}

/** Returns the shell of the same command line with more words, which a worker needs. */
export function withWords(shell: Shell, ...words: string[]): Shell {
  const [name = '', ...rest] = shell.argv ?? [];
  return shell.argv ? { ...shell, argv: [name, ...words, ...rest] } : shell;
}

export const call = z.object({
  /** The command and its arguments, without the configuration, which the worker has. */
  argv: z.array(z.string()),
  /** The files of the caller that the words at these places name. */
  files: z.array(z.object({ at: z.number().int().positive(), text: z.string() })),
  terminal: z.boolean(),
  interactive: z.boolean(),
  colored: z.boolean(),
  operator: z.string(),
});
export type Call = z.infer<typeof call>;

const fileOptions = ['--plan', '--people'];

/** Returns the command line for the worker, and reads the files that it names. */
export function callOf(shell: Shell, given: readonly string[]): Call {
  const { terminal, interactive, colored = false } = shell;
  const argv = withoutConfig(given).flatMap((word) => {
    const option = fileOptions.find((one) => word.startsWith(`${one}=`));
    return option === undefined ? [word] : [option, word.slice(option.length + 1)];
  });
  const files = fileOptions.flatMap((option) => {
    const at = argv.indexOf(option) + 1;
    const file = at === 0 ? undefined : argv[at];
    return file === undefined ? [] : [{ at, text: readFileSync(file, 'utf8') }];
  });
  return { argv, files, terminal, interactive, colored, operator: operatorName(shell) };
}

/** Removes -c FILE, -cFILE, --config FILE and --config=FILE. */
export function withoutConfig(argv: readonly string[]): string[] {
  const left: string[] = [];
  let isValue = false;
  for (const [at, token] of argv.entries()) {
    if (isValue) isValue = false;
    else if (token === '--') return [...left, ...argv.slice(at)];
    else if (token === '-c' || token === '--config') isValue = true;
    else if (!token.startsWith('-c') && !token.startsWith('--config=')) left.push(token);
  }
  return left;
}
