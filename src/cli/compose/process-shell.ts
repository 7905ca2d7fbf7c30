/** The interfaces between cli.ts, the commands, and the process that they run in. */
import type { Command } from 'commander';
import type { Platform } from '../../platform/platform.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';

/** A command's access to its process. cli.ts makes the real one, tests make others. */
export interface Shell {
  /** The environment, for ${NAME} in the configuration. */
  env: Record<string, string | undefined>;
  /** Prints one line of results to stdout. */
  print(line: string): void;
  /** Prints one line for people to stderr. */
  note(line: string): void;
  /** Redraws the progress line on stderr; does nothing if that is no terminal. */
  progress(line: string): void;
  /** Whether stdout is a terminal, so that addresses may be shown. */
  terminal: boolean;
  /** Whether stderr is a terminal. */
  interactive: boolean;
  /** Aborted when the process is asked to stop; the reason is Interrupted. */
  stop: AbortSignal;
  /** Aborted when work in flight has to be given up: 8 s after `stop`, or when asked again. */
  abort: AbortSignal;
  /** The command line that runs. */
  argv?: readonly string[];
  /** Runs another command line in this process and returns its exit code. */
  call?(argv: readonly string[], shell: Shell): Promise<number>;
  /** Returns the mirror, if this process holds it already. */
  held?(): Assembled;
}

/**
 * One command: a file in src/commands that exports `options` and `run`, and that cli.ts names.
 * `run` returns the exit code (docs/exit-codes.md), and throws the errors of domain/errors.ts.
 */
export interface CommandModule {
  options(command: Command): void;
  run(command: Command, shell: Shell): Promise<number>;
}

/** A command with several parts, such as `domains list`: its file exports `parts`. */
export interface CommandGroup {
  parts: readonly CommandPart[];
}

/** One part of a command. */
export interface CommandPart extends CommandModule {
  name: string;
  summary: string;
}

export interface Assembled {
  mirror: Mirror;
  platform: Platform;
  /** Builds the same mirror once more for a run beside this one. Close it first. */
  sibling(): Assembled;
  close(failure?: unknown): Promise<void>;
}
