/** Contacts of the platform in canonical form, and what is recorded of them after a reading. */
import {
  canonicalJson,
  fingerprint,
  type ObservedRow,
  type RecordedRow,
} from '../../../domain/record.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import type { Contact } from '../../../platform/answer-schemas.ts';
import type { Subscription } from '../../../platform/request-schemas.ts';
import { isSame, type NamedParts, type PlatformFacts } from '../../platform-facts.ts';
import {
  type ContactStates,
  type ObservedContactRow,
  type ObservedContact,
  type Membership,
  decodeContact,
  type RecordedContactRow,
  type RecordedContact,
} from './contact-state.ts';

/** Returns a platform contact in canonical form, with only these channels. */
export function observe(contact: Contact, channels: ReadonlySet<string>): ObservedContactRow {
  const { id, updatedAt: changed, status, suppressionReason, suppressedAt } = contact;
  // Why the contact receives no mail; an unknown status counts as the stricter one.
  const causes: NonNullable<ObservedContact['causes']> = [];
  if (status !== 'subscribed') causes.push(status === 'blocked' ? 'blocked' : 'unsubscribed');
  const reason = suppressionReason ?? '';
  const isBounce = /bounce/i.test(reason) && !/unsub/i.test(reason);
  if (/complain|spam/i.test(reason)) causes.push('complaint');
  else if (reason !== '' || suppressedAt) causes.push(isBounce ? 'bounce' : 'suppressed');
  const left = causes.length > 0;
  const subscriptions: ObservedContact['channels'] = {};
  for (const { id: channel, subscription } of contact.channels) {
    // An unknown word never subscribes a contact.
    const is = subscription === 'opt_in' ? 'opt_in' : 'opt_out';
    if (channels.has(channel)) subscriptions[channel] = is;
  }
  const seen = { causes: left ? causes : undefined, channels: subscriptions, id, left };
  const form = canonicalJson(seen);
  const others = contact.channels.some((one) => !channels.has(one.id));
  const rest = {
    ...(typeof changed === 'string' && { changed }),
    ...(others && ({ others } as const)),
  };
  // What the fingerprint excludes goes in front, which is faster than serializing all again.
  const front = JSON.stringify(rest).slice(0, -1);
  return {
    kind: 'contact',
    id,
    alias: contactKey(contact.email),
    body: front === '{' ? form : `${front},${form.slice(1)}`,
    value: { ...seen, ...rest },
    fingerprint: fingerprint(form),
    createdAt: timeOf(contact.createdAt),
  };
}

/** Returns the fingerprint of all that decisions depend on, so without `changed`, `others`. */
export function fingerprintOf({ causes, channels, id, left }: ObservedContact): string {
  return fingerprint(canonicalJson({ causes, channels, id, left }));
}

/** Returns whether any contact is not among the known ones, or has changed in any way since. */
export function isChanged(
  known: readonly ObservedContact[],
  contacts: readonly ObservedContact[],
): boolean {
  const isKnown = ({ id, changed }: ObservedContact): boolean =>
    known.some((one) => one.id === id && one.changed === changed);
  return !contacts.every(isKnown);
}

/** Returns the channels that occur in the contacts on a page, whatever the subscription. */
export function namedIn(contacts: readonly Contact[]): NamedParts | undefined {
  const [first, ...others] = contacts.map(({ channels }) => channels.map(({ id }) => id));
  return first && { names: first, differ: !others.every((names) => isSame(first, names)) };
}

