/** What commands share that ask the platform one thing: flags, a connection, what is printed. */
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load-config.ts';
import { Unavailable } from '../../domain/errors.ts';
import type { Platform } from '../../platform/platform.ts';
import { connect } from '../compose/assemble-mirror.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../output/exit-codes.ts';

export interface ReachFlags {
  config: string;
  json?: true;
}

export function reachOptions(command: Command): Command {
  return command
    .option('-c, --config <file>', 'the configuration', 'config/mirror.yaml')
    .option('--json', 'print one JSON document');
}

/** What came of it: as the document of --json, and in lines for people. */
export interface Result {
  document: object;
  lines: string[];
  /** The platform answered, but not that it was done: the command failed. */
  failed?: boolean;
}

export interface Reached {
  platform: Platform;
  config: Config;
  signal: AbortSignal;
}

/** Connects to the platform of the configuration, prints what came of it, answers the exit code. */
export async function reach(
  flags: ReachFlags,
  shell: Shell,
  ask: (reached: Reached) => Promise<Result>,
): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const platform = connect(config, shell);
  try {
    const { document, lines, failed } = await ask({ platform, config, signal: shell.stop });
    if (flags.json) shell.print(JSON.stringify(document, null, 2));
    else for (const line of lines) shell.print(line);
    return exitCode(failed ? 'failed' : 'done');
  } finally {
    await platform.close();
  }
}

/** For what is never sent twice: an unknown end says where to look before the next try. */
export async function once<T>(sent: Promise<T>, look: string): Promise<T> {
  try {
    return await sent;
  } catch (error) {
    if (!(error instanceof Unavailable) || error.acted === 'no') throw error;
    const { acted, message } = error;
    throw new Unavailable(`${message}; it may have been done → ${look}`, { acted, cause: error });
  }
}

/** What the platform calls something, fit for one cell of a table on a terminal. */
export function cell(value: string | number | boolean | null | undefined): string {
  if (value === undefined || value === null || value === '') return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return String(value).replace(/[\p{C}\p{Z}]+/gu, ' ');
}
