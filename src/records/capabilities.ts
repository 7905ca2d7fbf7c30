/**
 * The capabilities that only some record types have: one interface each, with the types it uses.
 */
import type { Change } from '../domain/change.ts';
import type { Entry, ListChanges, RememberedOptOut, Settlement } from '../domain/do-not-contact.ts';
import type { AbsenceDue, DesiredRow, Key, ObservedRow, RecordedRow } from '../domain/record.ts';
import type { ReturnCause } from '../domain/opt-out-report.ts';
import type { PlatformFacts } from './platform-facts.ts';

/** What a record type supports, if it is not missing. Contacts support all, templates none. */
export interface Capabilities {
  /** The parts of the platform that records belong to; contacts belong to channels. */
  readonly channels?: Parts;
  /** Reads single records. It also lets a run about one record lock that record. */
  readonly personRead?: PersonRead;
  /** Decides what is remembered about people whose record is gone. */
  readonly doNotContact?: DoNotContactRules;
  readonly erasure?: Erasure;
  /** Finds the opt-outs made on the platform, so that they can be reported to the source. */
  readonly optOuts?: PlatformOptOuts;
  /** Lists the people who unsubscribed on the platform. */
  readonly departures?: UnsubscribeListing;
  /** The time after which a record that is missing from the source counts as absent. */
  readonly absence?: AbsenceDue;
}

/** Reads single records. Each function throws the errors of its requests. */
export interface PersonRead {
  /** Returns everything that the platform shows for a record, under its key and under its id. */
  read(known: Pick<RecordedRow, 'key' | 'id'>, signal: AbortSignal): Promise<ObservedRow[]>;
  /** Looks for a record that no page contained: by its id, then by its key. */
  find(row: RecordedRow, signal: AbortSignal): Promise<FoundRecord>;
  /** Returns the platform's ids of a record, including contacts that were renamed there. */
  idsOf(row: RecordedRow): readonly string[];
}

/** The parts of the platform that records belong to, as contacts belong to channels. */
export interface Parts {
  names: readonly string[];
  /** Returns the parts that a record is recorded in. */
  recorded(row: RecordedRow): string[];
  /** Returns the parts that the platform shows for a record, whatever its subscription there. */
  shown(row: ObservedRow): string[];
}

/** Decides what the do-not-contact list stores and what it forbids. All functions are pure. */
export interface DoNotContactRules {
  /** Returns what the list must remember about a person, based on the recorded row. */
  memories(row: RecordedRow): RememberedOptOut[];
  /**
   * Returns the changes to the list that follow from an acknowledged change. `after` is the
   * resulting recorded row; `entries` are the list's entries about the person.
   */
  learn(change: Change, after: RecordedRow | undefined, entries: readonly Entry[]): ListChanges;
  forbids(change: Change, entries: readonly Entry[]): boolean;
}

export interface Erasure {
  /**
   * Deletes a record from the platform, even if the mirror did not create it. Returns whether it is
   * certain that the platform has no further record of the person. Throws the errors of the
   * requests, and Unavailable while the platform still shows the record.
   */
  erase(what: Erasing, deadlines: Deadlines): Promise<boolean>;
  /**
   * Lets the source withdraw the opt-outs that we sent because it stated them. Returns the new row
   * and the parts of these opt-outs, or undefined if there are none.
   */
  release(row: RecordedRow): { row: RecordedRow; parts: string[] } | undefined;
  /** Returns the row after an erasure was revoked, when the next opt-out shown may be ours. */
  unerased(key: Key, row: RecordedRow | undefined): RecordedRow;
}

/** How an operator wants to settle a conflict in one channel. */
export interface SettlementAsked {
  channel: string;
  as: 'in' | 'out';
  settlement: Settlement;
}

/** Why a conflict cannot be settled, or the changes to the list and the row to record. */
export type Settled =
  | { refused: { reason: string; fix: string } }
  | (Pick<ListChanges, 'frees'> & {
      adds: RememberedOptOut[];
      ends: ListChanges['ends'];
      row: RecordedRow | undefined;
    });

export interface Erasing {
  key: Key;
  /** Undefined if nothing is recorded for the record. */
  recorded: RecordedRow | undefined;
  known: readonly string[];
  tell(deed: Deed): void;
}

/**
 * One step of an erasure, with the platform id of the record. A deletion may be reported twice.
 * `sending`: the opt-out, or without a channel the deletion, is about to be sent; `refused`: it
 * certainly was not done.
 */
export type Deed =
  | { is: 'found' | 'deleted'; id: string }
  | { is: 'opted out'; id: string; channel: string }
  | { is: 'sending' | 'refused'; id: string; channel?: string };

/** The signals that cancel a request: `signal` while it waits, `abort` also in flight. */
export interface Deadlines {
  signal: AbortSignal;
  abort: AbortSignal;
}

/** Finds the opt-outs to report to the source. The functions are pure. */
export interface PlatformOptOuts {
  /** Returns the recorded opt-outs from the configured parts. */
  recorded(row: Pick<RecordedRow, 'body' | 'seenAt'>, facts: PlatformFacts): PlatformOptOut[];
  /** Returns the opt-out that a do-not-contact entry stands for, if it is about one. */
  remembered(entry: Entry, facts: PlatformFacts): PlatformOptOut | undefined;
  /** Returns whether a record of the source states the opt-out, which then needs no report. */
  saysSo(row: DesiredRow, out: PlatformOptOut): boolean;
  /**
   * Returns whether a record of the source states something newer than the opt-out. Returns false
   * if the policy ignores newer statements. `recorded`: what is recorded for the record's key.
   */
  isNewer(row: DesiredRow, out: PlatformOptOut, recorded: RecordedRow | undefined): boolean;
  /** Returns the source's own spelling of the record's key. */
  spelling(row: DesiredRow): string | undefined;
}

/**
 * An opt-out that the platform shows and that we did not send. It was made after `after` (null if
 * unknown) and not later than `by`, both in milliseconds since the epoch.
 *
 * A doubtful opt-out may not be a person's decision: it may be the default of a channel, or the
 * result of a request of ours that got no response. It is not reported to the source.
 */
export interface PlatformOptOut {
  /** The id of a channel; '*' for all channels. */
  channel: string;
  cause: ReturnCause | 'doubtful';
  after: number | null;
  by: number;
}

/** Counts and lists the people who unsubscribed on the platform. */
export interface UnsubscribeListing {
  readonly route: string;
  /** The ways to unsubscribe. Each is counted and listed separately. */
  readonly ways: readonly string[];
  /**
   * Sends one request. Returns a count for each way, or undefined if the platform does not count. A
   * count rises when somebody unsubscribes, unless another person resubscribes at the same time.
   * Throws the errors of the request.
   */
  counts(deadlines: Deadlines): Promise<UnsubscribeCounts | undefined>;
  /** Returns a page of those who unsubscribed this way, newest contacts first. */
  list(
    page: { way: string; page: number; limit: number },
    deadlines: Deadlines,
  ): Promise<LeavingPage>;
  /** Returns an empty source record, which states nothing, for a key. */
  named(key: Key): DesiredRow;
}

/** The number of people who unsubscribed, by way. */
export type UnsubscribeCounts = Readonly<Record<string, number>>;

/** One page of the people who unsubscribed one way. */
export interface LeavingPage {
  rows: ObservedRow[];
  listed: number;
  /** The total number of people who unsubscribed this way, as stated by the platform. */
  total: number;
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
