/** A command line for the worker that holds the mirror. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Shell } from '../compose/process-shell.ts';

export const call = z.object({
  /**
   * The command and its arguments, without the configuration, which the worker has, and without the
   * plan's file.
   */
  argv: z.array(z.string()),
  /** The content of the file that `apply` is given. */
  plan: z.string().optional(),
  terminal: z.boolean(),
  interactive: z.boolean(),
});
/** One command line for the worker. */
export type Call = z.infer<typeof call>;

/** Commands that may run beside a run. */
export const besides: ReadonlySet<string> = new Set(['one', 'forget', 'allow', 'approve', 'retry']);

/** Returns the command line for the worker; reads the plan's file for `apply`. */
export function callOf(
  { terminal, interactive }: Pick<Shell, 'terminal' | 'interactive'>,
  argv: readonly string[],
): Call {
  const [name = '', ...own] = withoutConfig(argv);
  if (name !== 'apply') return { argv: [name, ...own], terminal, interactive };
  // The configuration is its only option with a value, so the first other word is the file.
  const at = own.findIndex((token) => !token.startsWith('-'));
  const plan = readFileSync(own[at] ?? '', 'utf8');
  return { argv: [name, ...own.toSpliced(at, 1)], plan, terminal, interactive };
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
