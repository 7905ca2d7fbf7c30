/**
 * Runs the commands that are passed to a worker: a caller's command line, in the worker's mirror.
 */
import { checkedJson } from '../domain/stored-json.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Unavailable } from '../domain/errors.ts';
import type { Config } from '../config/config.ts';
import type { TakenCommand } from '../compose/queues/command-queue.ts';
import type { Seal } from '../compose/queues/payload-encryption.ts';
import type { Shell } from '../compose/process-shell.ts';
import { refusePaused } from '../compose/mirror-files.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { type Call, call, type HandoverOutcome, type News } from '../app/remote/worker-handover.ts';
import type { MirrorHost } from './mirror-host.ts';
import { isPassing } from './open-mirror.ts';

const progressEachMs = 500;

export interface Hand {
  config: Config;
  shell: Shell;
  seal: Seal;
  host: Pick<MirrorHost, 'hold' | 'reopen'>;
  now(): number;
}

/**
 * Runs a command and returns its encrypted outcome, or `elsewhere` if another worker has the
 * mirror now. A command is accepted once: what Redis offers again, after a restart, too, is not
 * run. It must still be valid when it begins, after waiting for runs, so one whose caller waits no
 * longer is not begun. Throws Invalid for input that was not sealed as a command of this mirror, or
 * has expired.
 */
export async function doHanded(
  { config, shell, seal, host, now }: Hand,
  { sealed, latest, tell }: TakenCommand,
): Promise<string> {
  const order = seal.openOrder(sealed, 'command', now());
  const about = order.number;
  const wanted = checkedJson('a command', call).decode(order.text);
  const lines: string[] = [];
  const notes: string[] = [];
  const inner = shellFor(shell, wanted, {
    print: (line) => lines.push(line),
    told(news) {
      if ('note' in news) notes.push(news.note);
      tell(seal.close(JSON.stringify(news), { purpose: 'progress', about }));
    },
  });
  let isElsewhere = false;
  const admit: Shell['admit'] = async ({ effect, where }, run) => {
    if (where === 'here') return exitCode('invalid');
    let isHeld = false;
    try {
      const code = await host.hold(where, async (held, stop) => {
        isHeld = true;
        if (now() > order.expiresAt) seal.openOrder(await latest(), 'command', now(), about);
        const { snapshot } = held.mirror;
        const { number, expiresAt } = order;
        if (!snapshot.transaction(() => snapshot.usedNumbers.use(number, expiresAt, now()))) {
          throw new Unavailable('this command was begun before, and is not run again', {
            fix: 'look at `status` and `runs` for what it has done, and give it again if it is needed',
            acted: 'maybe',
          });
        }
        if (effect !== 'steers') refusePaused(snapshot.meta, config);
        return run({ stop, held: () => held });
      });
      // From now on, the new configuration determines which account the mirror belongs to.
      if (wanted.argv[0] === 'rebind') await host.reopen();
      return code;
    } catch (error) {
      if (isHeld || !isPassing(error)) throw error;
      isElsewhere = true;
      return exitCode('busy');
    }
  };
  const code = await withFiles(
    wanted,
    async (argv) => shell.call?.([...argv, '-c', config.file], { ...inner, admit }) ?? 2,
  );
  if (isElsewhere) return 'elsewhere';
  const outcome = { code, lines, notes } satisfies HandoverOutcome;
  return seal.close(JSON.stringify(outcome), { purpose: 'outcome', about });
}

/** Calls `run` with the caller's files in a folder, as the command expects them. */
async function withFiles<T>(
  { argv, files }: Call,
  run: (argv: readonly string[]) => Promise<T>,
): Promise<T> {
  if (files.length === 0) return run(argv);
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  try {
    let words = argv;
    for (const { at, text } of files) {
      const file = join(folder, `${at}.txt`);
      writeFileSync(file, text, { mode: 0o600 });
      words = words.with(at, file);
    }
    return await run(words);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function shellFor(
  { env, stop, abort, call: again }: Shell,
  { terminal, interactive, colored, operator }: Call,
  hears: { print(line: string): void; told(news: News): void },
): Shell {
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    env,
    stop,
    abort,
    ...(again && { call: again }),
    terminal,
    interactive,
    colored,
    ...(operator !== undefined && { operator }),
    print: hears.print,
    note: (note) => hears.told({ note }),
    progress(progress) {
      const now = performance.now();
      if (!interactive || now - toldAt < progressEachMs) return;
      toldAt = now;
      hears.told({ progress });
    },
  };
}
