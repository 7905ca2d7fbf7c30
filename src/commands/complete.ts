import type { Command } from 'commander';
import { completionsOf } from './completion/complete-words.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

export function options(command: Command): void {
  command.argument('[words...]', 'the words of a command line after --');
}

/** Prints the candidates for the last word. */
export async function run(command: Command, shell: Shell): Promise<number> {
  for (const line of completionsOf(command.args)) shell.print(line);
  return exitCode('done');
}
