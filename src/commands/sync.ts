import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import { pass, passOptions, writingOptions, type PassFlags } from '../cli/run/run-command.ts';
import type { Shell } from '../cli/compose/process-shell.ts';

interface Flags extends PassFlags {
  full?: true;
  fast?: true;
  approve?: string;
}

export function options(command: Command): void {
  writingOptions(passOptions(command))
    .option('--full', 'list the platform and compare everything (the default)')
    .option('--fast', 'compare the CRM with what is recorded, list nothing')
    .option(
      '--approve <hash>',
      'let pass what was held under this plan, or what this run would hold',
    );
}

export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  return pass(flags, shell, {
    mode: modeOf(flags),
    writes: true,
    approve: flags.approve?.trim().toLowerCase(),
  });
}

/** Full, unless it is to be fast. */
export function modeOf({ full, fast }: { full?: true; fast?: true }): 'full' | 'fast' {
  if (full && fast) throw new Invalid('--full and --fast exclude each other: give one of them');
  return fast ? 'fast' : 'full';
}
