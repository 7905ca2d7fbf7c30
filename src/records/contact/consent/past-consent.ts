/** Brings what is recorded of a person up to date by what the platform shows now. */
import { isChanged } from '../observe/observed-contact.ts';
import type { ContactStates } from '../observe/contact-rows.ts';
import type { Membership, ObservedContact, RecordedContact } from '../observe/contact-state.ts';
import { seen, type Observation } from '../observe/channel-observation.ts';
import { statedContacts } from '../observe/last-observed.ts';
import { isOurs } from './own-opt-outs.ts';
import { strictestOf, type DesiredSubscription } from '../observe/strictest-consent.ts';

/** Of a channel, the one it took over from. */
export type Replaces = ReadonlyMap<string, string>;

/** The channels that are looked at: those that are kept equal, and those they took over from. */
export interface Channels {
  channels: readonly string[];
  replaces: Replaces;
}

/** What the CRM wants now, and what a snapshot that was put back is judged by. */
export interface PastSource extends Pick<ContactStates, 'restored' | 'facts' | 'latest'> {
  wishes: ReadonlyMap<string, DesiredSubscription>;
}

/**
 * What a snapshot that was put back knows of somebody: an opt-out that was ours, or nobody's, may
 * be the person's own by now. It is, of a contact that was changed since; where a change of a
 * subscription is not known to move `updatedAt`, nobody can tell, and against it nobody is brought
 * in.
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
      if (!isOurs(is)) return [[channel, is]];
      if (changed) return [];
      if (wishes.get(channel) === 'opt_out') return [[channel, is]];
      return [[channel, { by: 'platform', doubtful: true, is: 'opt_out', made }]];
    },
  );
  const isUntold = (channel: string): boolean => !changed && wishes.get(channel) === 'opt_out';
  const defaults = recorded.defaults.filter(isUntold);
  return { ...recorded, defaults, channels: Object.fromEntries(channels) };
}

/** Our opt-out shows on the contact it was made on: one that stands on another is not ours. */
export function recordedIn(
  recorded: RecordedContact | undefined,
  contacts: readonly ObservedContact[],
  channel: string,
): Membership | undefined {
  const membership = recorded?.channels[channel];
  if (membership?.is !== 'opt_out' || membership.by !== 'us') return membership;
  return isOutAnew(recorded, contacts, channel) ? undefined : membership;
}

/** Whether an opt-out is shown of a contact that showed none there when it was last recorded. */
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
 * What is recorded of her channels by what her contacts show. Of a channel that was replaced only
 * what is shown counts: it may be gone, and nobody has left it by that. An opt-out that follows on
 * a membership that was taken away is later than that.
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
 * Who was in and is no longer has left, if that shows on the contact that was in. Another contact
 * of the address that shows an opt-out was never seen in; one that shows nothing is no departure.
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
 * The channels that she joined, and not by us, since she left the ones they took over from: what
 * she said there is settled until she comes back there.
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
 * What is known of somebody under a former address: what was recorded, and what is shown since. An
 * opt-out that her creation left there by default is nobody's word under a new address either, and
 * what a snapshot that was put back knows is trusted no further than under her own.
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
  return {
    ...recorded,
    contacts: [...recorded.contacts, ...shown],
    channels: memberships(recorded, shown, { ...looked, sight }),
    outgrown: outgrown(recorded, shown, looked.replaces),
  };
}
