/**
 * Decides what happens to contacts that now have another address on the platform. An opt-out that
 * the CRM states for the former address is sent to the contact by its id. Per channel in which the
 * contact is subscribed, depending on what the CRM wants for its current address:
 *
 *   in                          nothing: a conflict between two records of the CRM
 *   out                         nothing here: that address has its own opt-out
 *   no opinion, gone, unknown   opt_out
 *
 * A CRM record with the former address never opts the contact in under the new one.
 */
import { all, type RememberedOptOut } from '../../../domain/do-not-contact.ts';
import { isForbidden } from './absent-people.ts';
import type {
  ContactStates,
  RecordedContactRow,
  Membership,
  ObservedContact,
  RecordedContact,
  RecordedRenamed,
} from '../observe/contact-state.ts';
import { strictest, type DesiredSubscription } from '../observe/consent-time.ts';

export interface RenamedContact {
  contact: RecordedRenamed;
  wants(channel: string): DesiredSubscription;
}

/** Returns all platform ids recorded for the person, including those of renamed contacts. */
export function idsOf({ id, value }: RecordedContactRow): string[] {
  const { renamed = [] } = value;
  return [...new Set([...(id === undefined ? [] : [id]), ...renamed.map((one) => one.id)])];
}

/** Returns the renamed contacts as just read, or as recorded if they were not read. */
export function renamedOf(
  { renamed }: ContactStates,
  recorded: RecordedContact | undefined,
): RenamedContact[] {
  return renamed.flatMap((one) => {
    const known = recorded?.renamed?.find(({ id }) => id === one.id);
    const ours = [...(known?.outByUs ?? []), ...outByUs(recorded, one.id)];
    const last = one.row?.value ?? known ?? recorded?.contacts.find(({ id }) => id === one.id);
    const contact = last && withOutByUs(last, ours);
    const wants = (channel: string): DesiredSubscription => {
      if (isForbidden(one, channel)) return 'opt_out';
      if (one.desired.length > 0) return strictest(one.desired, [channel]).get(channel) ?? null;
      // If the source was not read completely, a recorded subscription counts as wanted.
      return one.recorded?.value.channels[channel]?.is === 'opt_in' ? 'opt_in' : null;
    };
    return contact ? [{ contact, wants }] : [];
  });
}

/**
 * Returns the channels from which we opted the contact out, or may have, while it had this address.
 * Opt-outs recorded there later may be those of another contact.
 */
function outByUs(recorded: RecordedContact | undefined, contact: string): string[] {
  if (!recorded?.contacts.some(({ id }) => id === contact)) return [];
  const shared = Object.keys(recorded.channels).filter((id) => mayBeOutByUs(recorded.channels[id]));
  return [...(recorded.hidden?.[contact] ?? []), ...shared];
}

/** Returns, by contact, our opt-outs that `channels` hides with those of another contact. */
export function hiddenOptOuts(
  recorded: RecordedContact | undefined,
  shown: readonly ObservedContact[],
  channels: RecordedContact['channels'],
): RecordedContact['hidden'] {
  const found = shown.flatMap((contact): [string, string[]][] => {
    const before = outByUs(recorded, contact.id).filter((id) => !mayBeOutByUs(channels[id]));
    const { outByUs: still } = withOutByUs(contact, before);
    return still ? [[contact.id, still]] : [];
  });
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}

function withOutByUs(contact: ObservedContact, before: readonly string[]): RecordedRenamed {
  const still = [...new Set(before)].filter((id) => contact.channels[id] === 'opt_out').toSorted();
  return still.length > 0 ? { ...contact, outByUs: still } : contact;
}

/** Returns the contacts that a stated opt-out is for, and whether another record claims one. */
export function renamedTargets(
  renamed: readonly RenamedContact[],
  channel: string,
): { contacts: ObservedContact[]; isClaimed: boolean } {
  const subscribed = renamed.filter(({ contact }) => contact.channels[channel] === 'opt_in');
  const free = subscribed.filter(
    ({ wants }) => !['opt_in', 'opt_out'].includes(`${wants(channel)}`),
  );
  const isClaimed = subscribed.some(({ wants }) => wants(channel) === 'opt_in');
  return { contacts: free.map(({ contact }) => contact), isClaimed };
}

