import type { Command } from 'commander';
import { Invalid } from '../model/errors.ts';
import { pass, passOptions, writingOptions, type PassFlags } from './pass.ts';
import type { Shell } from './shell.ts';

interface Flags extends PassFlags {
  full?: true;
  fast?: true;
}

export function options(command: Command): void {
  writingOptions(passOptions(command))
    .option('--full', 'list the platform and compare everything (the default)')
    .option('--fast', 'compare the CRM with what is recorded, list nothing');
}

export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  return pass(flags, shell, { mode: modeOf(flags), writes: true });
}

/** Full, unless it is to be fast. */
export function modeOf({ full, fast }: { full?: true; fast?: true }): 'full' | 'fast' {
  if (full && fast) throw new Invalid('--full and --fast exclude each other: give one of them');
  return fast ? 'fast' : 'full';
}
