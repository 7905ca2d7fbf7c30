/** Reads a mirror for the console, and runs commands in it as the command line does. */
import type { Clock } from '../../domain/clock.ts';
import { renderProblem } from '../../domain/errors.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import type { Config } from '../../config/config.ts';
import type { Attention } from '../../cli/status/attention-list.ts';
import { see, type Seen } from '../../cli/lookup/snapshot-command.ts';
import { assemble } from '../../cli/compose/assemble-mirror.ts';
import type { Assembled, Shell } from '../../cli/compose/process-shell.ts';
import { connect } from '../../cli/compose/platform-connection.ts';
import { runSeparately } from '../../cli/compose/separate-process.ts';
import { exitCode } from '../../cli/output/exit-codes.ts';
import { renderLine } from '../../cli/output/text-style.ts';
import type { Platform } from '../../platform/platform.ts';
import type { User } from '../access/visitor.ts';
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
  /** Runs a command line that only reads, in a process of its own, because it may take long. */
  runApart(argv: readonly string[]): Promise<CommandResult>;
}

/** What a command has answered. */
export interface CommandResult {
  /** The exit code (docs/exit-codes.md). */
  code: number;
  /** What it printed: results first, then notes. */
  lines: string[];
}

function sayFault({ text, fix }: Attention): string {
  return renderProblem({ reason: text, fix });
}

/** How old the status may be, in the times that it took. */
const ageAtMost = 10;

interface ConsoleMirrorOptions {
  clock: Clock;
  /** Returns what only this process notices; nothing by default. */
  faults?(): readonly Attention[];
}

/** Creates the access to a mirror. */
export function consoleMirror(
  config: Config,
  shell: Shell,
  { clock, faults = () => [] }: ConsoleMirrorOptions,
): ConsoleMirror {
  const { held: _, ...outer } = shell;
  let last: { status: PageStatus; until: number } | undefined;
  return {
    config,
    limits: () => ({}),
    status() {
      const began = clock.monotonic();
      if (!last || began >= last.until) {
        const status = readPageStatus(config);
        const ended = clock.monotonic();
        last = { status, until: ended + ageAtMost * (ended - began) };
      }
      return { ...last.status, attention: [...faults(), ...last.status.attention] };
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
      const lines: string[] = [];
      const notes: string[] = [];
      const inner: Shell = {
        ...outer,
        terminal: user.seesAddresses,
        colored: false,
        interactive: false,
        canAsk: false,
        // A proxy may name users by their addresses, and decisions are kept without any.
        operator: `${user.name.replaceAll('@', ' at ')} (console)`,
        print: (line) => lines.push(renderLine(line, false)),
        note: (line) => notes.push(line),
        progress: () => undefined,
      };
      const code = (await shell.call?.([...argv, '-c', config.file], inner)) ?? 2;
      last = undefined;
      const [fault] = faults();
      const isPaused = code === exitCode('busy') && readPageStatus(config).status.paused !== null;
      // Another process seems to hold the mirror: this worker, which gets commands through Redis.
      if (code === exitCode('busy') && fault && !isPaused) {
        return { code, lines: [`The worker was not given this command. ${sayFault(fault)}`] };
      }
      return { code, lines: [...lines, ...notes] };
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
    runApart: (argv) => runSeparately([...argv, '-c', config.file], shell),
  };
}
