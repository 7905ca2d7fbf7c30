/** Reads the flags of the commands that are decisions: who decides, and why. */
import type { Decision } from '../../store/memory/audit-trail.ts';
import { Invalid } from '../../domain/errors.ts';
import { operatorName, type Shell } from '../../compose/process-shell.ts';

/** The options that tell who decides, and why. */
export interface DeciderFlags {
  by?: string | undefined;
  reason?: string | undefined;
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

const reasonAtMost = 200;

/**
 * Returns the text of an option as one line of at most 200 characters. Throws Invalid if it holds
 * an address, because the text is stored and logged.
 */
export function reasonOf(text: string | undefined, option = '--reason'): string | undefined {
  const reason = text?.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim();
  if (reason === undefined) return undefined;
  if (/\S@\S/.test(reason)) {
    throw new Invalid(`${option}: an address is in it, and it goes into logs`, {
      fix: 'leave it out',
    });
  }
  if (reason.length <= reasonAtMost) return reason;
  throw new Invalid(`${option}: ${reason.length} characters`, { fix: `at most ${reasonAtMost}` });
}

/** Returns the text like `reasonOf`; `fix` is the remedy if it is missing or empty. */
export function requiredText(option: string, text: string | undefined, fix: string): string {
  const filled = reasonOf(text, option);
  if (filled) return filled;
  throw new Invalid(`${option}: it is empty`, { fix });
}