/** Returns a time in milliseconds since the epoch, if any; without a zone it is in UTC. */
export function timeOf(text: string | null | undefined): number | undefined {
  if (!text) return undefined;
  const isBare = /[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);
  const ms = Date.parse(isBare ? `${text}Z` : text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** One reading of a person. Times are in milliseconds since the epoch. */
export interface Observation {
  present: boolean;
  /** When the person was previously read; null if never. */
  before: number | null;
  /** When the reading ended, by our clock or the platform's, whichever is ahead. */
  by: number;
  /** Whether the contact is not the one that was read before, or has changed in any way since. */
  changed: boolean;
}

/**
 * Returns the new recorded state R after a reading, before anything is sent. If no acknowledged
 * request of ours explains an opt-out or a lost membership, it counts as made by the platform, no
 * later than the reading, whatever the CRM wants. If the contact has changed, the opt-out may have
 * been made again.
 *
 *   R                O     present  →  R
 *   any              in    yes         in
 *   out by us        out   yes         out by us; an operator's settlement ends if changed
 *   out by platform  out   yes         unchanged; made by now, if the contact was changed,
 *                                      or showed no opt-out there when it was last observed
 *   anything else    out   yes         out by platform, made since it was last observed in
 *   in               —     yes         out by platform, likewise (membership was removed)
 *   —, out           —     yes         unchanged
 *   any              —     no          unchanged  (vanished; no change is known)
 */
export function seen(
  recorded: Membership | undefined,
  observed: Subscription | undefined,
  { present, before, by, changed }: Observation,
): Membership | undefined {
  if (!present) return recorded;
  if (observed === 'opt_in') return { by: 'platform', is: 'opt_in' };
  if (observed === undefined && recorded?.is !== 'opt_in') {
    return changed && recorded ? unsettled(recorded) : recorded;
  }
  const latest = Math.max(by, before ?? by);
  if (recorded?.is !== 'opt_out') {
    const after = recorded ? before : null;
    return { by: 'platform', is: 'opt_out', made: { after, by: latest } };
  }
  if (!changed) return recorded;
  const rest = unsettled(recorded);
  if (recorded.by === 'us') return rest;
  return { ...rest, made: { after: recorded.made?.after ?? null, by: latest } };
}

/** Returns a membership without its settlement, because the opt-out may be another one now. */
export function unsettled({ settled: _, ...rest }: Membership): Membership {
  return rest;
}

/**
 * Returns whether the CRM stated it after the opt-out can have been made, and not in the future.
 */
export function isNewer(
  consentAt: number | null,
  recorded: Membership | undefined,
  now: number,
): boolean {
  const made = recorded?.is === 'opt_out' ? recorded.made : undefined;
  return consentAt !== null && made !== undefined && consentAt > made.by && consentAt <= now;
}

/** Returns the other channels to which the contacts on a page are subscribed, once for each. */
export function othersIn(
  contacts: readonly Contact[],
  channels: ReadonlySet<string>,
): { id: string; name: string }[] {
  const all = contacts.flatMap((contact) => contact.channels);
  return all
    .filter(({ id, subscription }) => !channels.has(id) && subscription === 'opt_in')
    .map(({ id, name }) => ({ id, name: name ?? '' }));
}

export function isOurs(membership: Membership | undefined): membership is Membership {
  return membership?.is === 'opt_out' && membership.by === 'us';
}

/** Returns whether the person, rather than this mirror, made the opt-out. */
export function isTheirs(membership: Membership | undefined): boolean {
  return membership?.is === 'opt_out' && membership.by === 'platform';
}

/**
 * Returns the contacts of the person. One that is not proven to be gone counts as last observed.
 */
export function contactsOf(
  seenNow: ObservedContact[],
  states: ContactStates,
  recorded: RecordedContact | undefined,
): ObservedContact[] {
  if (states.sight === 'listed' || states.recorded?.id === undefined) return seenNow;
  const isUnseen = ({ id }: ObservedContact): boolean =>
    [...seenNow, ...states.renamed].every((seen) => seen.id !== id);
  return [...seenNow, ...(recorded?.contacts ?? []).filter(isUnseen)];
}

/** What tells the contact that we made, and whether its defaults are shown. */
interface Known {
  recorded: RecordedRow | undefined;
  facts: PlatformFacts;
}

/**
 * Returns the channels with the opt-out that the contact that we made was created with; none if the
 * platform turned out to show no defaults, because then a person made them.
 */
export function defaultsIn(
  shown: ObservedContact[],
  { recorded: row, facts }: Known,
  { defaults }: RecordedContact,
): string[] {
  if (facts.namesAll === false) return [];
  const ours = shown.find((contact) => contact.id === row?.id);
  return defaults.filter((channel) => ours?.channels[channel] === 'opt_out');
}

/** Returns the contacts without mere defaults: the subscriptions of the one that we made. */
export function statedContacts(
  shown: ObservedContact[],
  states: Known,
  recorded: RecordedContact | undefined,
): ObservedContact[] {
  const defaults = new Set(recorded && defaultsIn(shown, states, recorded));
  return shown.map((contact) => {
    if (contact.id !== states.recorded?.id) return contact;
    const stated = Object.entries(contact.channels).filter(([channel]) => !defaults.has(channel));
    return { ...contact, channels: Object.fromEntries(stated) };
  });
}

/** Returns the sorted fingerprints of a former address's contacts, as read or else recorded. */
export function fingerprintsOf(
  { value }: RecordedContactRow,
  rows: readonly ObservedRow[],
): string[] {
  if (rows.length > 0) return rows.map((row) => row.fingerprint).toSorted();
  return value.contacts.map(fingerprintOf).toSorted();
}

/** Returns whether mail to the address merely bounced, which says nothing about other addresses. */
export function isBounce({ causes = [] }: ObservedContact): boolean {
  return causes.length > 0 && causes.every((cause) => cause === 'bounce');
}

/** Returns the channels in which a person is recorded as subscribed. */
export function recordedChannels(row: RecordedRow): string[] {
  const { channels } = decodeContact.recorded(row).value;
  return Object.keys(channels).filter((channel) => channels[channel]?.is === 'opt_in');
}

/** Returns the channels that the platform shows for a contact, whatever its subscription there. */
export function shownChannels(row: ObservedRow): string[] {
  return Object.keys(decodeContact.observed(row).value.channels);
}
