/** Determines the contacts of a person as last observed, and what follows from them. */
import type { ObservedRow } from '../../../domain/record.ts';
import type { Parts } from '../../capabilities.ts';
import type { States } from '../../record-type.ts';
import { fingerprintOf } from './observed-contact.ts';
import { decodeContact, type RecordedContactRow } from './contact-rows.ts';
import type { ObservedContact, RecordedContact } from './contact-state.ts';

/**
 * Returns the contacts of the person. A contact that is not proven to be gone counts as last
 * observed. This includes a second contact with the address, which a listing may have missed.
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
 * Returns the channels in which the contact that we made still shows the opt-out it was created
 * with. Returns none if the platform turned out to show no defaults, because in that case a person
 * made these opt-outs.
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

/**
 * Returns the contacts without subscriptions that are mere defaults: those of the contact that we
 * made are removed.
 */
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

/**
 * Returns the sorted fingerprints of the contacts under a former address, as read now or else as
 * last recorded.
 */
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

/** Returns the channels as the parts of the platform that contacts belong to. */
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
