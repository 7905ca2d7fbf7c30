/** A command line, as it is handed to the worker that holds the mirror. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Shell } from '../compose/process-shell.ts';

export const call = z.object({
  /** Without the configuration: the worker has its own; and without the file of a plan. */
  argv: z.array(z.string()),
  /** What stands in the file that `apply` is given. */
  plan: z.string().optional(),
  terminal: z.boolean(),
  interactive: z.boolean(),
});
export type Call = z.infer<typeof call>;

/** These stand beside whatever runs. */
export const besides: ReadonlySet<string> = new Set(['one', 'forget', 'allow', 'approve', 'retry']);

export function callOf(
  { terminal, interactive }: Pick<Shell, 'terminal' | 'interactive'>,
  argv: readonly string[],
): Call {
  const [name = '', ...own] = withoutConfig(argv);
  if (name !== 'apply') return { argv: [name, ...own], terminal, interactive };
  // None of its options has a value but the configuration.
  const at = own.findIndex((token) => !token.startsWith('-'));
  const plan = readFileSync(own[at] ?? '', 'utf8');
  return { argv: [name, ...own.toSpliced(at, 1)], plan, terminal, interactive };
}

/** -c FILE, -cFILE, --config FILE and --config=FILE. */
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
