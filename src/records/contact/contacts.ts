/** The contract of a mirror's contacts; connect-contacts.ts connects them to the platform. */
import type { Change, Op } from '../../domain/change.ts';
import type {
  Entry,
  ListChanges,
  RememberedOptOut,
  Settlement,
} from '../../domain/do-not-contact.ts';
import type { CanaryBound } from '../../domain/guards/canary.ts';
import type { DesiredRow, Key, ObservedRow, RecordedRow } from '../../domain/record.ts';
import type { Deadlines, Sending, SendOutcome } from '../change-outcome.ts';
import type { Decision, Undoing, Undone } from '../decision.ts';
import type { NamedParts, PlatformFacts } from '../platform-facts.ts';
import type { AbsenceRules } from './consent/absent-people.ts';
import type { PlatformOptOuts } from './consent/platform-opt-outs.ts';
import {
  type ContactStates,
  decodeContact,
  type ObservedContactRow,
} from './observe/contact-state.ts';

/** What is known about a record, and how recently, when a change is about to be sent. */
export interface KnownRecord {
  recorded: RecordedRow | undefined;
  /** Whether the platform was read recently enough to prove the plan's assumptions. */
  fresh: boolean;
  /** Whether a complete listing is recent enough; such a listing also covers former names. */
  listed: boolean;
  /** Whether the listing was incomplete, and nothing else read this key: more records may exist. */
  partial: boolean;
  signal: AbortSignal;
}

/** The circumstances in which the outcome of an unanswered change is determined. */
export interface Recovery {
  /** Whether the state may be the person's doing: sent long ago, or unread before an opt-out. */
  late: boolean;
  facts: PlatformFacts;
  /** The row that was recorded when the change was sent. It is kept until the outcome is known. */
  recorded: RecordedRow | undefined;
  signal: AbortSignal;
}

/** The page to request: its number, starting at 1, and the maximum number of records on it. */
export interface ListingPage {
  page: number;
  limit: number;
}

/** A page of the listing, in canonical forms. */
export interface Page {
  rows: ObservedContactRow[];
  /** As stated by the platform; never trusted on its own. */
  total: number;
  /** When the platform responded, by its own clock, in milliseconds since the epoch. */
  date: number | undefined;
  parts: NamedParts | undefined;
  /** The channels that the configuration does not name, once for each contact that is in one. */
  others: readonly { id: string; name: string }[];
}

/** The signals and facts with which a change is sent. */
export interface SendContext extends Sending {
  /** Whether this run read the record recently enough before sending the change. */
  seen: boolean;
  facts(): PlatformFacts;
  recorded(): RecordedRow | undefined;
}

/**
 * The result of a search for one recorded record.
 *
 *   alone   the record exists; nothing else is known about its key
 *   whole   the record is gone, and `rows` are all records that have its key now
 */
export interface FoundRecord {
  is: 'alone' | 'whole';
  rows: ObservedRow[];
}

/** The number of people who unsubscribed, by way. */
export type UnsubscribeCounts = Readonly<Record<string, number>>;

/** One page of the people who unsubscribed one way. */
export interface LeavingPage {
  rows: ObservedRow[];
  listed: number;
  total: number;
}

export interface Departures {
  route: string;
  /**
   * Sends one request. Returns a count for each way; undefined if the platform does not count. It
   * rises when somebody unsubscribes, unless another person resubscribes meanwhile.
   */
  counts(how: Deadlines): Promise<UnsubscribeCounts | undefined>;
  /** Returns a page of those who unsubscribed this way, newest contacts first. */
  list(query: { way: string; page: number; limit: number }, how: Deadlines): Promise<LeavingPage>;
  named(key: Key): DesiredRow;
}

export interface Erasing {
  key: Key;
  recorded: RecordedRow | undefined;
  known: readonly string[];
  tell(deed: Deed): void;
}

/** A step of an erasure; without a channel, a deletion. `refused`: it certainly was not done. */
export type Deed =
  | { is: 'found' | 'deleted'; id: string }
  | { is: 'opted out'; id: string; channel: string }
  | { is: 'sending' | 'refused'; id: string; channel?: string };

