/** The flags that say how much a command prints, besides its results. */
import { type Command, Option } from 'commander';

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export type LogLevel = (typeof levels)[number];

export interface QuietFlags {
  quiet?: true;
  logLevel?: LogLevel;
}

/** Adds --quiet and --log-level. */
export function quietOptions(command: Command): Command {
  return command
    .option(
      '--quiet',
      'print results and errors only; nothing of a run that ends with 0 and no new problem',
    )
    .addOption(
      new Option('--log-level <level>', 'print JSON log lines of this level and above').choices(
        levels,
      ),
    );
}

/** Adds --verbose, --quiet and --log-level. */
export function verboseOptions(command: Command): Command {
  return quietOptions(verboseOption(command));
}

/** Adds --verbose. */
export function verboseOption(command: Command): Command {
  return command.option('--verbose', 'print internals, too: requests, ids, readings');
}
