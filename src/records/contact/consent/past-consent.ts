/** Updates the recorded state of a person with what the platform shows now. */
import { isChanged } from '../observe/observed-contact.ts';
import type { ContactStates } from '../observe/contact-rows.ts';
import type { Membership, ObservedContact, RecordedContact } from '../observe/contact-state.ts';
import {
  seen,
  type Observation,
  unsettled,
  isOurs,
  isTheirs,
} from '../observe/channel-observation.ts';
import { statedContacts } from '../observe/last-observed.ts';
import { hiddenOptOuts } from './renamed-contact.ts';
import { strictestOf, type DesiredSubscription } from '../observe/strictest-consent.ts';

/** Maps a channel to the one that it replaces. */
export type Replaces = ReadonlyMap<string, string>;

/** The configured channels, and the channels that they replace. */
export interface Channels {
  channels: readonly string[];
  replaces: Replaces;
}

/** Decides how far a restored snapshot is trusted. */
export interface PastSource extends Pick<ContactStates, 'restored' | 'facts' | 'latest'> {
  wishes: ReadonlyMap<string, DesiredSubscription>;
}

/**
 * Returns which recorded facts about a person still count in a restored snapshot. An opt-out
 * recorded as ours, or as a default, may have become the person's own. It is dropped if the contact
 * has changed since, and doubtful if the platform is not known to change `updatedAt` with a
 * subscription. Nobody is opted in against a doubtful opt-out.
 */
export function distrusted(
  recorded: RecordedContact,
  shown: readonly ObservedContact[],
  { facts, latest, wishes }: PastSource,
): RecordedContact {
  const changed = isChanged(recorded.contacts, shown);
  if (!changed && facts.enrolmentMoves === true) return recorded;
  const made = { after: null, by: latest };
  const channels = Object.entries(recorded.channels).flatMap(
    ([channel, is]): [string, Membership][] => {
      if (!isOurs(is)) return [[channel, unsettled(is)]];
      if (changed) return [];
      if (wishes.get(channel) === 'opt_out') return [[channel, unsettled(is)]];
      return [[channel, { by: 'platform', doubtful: true, is: 'opt_out', made }]];
    },
  );
  const isUntold = (channel: string): boolean => !changed && wishes.get(channel) === 'opt_out';
  const defaults = recorded.defaults.filter(isUntold);
  return { ...recorded, defaults, channels: Object.fromEntries(channels) };
}

/**
 * Marks as doubtful the opt-outs that appear for the first time where a request of ours may have
 * made them: in a restored snapshot, and after an erasure was revoked.
 */
export function doubted(
  channels: RecordedContact['channels'],
  recorded: RecordedContact | undefined,
  { restored }: Pick<PastSource, 'restored'>,
): RecordedContact['channels'] {
  if (!recorded?.allowed && !restored) return channels;
  const known = Object.entries(channels).map(([channel, is]): [string, Membership] => [
    channel,
    isTheirs(is) && !isTheirs(recorded?.channels[channel]) ? { ...is, doubtful: true } : is,
  ]);
  return Object.fromEntries(known);
}

/**
 * Returns what is recorded for a channel. An opt-out of ours counts only while no other contact
 * with the address shows a new opt-out, which would not be ours.
 */
export function recordedIn(
  recorded: RecordedContact | undefined,
  contacts: readonly ObservedContact[],
  channel: string,
): Membership | undefined {
  const membership = recorded?.channels[channel];
  if (membership?.is !== 'opt_out' || membership.by !== 'us') return membership;
  return isOutAnew(recorded, contacts, channel) ? undefined : membership;
}

/** Returns whether a contact shows an opt-out that it did not show when it was last recorded. */
function isOutAnew(
  recorded: RecordedContact | undefined,
  contacts: readonly ObservedContact[],
  channel: string,
): boolean {
  const isNew = ({ id, channels }: ObservedContact): boolean =>
    channels[channel] === 'opt_out' &&
    !recorded?.contacts.some((one) => one.id === id && one.channels[channel] === 'opt_out');
  return contacts.some(isNew);
}

