/** Several records of one person, on either side: the strictest wins. */
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { DesiredContactRow } from './contact-rows.ts';
import type { ObservedContact } from './contact-state.ts';

/** What the CRM wants of one channel; null: it has no opinion. */
export type DesiredSubscription = Subscription | 'gone' | null;

/**
 * The strictest of several CRM records of one address, per channel: any opt-out wins, also one that
 * a deleted or an invalid record states; an invalid twin allows no opt-in. The person is gone only
 * when every record is.
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

/** When all records that have an opinion on a channel were last stated; null: not all say so. */
export function statedAt(rows: readonly DesiredContactRow[], channel: string): number | null {
  const opinions = rows.filter(({ value }) => value.channels[channel]);
  const times = opinions.map(({ value }) => value.consentAt ?? Number.NEGATIVE_INFINITY);
  const oldest = Math.min(...times);
  return Number.isFinite(oldest) ? oldest : null;
}

/**
 * Whether some records of one address want in where others want out: worth a word, though it is
 * decided.
 */
export function contradict(rows: readonly DesiredContactRow[], channel: string): boolean {
  if (rows.length < 2) return false;
  const wishes = rows.map(({ value }) => value.channels[channel]);
  return wishes.includes('opt_in') && wishes.includes('opt_out');
}

/** Several contacts of one address: an opt-out on any of them is the person's. */
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
 * Some are in, some are not: nobody is opted in on such ground, and an opt-out still has work to
 * do.
 */
function mixed(shown: (Subscription | undefined)[]): Subscription {
  return shown.includes('opt_out') ? 'opt_out' : 'opt_in';
}
