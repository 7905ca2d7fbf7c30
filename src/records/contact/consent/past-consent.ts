import {
  isChanged,
  seen,
  type Observation,
  unsettled,
  isOurs,
  isTheirs,
  statedContacts,
} from '../observe/observed-contact.ts';
import type {
  ContactStates,
  Membership,
  ObservedContact,
  RecordedContact,
} from '../observe/contact-state.ts';
import { hiddenOptOuts } from './renamed-contact.ts';
import { strictestOf, type DesiredSubscription } from '../observe/consent-time.ts';
import { isTakenBack } from './own-opt-outs.ts';

export type Replaces = ReadonlyMap<string, string>;

/** The configured channels, and the channels that they replace. */
export interface Channels {
  channels: readonly string[];
  replaces: Replaces;
}

/** Decides how far a restored snapshot is trusted. */
export interface PastSource {
  restored: ContactStates['restored'];
  facts: ContactStates['facts'];
  latest: ContactStates['latest'];
  wishes: ReadonlyMap<string, DesiredSubscription>;
}

/**
 * Returns which recorded facts count in a restored snapshot. An opt-out recorded as ours, or as a
 * default, may have become the person's own: it is dropped if the contact has changed since, and
 * doubtful if the platform is not known to change `updatedAt` with a subscription. Nobody is opted
 * in against a doubtful one.
 */
export function distrusted(
  recorded: RecordedContact,
  shown: readonly ObservedContact[],
  { facts, latest, wishes }: PastSource,
): RecordedContact {
  const changed = isChanged(recorded.contacts, shown);
  if (!changed && facts.enrolmentMoves === true) return recorded;
  const made = { after: null, by: latest };
  const isStatedOut = (channel: string): boolean => wishes.get(channel) === 'opt_out';
  const channels = Object.entries(recorded.channels).flatMap(
    ([channel, is]): [string, Membership][] => {
      if (isOurs(is) && changed) return [];
      if (!isOurs(is) || isStatedOut(channel)) return [[channel, unsettled(is)]];
      return [[channel, { by: 'platform', doubtful: true, is: 'opt_out', made }]];
    },
  );
  const defaults = changed ? [] : recorded.defaults.filter(isStatedOut);
  return { ...recorded, defaults, channels: Object.fromEntries(channels) };
}

/** Marks new opt-outs as doubtful where a request of ours may have made them. */
export function doubted(
  channels: RecordedContact['channels'],
  recorded: RecordedContact | undefined,
  { restored }: { restored: boolean },
): RecordedContact['channels'] {
  if (!recorded?.allowed && !restored) return channels;
  const all = { ...channels };
  for (const [channel, is] of Object.entries(channels)) {
    const isNew = isTheirs(is) && !isTheirs(recorded?.channels[channel]);
    if (isNew) all[channel] = { ...is, doubtful: true };
  }
  return all;
}

/** Returns what is recorded. Ours does not count while another contact shows a new opt-out. */
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
 * contact shows it: a missing one may have been deleted, which is nobody's decision.
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
    if (is) all[channel] = before?.is === 'opt_in' ? lostBy(recorded, contacts, channel, is) : is;
  }
  for (const channel of new Set(replaces.values())) {
    const shown = strictestOf(contacts, channel);
    const is = shown && seen(all[channel], shown, sight);
    if (is) all[channel] = is;
  }
  return all;
}

/**
 * Returns how a subscription was lost. The person left only if the contact that was subscribed
 * shows it; an opt-out on another contact has no known time; without any, it is doubtful.
 */
function lostBy(
  recorded: RecordedContact | undefined,
  contacts: ObservedContact[],
  channel: string,
  is: Membership,
): Membership {
  if (is.is === 'opt_in' || !is.made) return is;
  const wasIn = (id: string): boolean =>
    recorded?.contacts.some((one) => one.id === id && one.channels[channel] === 'opt_in') === true;
  if (contacts.some(({ id, channels }) => channels[channel] !== 'opt_in' && wasIn(id))) return is;
  const { by, made } = is;
  return contacts.some(({ channels }) => channels[channel] === 'opt_out')
    ? { by, is: 'opt_out', made: { ...made, after: null } }
    : { by, doubtful: true, is: 'opt_out', made };
}

/** Returns the channels that the person joined after leaving those that they replace. */
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
 * Returns what is known about the person under a former address, recorded and observed. Defaults,
 * a restored snapshot and opt-outs of ours are handled as for the current address.
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

/** The recorded state of a person that tells who left a replaced channel. */
export type Past = Pick<RecordedContact, 'channels' | 'outgrown'>;

/** Returns the channel that this one replaces, unless the person has joined this one since. */
export function replacedBy(
  channel: string,
  { replaces }: Channels,
  outgrown: readonly string[],
): string | undefined {
  return outgrown.includes(channel) ? undefined : replaces.get(channel);
}

/** Returns whether the person left the replaced channel and has not joined this one since. */
export function hasLeftReplaced({ channels, outgrown }: Past, channel: string, rules: Channels) {
  const replaced = replacedBy(channel, rules, outgrown);
  return replaced !== undefined && isTheirs(channels[replaced]);
}

/** Returns whether `undo` opted the person out of the replaced channel, and that still counts. */
export function isUndoneInReplaced(
  { channels, outgrown }: Past,
  channel: string,
  { rules, states }: { rules: Channels; states: ContactStates },
): boolean {
  const replaced = replacedBy(channel, rules, outgrown);
  const is = replaced === undefined ? undefined : channels[replaced];
  // What the CRM stated about the replaced channel, it states about this one now.
  return is?.is === 'opt_out' && is.undone !== undefined && !isTakenBack(is, channel, states);
}

/** Returns the channels that tell whether an `undo` counts: itself, or those replacing it. */
export function statingFor(channel: string, { channels, replaces }: Channels): string[] {
  if (channels.includes(channel)) return [channel];
  return channels.filter((one) => replaces.get(one) === channel);
}