/** What the renamed contacts of a person tell the do-not-contact list. */
export interface Elsewhere {
  adds: readonly RememberedOptOut[];
  /** The contacts as far as nobody but the person can have subscribed them again. */
  subscribed: readonly ObservedContact[];
}

/**
 * Returns what the renamed contacts tell about a person whom the CRM still has under the former
 * address. Once such a contact is deleted, nothing else keeps the person from being created again.
 * `by`: when the contacts were observed.
 *
 *   the contact shows in a channel   the CRM wants for    the list
 *                                    the new address
 *   an opt-out, and was subscribed   no opinion, gone     opt_out
 *     under the former address       in                   doubtful: may be somebody else's
 *   an opt-out otherwise             anything but out     doubtful: may have been there before
 *   an opt-out                       out                  nothing: that address has its own opt-out
 *   an opt-out that we made          anything             nothing
 *   a subscription                   anything but in      the entry of this contact ends
 *   that it left all mail            anything             the causes, except bounces
 */
export function elsewhereOf(
  renamed: readonly RenamedContact[],
  recorded: RecordedContact | undefined,
  by: number,
): Elsewhere {
  const adds = renamed.flatMap(({ contact, wants }): RememberedOptOut[] => {
    const { id, channels, outByUs = [], left } = contact;
    const memory = { contact: id, after: null, by };
    const wasHere = recorded?.contacts.some((one) => one.id === id) === true;
    const outs = Object.keys(channels)
      .filter((part) => channels[part] === 'opt_out' && !outByUs.includes(part))
      .filter((part) => wants(part) !== 'opt_out')
      .map((part): RememberedOptOut => {
        const wasIn = wasHere && recorded.channels[part]?.is === 'opt_in';
        const isClaimed = wants(part) === 'opt_in';
        return { ...memory, part, cause: wasIn && !isClaimed ? 'opt_out' : 'doubtful' };
      });
    const causes = left ? (contact.causes ?? ['suppressed' as const]) : [];
    const own = causes.filter((cause) => cause !== 'bounce');
    return [...outs, ...own.map((cause) => ({ ...memory, part: all, cause }))];
  });
  const subscribed = renamed.map(({ contact, wants }) => {
    const own = Object.entries(contact.channels).filter(([part]) => wants(part) !== 'opt_in');
    return { ...contact, channels: Object.fromEntries(own) };
  });
  return { adds, subscribed };
}

/**
 * Marks as doubtful the opt-outs that we may have made on the same contact under a former address:
 * they are not the person's under the new one, but are not withdrawn either.
 */
export function withoutOurs(
  channels: RecordedContact['channels'],
  shown: readonly ObservedContact[],
  former: readonly RecordedContact[],
): RecordedContact['channels'] {
  const isShown = ({ id }: ObservedContact): boolean => shown.some((one) => one.id === id);
  const same = former.filter(({ contacts, renamed = [] }) =>
    [...contacts, ...renamed].some(isShown),
  );
  if (same.length === 0) return channels;
  const known = Object.entries(channels).map(([channel, is]): [string, Membership] => {
    const isOutById = ({ renamed = [], hidden = {} }: RecordedContact): boolean =>
      renamed.some((one) => isShown(one) && one.outByUs?.includes(channel)) ||
      shown.some(({ id }) => hidden[id]?.includes(channel));
    const isOurs = same.some((past) => mayBeOutByUs(past.channels[channel]) || isOutById(past));
    const wasIn = is.made !== undefined && is.made.after !== null;
    const isUnclear = isOurs && !wasIn && is.is === 'opt_out' && is.by === 'platform';
    return [channel, isUnclear ? { ...is, doubtful: true } : is];
  });
  return Object.fromEntries(known);
}

function mayBeOutByUs(membership: Membership | undefined): boolean {
  return membership?.is === 'opt_out' && (membership.by === 'us' || membership.doubtful === true);
}
