/** Her contacts, as what they show is taken. */
import type { ObservedRow } from '../../../domain/record.ts';
import type { Parts } from '../../capabilities.ts';
import type { States } from '../../record-type.ts';
import { fingerprintOf } from './observed-contact.ts';
import { decodeContact, type RecordedContactRow } from './contact-rows.ts';
import type { ObservedContact, RecordedContact } from './contact-state.ts';

/**
 * The person's contacts as they are seen. What is not proven to be gone counts as it was last: a
 * second contact of the address too, which a listing may have missed.
 */
export function contactsOf(
  seenNow: ObservedContact[],
  states: States,
  recorded: RecordedContact | undefined,
): ObservedContact[] {
  if (states.sight === 'listed' || states.recorded?.id === undefined) return seenNow;
  const isUnseen = ({ id }: ObservedContact): boolean =>
    [...seenNow, ...states.renamed].every((seen) => seen.id !== id);
  return [...seenNow, ...(recorded?.contacts ?? []).filter(isUnseen)];
}

/**
 * The channels on which the contact we made still shows the opt-out it was made with. Where the
 * platform turned out to show no defaults, somebody made it.
 */
export function defaultsIn(
  shown: ObservedContact[],
  { recorded: row, facts }: Pick<States, 'recorded' | 'facts'>,
  { defaults }: RecordedContact,
): string[] {
  if (facts.namesAll === false) return [];
  const ours = shown.find((contact) => contact.id === row?.id);
  return defaults.filter((channel) => ours?.channels[channel] === 'opt_out');
}

/** Her contacts as far as anybody said what they show: without the defaults of the one we made. */
export function statedContacts(
  shown: ObservedContact[],
  states: Pick<States, 'recorded' | 'facts'>,
  recorded: RecordedContact | undefined,
): ObservedContact[] {
  const defaults = new Set(recorded && defaultsIn(shown, states, recorded));
  return shown.map((contact) =>
    contact.id === states.recorded?.id ? withoutDefaults(contact, defaults) : contact,
  );
}

function withoutDefaults(contact: ObservedContact, defaults: ReadonlySet<string>): ObservedContact {
  const said = Object.entries(contact.channels).filter(([channel]) => !defaults.has(channel));
  return { ...contact, channels: Object.fromEntries(said) };
}

/** How the contacts of a former address are shown, or were last: fingerprints, sorted. */
export function fingerprintsOf(
  { value }: RecordedContactRow,
  rows: readonly ObservedRow[],
): string[] {
  if (rows.length > 0) return rows.map((row) => row.fingerprint).toSorted();
  return value.contacts.map(fingerprintOf).toSorted();
}

/** The channels as parts of the platform that contacts are in. */
export function partsOf(channels: readonly string[]): Parts {
  return {
    names: channels,
    recorded(row) {
      const { channels: all } = decodeContact.recorded(row).value;
      return Object.keys(all).filter((channel) => all[channel]?.is === 'opt_in');
    },
    shown: (row) => Object.keys(decodeContact.observed(row).value.channels),
  };
}
