/**
 * Implements `crm-mirror schema`, which prints the JSON Schema of the configuration for editors.
 */
import type { Command } from 'commander';
import { editorSchema } from '../config/editor-schema.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

export function options(command: Command): void {
  command.description('print the JSON Schema of the configuration, for editors');
}

/** Prints the JSON Schema of the configuration, for editors. */
export async function run(_command: Command, shell: Shell): Promise<number> {
  shell.print(JSON.stringify(editorSchema(), null, 2));
  return exitCode('done');
}
