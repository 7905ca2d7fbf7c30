/** Reads a mirror for the console, and runs commands in it as the command line does. */
import type { Clock } from '../../domain/clock.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import type { Config } from '../../config/config.ts';
import { see, type Seen } from '../../cli/lookup/snapshot-command.ts';
import { assemble } from '../../cli/compose/assemble-mirror.ts';
import type { Assembled, Shell } from '../../cli/compose/process-shell.ts';
import { connect } from '../../cli/compose/platform-connection.ts';
import { type CommandAnswer, runSeparately } from '../../cli/compose/separate-process.ts';
import { renderLine } from '../../cli/output/text-style.ts';
import type { Platform } from '../../platform/platform.ts';
import type { User } from '../access/visitor.ts';
import { createJobs, type Jobs } from './jobs.ts';
import { type PageStatus, readPageStatus } from './page-status.ts';

/** A mirror that the console shows. */
export interface ConsoleMirror {
  config: Config;
  /** Reads with the snapshot open, which is undefined if there is none yet. */
  read<T>(user: Pick<User, 'seesAddresses'>, read: (seen: Seen) => T | Promise<T>): Promise<T>;
  /**
   * Returns the status. It is read again once it is older than ten times the time that it took:
   * many pages, or a page that is updated each second, cost a tenth of a processor at most. After a
   * command of the console, it is read again.
   */
  status(): PageStatus;
  /** Returns the rate limits that this process observes; none if it sends no requests. */
  limits(): Readonly<Record<string, RouteLimit>>;
  /**
   * Runs a command line without its configuration in the name of the user. If a worker has the
   * mirror, that worker runs it.
   */
  run(user: User, argv: readonly string[]): Promise<CommandResult>;
  /** Works with the mirror opened as commands open it that ask the CRM and write nothing. */
  assembled<T>(work: (opened: Assembled, shell: Shell) => Promise<T>): Promise<T>;
  /** Asks the platform, within its rate limits. */
  ask<T>(question: (platform: Platform, signal: AbortSignal) => Promise<T>): Promise<T>;
  /**
   * Runs a command line that only reads, in a process of its own, because it may take long. `heard`
   * receives its progress; `stop` ends it.
   */
  runApart(
    argv: readonly string[],
    heard?: (line: string) => void,
    stop?: AbortSignal,
  ): Promise<CommandResult>;
  /** The long work that operators have begun in the console. */
  jobs: Jobs;
}

/** What a command has answered. */
export interface CommandResult extends CommandAnswer {
  /** What it printed: results first, then notes. */
  lines: string[];
}

/** How old the status may be, in the times that it took. */
const ageAtMost = 10;

/** Creates the access to a mirror. */
export function consoleMirror(config: Config, shell: Shell, clock: Clock): ConsoleMirror {
  const { held: _, ...outer } = shell;
  let last: { status: PageStatus; until: number } | undefined;
  return {
    config,
    limits: () => ({}),
    status() {
      const began = clock.monotonic();
      if (last && began < last.until) return last.status;
      const status = readPageStatus(config);
      const ended = clock.monotonic();
      last = { status, until: ended + ageAtMost * (ended - began) };
      return status;
    },
    async read({ seesAddresses }, read) {
      const seen = see(config, seesAddresses);
      try {
        return await read(seen);
      } finally {
        seen.snapshot?.close();
      }
    },
    async run(user, argv) {
      const result = await runAs(user, shell, [...argv, '-c', config.file]);
      last = undefined;
      return result;
    },
    async assembled(work) {
      const opened = assemble(config, outer, { writes: false });
      try {
        return await work(opened, outer);
      } finally {
        await opened.close();
      }
    },
    async ask(question) {
      const platform = connect(config, shell);
      try {
        return await question(platform, shell.stop);
      } finally {
        await platform.close();
      }
    },
    async runApart(argv, heard, own) {
      const stop = own ? AbortSignal.any([shell.stop, own]) : shell.stop;
      const called = [...argv, '-c', config.file];
      const answer = await runSeparately(called, { env: shell.env, stop }, heard);
      return { ...answer, lines: [answer.out, answer.err].filter((text) => text !== '') };
    },
    jobs: createJobs(clock),
  };
}

/** Runs a command line in this process, in the name of the user. */
async function runAs(user: User, shell: Shell, argv: readonly string[]): Promise<CommandResult> {
  const { held: _, ...outer } = shell;
  const lines: string[] = [];
  const notes: string[] = [];
  const inner: Shell = {
    ...outer,
    // A document is for this console, and not for a terminal.
    terminal: user.seesAddresses && !argv.includes('--json'),
    colored: false,
    interactive: false,
    canAsk: false,
    operator: `${user.name} (console)`,
    // The command line has made plain texts safe already; a document has several lines.
    print: (line) => lines.push(typeof line === 'string' ? line : renderLine(line, false)),
    note: (line) => notes.push(line),
    progress: () => undefined,
  };
  const code = (await shell.call?.(argv, inner)) ?? 2;
  return { code, out: lines.join('\n'), err: notes.join('\n'), lines: [...lines, ...notes] };
}
