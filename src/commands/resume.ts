import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { loadConfig } from '../config/load-config.ts';
import { lookOptions, print, type LookFlags } from '../app/snapshot-command.ts';
import { movePaused, sayPaused, tellPaused } from '../compose/pause-mark.ts';
import { deciderOptions, decisionOf, type DeciderFlags } from '../app/run/decider-options.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

interface Flags extends LookFlags, DeciderFlags {}

export function options(command: Command): void {
  deciderOptions(lookOptions(command), 'why').addHelpText(
    'after',
    '\nNothing is run: the next sync is. The audit log keeps who resumed the mirror, and why.',
  );
}

/** Ends a pause. A mirror that is not paused stays unchanged. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const decision = decisionOf({ what: 'resume', at: Date.now() }, flags, shell);
  const { mirror, snapshot: file } = loadConfig(flags.config, shell.env);
  const { before: paused } = existsSync(file)
    ? movePaused(file, () => undefined, decision)
    : { before: undefined };
  const document = { mirror, was: paused ? tellPaused(paused) : null };
  const line = paused
    ? `${mirror} goes on; it was ${sayPaused(paused)}`
    : `${mirror} is not paused`;
  print({ document, lines: [line] }, flags, shell);
  return exitCode('done');
}
