/**
 * Decides what a settlement by an operator (`resolve`) does, and when it ends. All functions are
 * pure.
 *
 *   settled as   stored                       does                      ends when
 *   opt-in       with the recorded opt-out    lets the CRM's opt-in     the opt-out may be another
 *                                             through                   one: the contact changed,
 *                                                                       or the CRM stated one;
 *                                                                       or a CRM record that stated
 *                                                                       the opt-in no longer does
 *   opt-out      on the do-not-contact list   opts the person out, as   the CRM states an opt-in
 *                                             if the CRM stated it      later, or `allow`
 */
import { type Entry, type Settlement, settlement } from '../../../domain/do-not-contact.ts';
import type { ContactStates, DesiredContactRow } from '../observe/contact-rows.ts';
import type { Membership, RecordedContact } from '../observe/contact-state.ts';
import { unsettled } from '../observe/channel-observation.ts';
import { statedAt, statingIn } from '../observe/consent-statement.ts';

/** Returns whether the entry is an opt-out that an operator stated. */
export function isOperators({ cause }: Pick<Entry, 'cause'>): boolean {
  return cause === 'operator';
}

/**
 * Returns the operator's opt-out that applies to one of the channels, unless the CRM has stated
 * something later.
 */
export function settledOut(
  { entries, desired, by }: Pick<ContactStates, 'entries' | 'desired' | 'by'>,
  channels: readonly string[],
  channel: string,
): Entry | undefined {
  const since = laterWill({ desired, by }, channel);
  return entries.find(
    (entry) =>
      isOperators(entry) &&
      channels.includes(entry.part) &&
      (since === undefined || entry.by >= since),
  );
}

/**
 * Returns when the CRM stated its opinion on a channel, in milliseconds since the epoch; undefined
 * if that is unknown, or in the future.
 */
export function laterWill(
  { desired, by }: { desired: readonly DesiredContactRow[]; by: number },
  channel: string,
): number | undefined {
  const at = statedAt(desired, channel);
  return at !== null && at <= by ? at : undefined;
}

/** Returns whether an operator settled this very opt-out as an opt-in. */
export function isSettledIn(membership: Membership | undefined): boolean {
  return membership?.is === 'opt_out' && membership.settled !== undefined;
}

/**
 * Returns recorded channels without the settlements as an opt-in that have ended, because one of
 * the records that stated the opt-in then no longer does. An invalid record proves nothing, and
 * opts nobody in.
 */
export function stillSettled(
  channels: RecordedContact['channels'],
  desired: readonly DesiredContactRow[],
): RecordedContact['channels'] {
  if (desired.length === 0 || desired.some(({ invalid }) => invalid)) return channels;
  const kept = ([channel, is]: [string, Membership]): [string, Membership] => {
    const now = statingIn(desired, channel);
    const isOver = is.settled?.stating?.some((id) => !now.includes(id));
    return [channel, isOver ? unsettled(is) : is];
  };
  return Object.fromEntries(Object.entries(channels).map(kept));
}

/** Returns how an operator settled a channel, or null; of an unreadable note, only the time. */
export function settlementOf(
  membership: Membership | undefined,
  entry: Pick<Entry, 'by' | 'note'> | undefined,
): (Settlement & { as: 'in' | 'out' }) | null {
  if (entry) {
    const none = { at: entry.by, by: '', reason: '', evidence: '' };
    const found = settlement.safeParse(JSON.parse(entry.note ?? 'null'));
    return { as: 'out', ...(found.success ? found.data : none) };
  }
  const settled = membership?.is === 'opt_out' ? membership.settled : undefined;
  return settled ? { as: 'in', ...settlement.parse(settled) } : null;
}
