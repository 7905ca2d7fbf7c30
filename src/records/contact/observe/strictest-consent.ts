/** Several records of one person, on either side: the strictest wins. */
import type { DesiredRow } from '../../../domain/record.ts';
import type { Subscription } from '../../../platform/request-schemas.ts';
import { desiredBody, type ObservedContact } from './contact-state.ts';

/** What the CRM wants of one channel; null: it has no opinion. */
export type DesiredSubscription = Subscription | 'gone' | null;

/**
 * The strictest of several CRM records of one address, per channel: any opt-out wins, also one that
 * a deleted or an invalid record states; an invalid twin allows no opt-in. The person is gone only
 * when every record is.
 */
export function strictest(
  rows: readonly DesiredRow[],
  channels: readonly string[],
): Map<string, DesiredSubscription> {
  const records = rows.map((row) => ({ row, body: desiredBody.parse(JSON.parse(row.body)) }));
  const living = records.filter(({ row, body }) => row.invalid || body.presence === 'present');
  const broken = rows.some((row) => row.invalid);
  const wishOf = (channel: string): DesiredSubscription => {
    if (records.some(({ body }) => body.channels[channel] === 'opt_out')) return 'opt_out';
    if (living.length === 0) return 'gone';
    const wanted = living.some(({ body }) => body.channels[channel] === 'opt_in');
    return wanted && !broken ? 'opt_in' : null;
  };
  return new Map(channels.map((channel) => [channel, wishOf(channel)]));
}

/** When all records that have an opinion on a channel were last stated; null: not all say so. */
export function statedAt(rows: readonly DesiredRow[], channel: string): number | null {
  const bodies = rows.map((row) => desiredBody.parse(JSON.parse(row.body)));
  const opinions = bodies.filter((body) => body.channels[channel]);
  const times = opinions.map(({ consentAt }) => consentAt ?? Number.NEGATIVE_INFINITY);
  const oldest = Math.min(...times);
  return Number.isFinite(oldest) ? oldest : null;
}

/**
 * Whether some records of one address want in where others want out: worth a word, though it is
 * decided.
 */
export function contradict(rows: readonly DesiredRow[], channel: string): boolean {
  if (rows.length < 2) return false;
  const wishes = rows.map((row) => desiredBody.parse(JSON.parse(row.body)).channels[channel]);
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
