/** Defines the interfaces between cli.ts, the commands, and the process in which they run. */
import type { Command } from 'commander';
import type { Platform } from '../platform/platform.ts';
import type { OpenLink } from '../http/rate-limit/shared/redis-connection.ts';
import type { OutageRecord } from '../store/health-file.ts';
import type { LogLevel, OptionRows } from './command-options.ts';
import type { Line } from './output/text-style.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';

/** A command's access to its process. cli.ts creates the real one; tests create others. */
export interface Shell {
  /** The environment variables, for ${NAME} in the configuration. */
  env: Record<string, string | undefined>;
  /** Prints one line of results to stdout. */
  print(line: Line): void;
  /** Prints one line for people to stderr. */
  note(line: string): void;
  /**
   * Redraws the progress line on stderr, in the first form that fits the terminal. If stderr is not
   * a terminal, only a process that listens is told.
   */
  progress(line: string, shorter?: readonly string[]): void;
  /** Whether stdout is a terminal, so that addresses may be shown. */
  terminal: boolean;
  /** How many columns the terminal has; undefined if stdout is none. */
  width?: number | undefined;
  colored?: boolean;
  /** The least important level that is logged; the default depends on the terminal. */
  logLevel?: LogLevel;
  /** Whether to print results and errors only. */
  quiet?: boolean;
  /** Whether stdin and stdout are terminals, so that questions can be asked. */
  canAsk?: boolean;
  interactive: boolean;
  /** Aborted when the process is asked to stop; the reason is Interrupted. */
  stop: AbortSignal;
  /** Abandons work in flight: aborted 8 s after `stop`, or at the second request to stop. */
  abort: AbortSignal;
  /** Who gave the command, if another process passed it on. */
  operator?: string;
  /** The command line that is running, and what it does. */
  argv?: readonly string[];
  form?: CommandForm;
  /** Runs another command line in this process and returns its exit code. */
  call?(argv: readonly string[], shell: Shell): Promise<number>;
  /** Returns what a command line does that consists of words and `--option=value`. */
  formOf?(argv: readonly string[]): CommandForm;
  /**
   * Runs a command that another process has passed on, or refuses it. Called when its command line
   * has been read; `run` needs the mirror, and what stops the command.
   */
  admit?(
    form: CommandForm,
    run: (own: Pick<Shell, 'stop' | 'held'>) => Promise<number>,
  ): Promise<number>;
  /** Returns the mirror if this process already has it open. */
  held?(): Assembled;
  /** Records what is out of order in the mirror that this process serves. */
  outages?: OutageRecord;
  /** Opens the connection to Redis for rate limits, if the mirrors of the process share one. */
  openLink?: OpenLink;
}

/**
 * What a command does, and how it works while a worker has the mirror:
 *
 *   reads    changes nothing in the mirror, the CRM or the platform
 *   steers   decides what later runs may do; works while the mirror is paused
 *   person   decides about people, or acts on one
 *   run      runs the mirror
 *
 *   here     the process that is given the command runs it, beside the worker
 *   beside   the worker runs it, in parallel with a run
 *   alone    the worker runs it when no run is in progress
 */
export interface CommandForm {
  effect: 'reads' | 'steers' | 'person' | 'run';
  where: 'here' | 'beside' | 'alone';
  /** Whether a worker begins it before all other commands that wait. */
  isUrgent?: boolean;
}

/**
 * The code of a command in src/commands (table.ts). `run` returns the exit code
 * (docs/commands.md), and throws the errors of domain/errors.ts.
 */
export interface CommandModule {
  options: OptionRows;
  /** What the help says after the options; the lines of a paragraph are joined. */
  help?: string;
  run(command: Command, shell: Shell): Promise<number>;
}

export interface Assembled {
  mirror: Mirror;
  platform: Platform;
  /** Builds the same mirror again, for a run in parallel. It must be closed before this one. */
  sibling(): Assembled;
  close(failure?: unknown): Promise<void>;
}