/** How an operator wants to settle a conflict in one channel. */
export interface SettlementAsked {
  channel: string;
  as: 'in' | 'out';
  settlement: Settlement;
}

/** Why a conflict cannot be settled, or the changes to the list and the row to record. */
export type Settled =
  | { refused: { reason: string; fix: string } }
  | {
      frees?: ListChanges['frees'];
      adds: RememberedOptOut[];
      ends: ListChanges['ends'];
      row: RecordedRow | undefined;
    };

/** The contacts of a mirror. Each function that sends requests throws their errors. */
export interface Contacts {
  fields: readonly string[];
  channels: readonly string[];
  absence: AbsenceRules;
  /** Whether full runs decide about recorded people who are not in the CRM. */
  decidesAbsent: boolean;
  /** Finds the opt-outs made on the platform, so that they can be reported to the CRM. */
  optOuts: PlatformOptOuts;
  departures: Departures;
  /** Returns a CRM record in canonical form, with `invalid` set if unusable. Never throws. */
  desire(value: Record<string, unknown>, place: string): DesiredRow;
  /** Whether a later consent counts, so that a wrong clock could opt somebody in. */
  countsLaterConsent: boolean;
  list(query: ListingPage, signal: AbortSignal): Promise<Page>;
  /** Reads what the platform shows for a person's address, and under the recorded id. */
  read(
    known: { key: Key; id: string | undefined },
    signal: AbortSignal,
  ): Promise<ObservedContactRow[]>;
  /** Looks for a recorded contact that no page contained: by its id, then by its address. */
  find(row: RecordedRow, signal: AbortSignal): Promise<FoundRecord>;
  /** Deletes a person from the platform, even if the mirror did not create the contact. */
  erase(what: Erasing, deadlines: Deadlines): Promise<boolean>;
  forbids(change: Change, entries: readonly Entry[]): boolean;
  /** Returns what to do about one person. Pure; nothing, once its changes are acknowledged. */
  decide(states: ContactStates): Decision;
  undo(states: ContactStates, undoing: Undoing): Undone;
  /** Decides whether an operator may settle a conflict. Pure. */
  settle(states: ContactStates, asked: SettlementAsked): Settled;
  reasonFor(rule: string | null): string;
  /** Returns the outcome of a change whose plan does not hold any more, just before it is sent. */
  look(change: Change, known: KnownRecord): Promise<SendOutcome | undefined>;
  /** Sends a change, reading back if needed. Throws only unexpected errors. */
  send(change: Change, sendContext: SendContext): Promise<SendOutcome>;
  /** Finds the outcome of a silent change by reading. */
  recover(change: Change, asked: Recovery): Promise<SendOutcome>;
}

/** Returns the route of an operation. A refused one stops only the changes that use it. */
export function contactRoute(op: Op): string {
  return op === 'delete' ? 'contacts.delete' : 'contacts.enrol';
}

/** Returns the route that `look` reads for an operation. */
export function lookRoute(op: Op): string {
  return op === 'create' ? 'contacts.list' : 'contacts.retrieve';
}

/** Returns what is wrong some time after a change of an earlier run, if anything. Pure. */
export function contactDrift(
  { op, part, target }: { op: Op; part: string; target: string | null },
  rows: readonly ObservedRow[],
): CanaryBound | undefined {
  const seen = rows.map((row) => decodeContact.observed(row).value);
  if (op === 'delete') return seen.some(({ id }) => id === target) ? 'drift' : undefined;
  if (op === 'opt_out') {
    const isIn = seen.some(({ channels, left }) => !left && channels[part] === 'opt_in');
    return isIn ? 'drift' : undefined;
  }
  const contact = seen.find(({ id }) => id === target) ?? seen[0];
  if (!contact) return 'drift';
  if (contact.left || contact.channels[part] === 'opt_out') return 'unsubscribed';
  return contact.channels[part] === 'opt_in' ? undefined : 'drift';
}
