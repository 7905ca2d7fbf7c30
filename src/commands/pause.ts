import type { Command } from 'commander';
import { loadConfig } from '../config/load-config.ts';
import { isLeased } from '../snapshot/database/writer-lease.ts';
import { lookOptions, print, type LookFlags } from '../cli/lookup/snapshot-command.ts';
import { movePaused, sayPaused, type Paused } from '../cli/compose/snapshot-marks.ts';
import { reasonOf } from '../cli/output/reason-option.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { instant } from '../cli/output/format-values.ts';
import { exitCode } from '../cli/output/exit-codes.ts';

interface Flags extends LookFlags {
  reason?: string;
}

/** Declares the flags of `pause`. */
export function options(command: Command): void {
  lookOptions(command)
    .option('--reason <text>', 'why; `status` shows it')
    .addHelpText(
      'after',
      `\nsync and backfill end at once, with exit code ${exitCode('busy')}, until \`resume\`; plan, check, status and\n` +
        'runs go on working. A run that is under way goes on to its end: to stop that too, send it\n' +
        'SIGTERM or press Ctrl-C.',
    );
}

/** Pauses the mirror. Pausing again keeps the original time and stores the newest reason. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const reason = reasonOf(flags.reason);
  const { mirror, snapshot } = loadConfig(flags.config, shell.env);
  const now: Paused = { at: Date.now(), reason: reason ?? '' };
  const { after: paused = now } = movePaused(snapshot, (before) =>
    before ? { at: before.at, reason: reason ?? before.reason } : now,
  );
  const running = isLeased(snapshot);
  const document = {
    mirror,
    paused: { since: instant(paused.at), reason: paused.reason },
    running,
  };
  const more = [
    'A process holds the mirror. A run in progress goes on to its end; no other one begins.',
  ];
  const head = `${mirror} is ${sayPaused(paused)}`;
  print({ document, lines: [head, ...(running ? more : [])] }, flags, shell);
  return exitCode('done');
}
