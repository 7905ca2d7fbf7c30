/**
 * Shares the flags, connection and output of all commands that send one request to the platform.
 */
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { Unavailable } from '../domain/errors.ts';
import type { Platform } from '../platform/platform.ts';
import { connect } from '../compose/platform-connection.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';
import { type CommandAnswer, type LookFlags, print } from './snapshot-command.ts';

/** The flags of these commands. */
export type ReachFlags = Pick<LookFlags, 'config' | 'json'>;

interface Result extends CommandAnswer {
  /** Whether the platform refused the request, so that the command failed. */
  failed?: boolean;
}

/** The connected platform. */
export interface Reached {
  platform: Platform;
  config: Config;
  signal: AbortSignal;
}

/** Connects to the configured platform, prints the result of `ask`, and returns the exit code. */
export async function reach(
  flags: ReachFlags,
  shell: Shell,
  ask: (reached: Reached) => Promise<Result>,
): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const platform = connect(config, shell);
  try {
    const answer = await ask({ platform, config, signal: shell.stop });
    print(answer, flags, shell);
    return exitCode(answer.failed ? 'failed' : 'done');
  } finally {
    await platform.close();
  }
}

/**
 * Adds `look`, which states what to check before the next try, to the error of a request that may
 * have had its effect. Such requests are never sent twice.
 */
export async function once<T>(sent: Promise<T>, look: string): Promise<T> {
  try {
    return await sent;
  } catch (error) {
    if (!(error instanceof Unavailable) || error.acted === 'no') throw error;
    const { acted, message } = error;
    throw new Unavailable(`${message}; it may have been done`, { fix: look, acted, cause: error });
  }
}
