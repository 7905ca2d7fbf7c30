import type { Command } from 'commander';
import type { Assembled } from './assembled-mirror.ts';

/** What a command may touch of the process it runs in; cli.ts makes the real one, tests another. */
export interface Shell {
  /** The environment, for the configuration's ${NAME}s. */
  env: Record<string, string | undefined>;
  /** Results: stdout, one line. */
  print(line: string): void;
  /** Everything else a person should read: stderr, one line. */
  note(line: string): void;
  /** Redraws one line of progress on stderr; does nothing when that is no terminal. */
  progress(line: string): void;
  /** Whether stdout (results) is a terminal: then addresses may be shown. */
  terminal: boolean;
  /** Whether stderr (logs, progress) is a terminal. */
  interactive: boolean;
  /** Aborted, with Interrupted as its reason, when somebody asks the process to stop. */
  stop: AbortSignal;
  /** Aborted when what is in flight must be given up: 8 s after that, or when asked once more. */
  abort: AbortSignal;
  /** The command line that is being run. */
  argv?: readonly string[];
  /** Runs another one in this process, and answers its exit code. */
  call?(argv: readonly string[], shell: Shell): Promise<number>;
  /** The mirror, where this process holds it already. */
  held?(): Assembled;
}

/**
 * One command: a file of this folder exports `options` and `run`, and a line in cli.ts names it.
 * `run` answers the exit code (README, exit codes); it throws one of domain/errors.ts otherwise.
 */
export interface CommandModule {
  options(command: Command): void;
  run(command: Command, shell: Shell): Promise<number>;
}

/** A command of several parts, as `domains list`: a file of this folder that exports `parts`. */
export interface CommandGroup {
  parts: readonly CommandPart[];
}

export interface CommandPart extends CommandModule {
  name: string;
  summary: string;
}
