import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import type { ToApprove } from '../engine/context/mirror-context.ts';
import { loadConfig } from '../config/load-config.ts';
import { systemClock } from '../http/system-clock.ts';
import { isLeased } from '../store/database/writer-lease.ts';
import { deciderOf, type DeciderFlags } from '../app/run/decider-options.ts';
import { pass, passOptions, writingOptions, type PassFlags } from '../app/run/run-command.ts';
import { createLog, hushed } from '../app/run/run-log.ts';
import type { FullCode } from '../engine/report/run-summary.ts';
import type { Shell } from '../compose/process-shell.ts';
import { operatorName } from '../compose/output/operator-name.ts';

/** The flags of an approval in the command of a run. */
export interface ApproveFlags extends DeciderFlags {
  approve?: string;
}

interface Flags extends PassFlags, ApproveFlags {
  full?: true;
  fast?: true;
  notify?: true;
}

export function options(command: Command): void {
  writingOptions(passOptions(command))
    .option('--notify', 'report problems to the receivers of `notices`')
    .option('--full', 'list the platform and compare everything (the default)')
    .option('--fast', 'compare the CRM with what is recorded, list nothing')
    .option(
      '--approve <hash>',
      'approve what awaits approval under this plan, or what this run would submit for approval',
    )
    .option('--by <name>', 'with --approve: who approves (the user and host that call it)')
    .option('--reason <text>', 'with --approve: why');
}

/** Runs once and makes the platform match the CRM. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const here = async () =>
    pass(flags, callingShell(flags, shell), {
      ...modeOf(flags),
      writes: true,
      approve: toApprove(flags, shell),
    });
  return flags.notify ? notifying(flags, shell, here) : here();
}

/**
 * Reports what the run found, also if it failed. A worker that holds the mirror reports it itself.
 */
async function notifying(flags: Flags, shell: Shell, runs: () => Promise<number>): Promise<number> {
  const { createNotifier } = await import('../worker/notifications/notifier.ts');
  const config = loadConfig(flags.config, shell.env);
  const log = createLog(hushed(shell, flags, true), config.mirror);
  const options = { shell, log, clock: systemClock, random: Math.random };
  const notifier = createNotifier(config, options);
  if (!notifier) {
    const fix = 'add notices: { to: [ … ] }, as docs/notifications.md shows';
    throw new Invalid(`--notify: ${config.file} names no receiver`, { fix });
  }
  try {
    return await runs();
  } finally {
    if (!shell.held && !isLeased(config.snapshot)) notifier.ran();
    await notifier.close();
  }
}

/** Returns the approval that the flags ask for. Throws Invalid if they do not belong together. */
export function toApprove(flags: ApproveFlags, shell: Shell): ToApprove | undefined {
  if (flags.approve !== undefined) {
    const { by, reason = null } = deciderOf(flags, shell);
    return { plan: flags.approve.trim().toLowerCase(), by, reason, caller: operatorName(shell) };
  }
  if (flags.by === undefined && flags.reason === undefined) return undefined;
  throw new Invalid('--by and --reason belong to an approval', { fix: 'give --approve as well' });
}

/** Returns a shell that names who approves, because a worker would name its own user. */
export function callingShell(flags: ApproveFlags, shell: Shell): Shell {
  const [name = '', ...rest] = shell.argv ?? [];
  const isNamed = flags.approve !== undefined && flags.by === undefined && shell.argv;
  return isNamed ? { ...shell, argv: [name, '--by', deciderOf(flags, shell).by, ...rest] } : shell;
}

/**
 * Returns the mode that the flags select, and why it is full, which is the default. Throws Invalid
 * if both flags are given.
 */
export function modeOf({ full, fast }: { full?: true; fast?: true }) {
  if (full && fast) throw new Invalid('--full and --fast exclude each other: give one of them');
  const because: FullCode[] = [full ? 'asked' : 'usual'];
  return { mode: fast ? ('fast' as const) : ('full' as const), because };
}
