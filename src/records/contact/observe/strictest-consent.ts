/**
 * Combines the records or contacts that share one address: the strictest one wins. Reads what the
 * CRM records state about a channel: which, when, in what words.
 */
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { DesiredContactRow, ObservedContact } from './contact-state.ts';

/** The desired subscription in one channel; null if the CRM has no opinion. */
export type DesiredSubscription = Subscription | 'gone' | null;

/**
 * Returns the strictest statement of the CRM records with one address, by channel. Any opt-out
 * wins, even from a deleted or invalid record. If one of the records is invalid, the person is not
 * opted in. The person counts as gone only if every record does.
 */
export function strictest(
  rows: readonly DesiredContactRow[],
  channels: readonly string[],
): Map<string, DesiredSubscription> {
  const living = rows.filter(({ invalid, value }) => invalid || value.presence === 'present');
  const broken = rows.some((row) => row.invalid);
  const wishOf = (channel: string): DesiredSubscription => {
    if (rows.some(({ value }) => value.channels[channel] === 'opt_out')) return 'opt_out';
    if (living.length === 0) return 'gone';
    const wanted = living.some(({ value }) => value.channels[channel] === 'opt_in');
    return wanted && !broken ? 'opt_in' : null;
  };
  return new Map(channels.map((channel) => [channel, wishOf(channel)]));
}

/** Returns whether some records opt in and others out, which is reported although resolved. */
export function contradict(rows: readonly DesiredContactRow[], channel: string): boolean {
  if (rows.length < 2) return false;
  const wishes = rows.map(({ value }) => value.channels[channel]);
  return wishes.includes('opt_in') && wishes.includes('opt_out');
}

/**
 * Returns the strictest subscription among several contacts with one address: an opt-out from any
 * of them is the person's, and wins, so that no contact is opted in. If only some are subscribed
 * and none opted out, they count as subscribed, so that an opt-out still reaches the subscribed
 * ones.
 */
export function strictestOf(
  contacts: ObservedContact[],
  channel: string,
): Subscription | undefined {
  const shown = new Set(contacts.map((contact) => contact.channels[channel]));
  if (shown.has('opt_out')) return 'opt_out';
  return shown.has('opt_in') ? 'opt_in' : undefined;
}

/** Returns when the oldest opinion was stated; null if there is none, or one has no time. */
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
  const words = present.flatMap(({ value }) => value.channels[channel] ?? []);
  return [...new Set(words)].toSorted().join(', ');
}
