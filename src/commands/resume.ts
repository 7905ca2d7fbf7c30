import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { loadConfig } from '../config/load-config.ts';
import { lookOptions, print, type LookFlags } from '../cli/lookup/snapshot-command.ts';
import { movePaused, sayPaused } from '../cli/compose/snapshot-marks.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { instant } from '../cli/output/format-values.ts';
import { exitCode } from '../cli/output/exit-codes.ts';

/** Declares the flags of `resume`. */
export function options(command: Command): void {
  lookOptions(command).addHelpText('after', '\nNothing is run: the next sync is.');
}

/** Ends a pause. A mirror that is not paused stays unchanged. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<LookFlags>();
  const { mirror, snapshot: file } = loadConfig(flags.config, shell.env);
  const paused = existsSync(file) ? movePaused(file, () => undefined).before : undefined;
  const document = {
    mirror,
    was: paused ? { since: instant(paused.at), reason: paused.reason } : null,
  };
  const line = paused
    ? `${mirror} goes on; it was ${sayPaused(paused)}`
    : `${mirror} is not paused`;
  print({ document, lines: [line] }, flags, shell);
  return exitCode('done');
}