/**
 * Updates the recorded channels with what the contacts show. A replaced channel changes only if a
 * contact shows it, because a missing channel may have been deleted, which is not a person's
 * decision to unsubscribe.
 */
export function memberships(
  recorded: RecordedContact | undefined,
  contacts: ObservedContact[],
  { channels, replaces, sight }: Channels & { sight: Observation },
): RecordedContact['channels'] {
  const all = { ...recorded?.channels };
  for (const channel of channels) {
    const changed = sight.changed || isOutAnew(recorded, contacts, channel);
    const before = recordedIn(recorded, contacts, channel);
    const is = seen(before, strictestOf(contacts, channel), { ...sight, changed });
    if (is)
      all[channel] = before?.is === 'opt_in' ? lostBy({ recorded, contacts }, channel, is) : is;
  }
  for (const channel of new Set(replaces.values())) {
    const shown = strictestOf(contacts, channel);
    const is = shown && seen(all[channel], shown, sight);
    if (is) all[channel] = is;
  }
  return all;
}

/**
 * Returns how a subscription was lost. The person unsubscribed only if the contact that was
 * subscribed shows it. An opt-out on another contact with the address was made at an unknown time.
 * If no contact shows an opt-out, it is unknown whether the person unsubscribed.
 */
function lostBy(
  { recorded, contacts }: { recorded: RecordedContact | undefined; contacts: ObservedContact[] },
  channel: string,
  is: Membership,
): Membership {
  if (is.is === 'opt_in' || !is.made) return is;
  const wasIn = (id: string): boolean =>
    recorded?.contacts.some((one) => one.id === id && one.channels[channel] === 'opt_in') === true;
  if (contacts.some(({ id, channels }) => channels[channel] !== 'opt_in' && wasIn(id))) return is;
  const isShown = contacts.some(({ channels }) => channels[channel] === 'opt_out');
  const { by, made } = is;
  if (isShown) return { by, is: 'opt_out', made: { ...made, after: null } };
  return { by, doubtful: true, is: 'opt_out', made };
}

/**
 * Returns the channels that the person joined on their own after leaving the channels that these
 * replace. Having left the replaced channel no longer counts against them.
 */
export function outgrown(
  recorded: RecordedContact | undefined,
  contacts: ObservedContact[],
  replaces: Replaces,
): string[] {
  const isIn = (channel: string): boolean => strictestOf(contacts, channel) === 'opt_in';
  const joins = (channel: string): boolean =>
    isIn(channel) && recorded?.channels[channel]?.is !== 'opt_in';
  return [...replaces]
    .filter(([, replaced]) => !isIn(replaced))
    .map(([channel]) => channel)
    .filter((channel) => recorded?.outgrown.includes(channel) || joins(channel));
}

/**
 * Returns what is known about the person under a former address, from the recorded state and from
 * later observations. Defaults and a restored snapshot are handled as they are for the current
 * address, and so are our opt-outs of contacts that no longer have the former one.
 */
export function pastOf(
  { row, seen: rows }: ContactStates['former'][number],
  since: PastSource,
  looked: Channels,
): RecordedContact {
  const known = row.value;
  const seenNow = rows.map(({ value }) => value);
  const recorded = since.restored ? distrusted(known, seenNow, since) : known;
  const shown = statedContacts(seenNow, { recorded: row, facts: since.facts }, recorded);
  const sight = { present: shown.length > 0, before: row.seenAt, by: row.seenAt, changed: false };
  const seenIn = memberships(recorded, shown, { ...looked, sight });
  const channels = doubted(seenIn, recorded, since);
  const others = recorded.contacts.filter(({ id }) => shown.every((one) => one.id !== id));
  return {
    ...recorded,
    contacts: [...recorded.contacts, ...shown],
    channels,
    hidden: hiddenOptOuts(recorded, [...others, ...shown], channels),
    outgrown: outgrown(recorded, shown, looked.replaces),
  };
}
