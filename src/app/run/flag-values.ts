/** Reads the flags that commands share: who decides and why, and what a run is limited to. */
import type { Decision } from '../../store/memory/audit-trail.ts';
import { Invalid, codeOf } from '../../domain/errors.ts';
import { operatorName, type Shell } from '../../compose/process-shell.ts';
import { readFileSync } from 'node:fs';
import type { RunOptions } from '../../engine/context/mirror-context.ts';
import type { OnlyPeople } from '../../engine/context/people-selection.ts';

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

/** Throws Invalid for an address: the texts are stored and logged. */
export function deciderOf(flags: DeciderFlags, shell: Shell) {
  const by = reasonOf(flags.by ?? operatorName(shell), '--by');
  if (!by) throw new Invalid('--by: it is empty', { fix: 'fill it: the decision is kept with it' });
  const reason = reasonOf(flags.reason);
  return { by, reason: reason === '' ? undefined : reason };
}

const reasonAtMost = 200;

/** One line of at most 200 characters. Throws Invalid for an address: it is stored and logged. */
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

/** Reads the file. Lines that begin with # are comments. Throws Invalid if it names nobody. */
export function readOnlyPeople(file: string): OnlyPeople {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    const why = codeOf(error) || 'no UTF-8';
    throw new Invalid(`--people ${file}: the file cannot be read (${why})`, {
      fix: 'name a text file in UTF-8',
    });
  }
  const entries = text
    .split(/\r\n|\r|\n/)
    .map((line, at) => ({ line: at + 1, word: line.trim() }))
    .filter(({ word }) => word !== '' && !word.startsWith('#'));
  if (entries.length > 0) return { file, entries };
  throw new Invalid(`--people ${file}: the file names nobody`, {
    fix: 'write one address or CRM id on each line',
  });
}

/** Returns the record type that a flag names. Throws Invalid for another word. */
export function onlyOf(word: string | undefined): RunOptions['only'] {
  if (word === undefined || word === 'contacts' || word === 'templates') return word;
  throw new Invalid(`--only ${word}: there are contacts and templates`);
}
