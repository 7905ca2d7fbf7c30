/** Reads what the CRM records of one address state about a channel: which, when, in what words. */
import type { DesiredContactRow } from './contact-rows.ts';

/**
 * Returns when the oldest opinion on a channel was stated, in milliseconds since the epoch; null if
 * there is none, or if one of them has no time that is evidence.
 */
export function statedAt(rows: readonly DesiredContactRow[], channel: string): number | null {
  const opinions = rows.filter(({ value }) => value.channels[channel]);
  const times = opinions.map(
    ({ value }) => (value.early ? null : value.consentAt) ?? Number.NEGATIVE_INFINITY,
  );
  const oldest = Math.min(...times);
  return Number.isFinite(oldest) ? oldest : null;
}

/** Returns the ids of the CRM records that state an opt-in. */
export function statingIn(desired: readonly DesiredContactRow[], channel: string): string[] {
  const stating = desired.filter(
    ({ value }) => value.presence === 'present' && value.channels[channel] === 'opt_in',
  );
  return [...new Set(stating.map(({ id }) => id))].toSorted();
}

/**
 * Returns the words that the CRM states about a channel, without the ids of the records that state
 * them, and without their times; undefined if they are unknown, because a record is invalid or no
 * record states that the person is present.
 */
export function statementIn(
  rows: readonly DesiredContactRow[],
  channel: string,
): string | undefined {
  const present = rows.filter(({ value }) => value.presence === 'present');
  if (present.length === 0 || rows.some(({ invalid }) => invalid)) return undefined;
  return wordsOf(present.map(({ value }) => value.channels[channel] ?? '').join(', '));
}

/** Returns the words of a statement. An earlier version kept the times with them. */
export function wordsOf(statement: string): string {
  const words = statement.split(', ').map((part) => part.split(' ')[0] ?? '');
  return [...new Set(words)]
    .filter((word) => word !== '')
    .toSorted()
    .join(', ');
}
