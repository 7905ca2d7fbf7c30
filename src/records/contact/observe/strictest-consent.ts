/** Combines the records or contacts that share one address: the strictest one wins. */
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { DesiredContactRow } from './contact-rows.ts';
import type { ObservedContact } from './contact-state.ts';

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

/**
 * Returns whether some records with one address opt in and others opt out. Such a contradiction is
 * reported although it is resolved.
 */
export function contradict(rows: readonly DesiredContactRow[], channel: string): boolean {
  if (rows.length < 2) return false;
  const wishes = rows.map(({ value }) => value.channels[channel]);
  return wishes.includes('opt_in') && wishes.includes('opt_out');
}

/**
 * Returns the strictest subscription among several contacts with one address: an opt-out from any
 * of them is the person's.
 */
export function strictestOf(
  contacts: ObservedContact[],
  channel: string,
): Subscription | undefined {
  const shown = contacts.map((contact) => contact.channels[channel]);
  if (shown.includes('opt_in'))
    return shown.every((is) => is === 'opt_in') ? 'opt_in' : mixed(shown);
  return shown.find((is) => is !== undefined);
}

/**
 * Returns the subscription if only some of the contacts are subscribed. If any of the others opted
 * out, the opt-out wins, so that no contact is opted in. Otherwise the contacts count as
 * subscribed, so that an opt-out still reaches the subscribed ones.
 */
function mixed(shown: (Subscription | undefined)[]): Subscription {
  return shown.includes('opt_out') ? 'opt_out' : 'opt_in';
}
