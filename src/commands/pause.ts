import { existsSync } from 'node:fs';
import { by, type CalledWith, type LookFlags, looking } from '../compose/command-options.ts';
import { loadConfig } from '../config/load-config.ts';
import { runInProgress } from '../compose/run-progress.ts';
import { see } from '../views/lookup/seen-mirror.ts';
import { print } from '../app/snapshot-command.ts';
import { movePaused, sayPaused, tellPaused, type Paused } from '../compose/mirror-files.ts';
import { decisionOf, type DeciderFlags } from '../app/run/flag-values.ts';
import type { CommandModule } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/failure-report.ts';

type Flags = LookFlags & DeciderFlags & { stop?: true };

export const pause: CommandModule = {
  options: {
    ...looking,
    stop: 'also stop the run in progress, as SIGTERM does',
    'reason <text>': 'why; `status` shows it',
    ...by,
  },
  help:
    `sync and backfill end at once, with exit code ${exitCode('busy')}, until \`resume\`; plan, check, status and ` +
    'runs go on working. A run that is under way goes on to its end: to stop that too, give ' +
    '--stop, send it SIGTERM or press Ctrl-C. What it has done is recorded, and the next run does ' +
    'the rest. Opt-outs of the CRM and erasures wait, too: to stop opt-ins alone, ' +
    'set policy.optIns to off instead.',

  /** Pausing again keeps the original time, and stores the newest reason with who gave it. */
  async run({ flags }: CalledWith<Flags>, shell) {
    const decision = decisionOf({ what: 'pause', at: Date.now() }, flags, shell);
    const config = loadConfig(flags.config, shell.env);
    const { mirror, snapshot } = config;
    const { at, name, reason } = decision;
    const isStop = flags.stop;
    const now: Paused = { at, reason: reason ?? '', by: name, isStop };
    const { after: paused = now } = movePaused(
      snapshot,
      (before) => (before ? { ...(reason === null ? before : now), at: before.at, isStop } : now),
      decision,
    );
    const seen = see(config, false);
    const running =
      seen.snapshot !== undefined && runInProgress(seen.snapshot, seen.leased) !== undefined;
    seen.snapshot?.close();
    const document = { mirror, paused: tellPaused(paused), running };
    const more = flags.stop
      ? 'The run in progress stops once what it has sent is answered, and that is recorded.'
      : 'The run in progress goes on to its end; no further one begins.';
    const head = `${mirror} is ${sayPaused(paused)}`;
    return print({ document, lines: [head, ...(running ? [more] : [])] }, flags, shell);
  },
};

export const resume: CommandModule = {
  options: { ...looking, 'reason <text>': 'why', ...by },
  help: 'Nothing is run: the next sync is. The audit log keeps who resumed the mirror, and why.',

  async run({ flags }: CalledWith<Flags>, shell) {
    const decision = decisionOf({ what: 'resume', at: Date.now() }, flags, shell);
    const { mirror, snapshot: file } = loadConfig(flags.config, shell.env);
    const { before: paused } = existsSync(file)
      ? movePaused(file, () => undefined, decision)
      : { before: undefined };
    const document = { mirror, was: paused ? tellPaused(paused) : null };
    const line = paused
      ? `${mirror} goes on; it was ${sayPaused(paused)}`
      : `${mirror} is not paused`;
    return print({ document, lines: [line] }, flags, shell);
  },
};
