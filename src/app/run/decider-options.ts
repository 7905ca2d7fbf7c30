/** Shares the flags of the commands that are decisions: who decides, and why. */
import type { Command } from 'commander';
import type { Decision } from '../../store/memory/audit-trail.ts';
import { Invalid } from '../../domain/errors.ts';
import { operatorName } from '../../compose/output/operator-name.ts';
import { reasonOf } from '../../compose/output/reason-option.ts';
import type { Shell } from '../../compose/process-shell.ts';

export interface DeciderFlags {
  by?: string;
  reason?: string;
}

/** Adds the flags that tell who decides, and why. */
export function deciderOptions(command: Command, reason: string): Command {
  return command
    .option('--reason <text>', reason)
    .option('--by <name>', 'who decides (the user and host that call it)');
}

/** Returns what the audit log keeps of a command that is a decision. `at`: epoch milliseconds. */
export function decisionOf(
  { what, at }: { what: string; at: number },
  flags: DeciderFlags,
  shell: Shell,
): Decision {
  const { by: name, reason = null } = deciderOf(flags, shell);
  return { at, what, name, reason, about: null, evidence: null, as: operatorName(shell) };
}

/** Returns who decides, and why. Throws Invalid for an address: the texts are stored and logged. */
export function deciderOf(
  flags: DeciderFlags,
  shell: Shell,
): { by: string; reason: string | undefined } {
  const by = reasonOf(flags.by ?? operatorName(shell), '--by');
  if (!by) throw new Invalid('--by: it is empty', { fix: 'fill it: the decision is kept with it' });
  const reason = reasonOf(flags.reason);
  return { by, reason: reason === '' ? undefined : reason };
}
