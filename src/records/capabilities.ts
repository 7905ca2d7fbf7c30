/**
 * The capabilities that only some record types have: one interface each, with the types it uses.
 */
import type { Change } from '../domain/change.ts';
import type { Entry, ListChanges, RememberedOptOut } from '../domain/do-not-contact.ts';
import type { FoundRecord } from './listing-page.ts';
import type { AbsenceDue, DesiredRow, Key, ObservedRow, RecordedRow } from '../domain/record.ts';
import type { ReturnCause } from '../domain/opt-out-report.ts';
import type { PlatformFacts } from './platform-facts.ts';

/**
 * The capabilities of a record type. One that is missing is not supported. Contacts have all of
 * them, templates none.
 */
export interface Capabilities {
  /** The parts of the platform that records are in; a contact is in channels. */
  readonly channels?: Parts;
  /** Reads single records. With it a run about one record locks that record. */
  readonly personRead?: PersonRead;
  /** Remembers people whose record is gone. */
  readonly doNotContact?: DoNotContactRules;
  /** Takes a record off the platform for good. */
  readonly erasure?: Erasure;
  /** Finds the opt-outs made on the platform, so that the source is told of them. */
  readonly optOuts?: PlatformOptOuts;
  /** Lists the people who unsubscribed on the platform. */
  readonly departures?: UnsubscribeListing;
  /** The time after which a record that the source does not name counts as absent. */
  readonly absence?: AbsenceDue;
}

/** Reads single records. Each function throws what the request throws. */
export interface PersonRead {
  /** Returns all that the platform shows of a record: under its key, and under its id. */
  read(known: Pick<RecordedRow, 'key' | 'id'>, signal: AbortSignal): Promise<ObservedRow[]>;
  /**
   * Looks for a recorded record that no page of the listing showed: by its id, and by its key if
   * the id is gone.
   */
  find(row: RecordedRow, signal: AbortSignal): Promise<FoundRecord>;
  /** Returns the platform's ids of a record, including contacts that were renamed there. */
  idsOf(row: RecordedRow): readonly string[];
}

/** The parts of the platform that records are in, as contacts are in channels. */
export interface Parts {
  /** The parts that are kept equal. */
  names: readonly string[];
  /** Returns the parts that a record is recorded in. */
  recorded(row: RecordedRow): string[];
  /** Returns the parts that the platform shows of a record, whatever its subscription. */
  shown(row: ObservedRow): string[];
}

/** Decides what the do-not-contact list remembers, and what it forbids. The functions are pure. */
export interface DoNotContactRules {
  /** Returns what the list must remember of a person, by the recorded row. */
  memories(row: RecordedRow): RememberedOptOut[];
  /**
   * Returns the changes of the list that follow from an acknowledged change. `after` is the row
   * that is recorded then; `entries` are those of the list about the person.
   */
  learn(change: Change, after: RecordedRow | undefined, entries: readonly Entry[]): ListChanges;
  /** Returns whether the list forbids a change. */
  forbids(change: Change, entries: readonly Entry[]): boolean;
}

/** Takes people off the platform, and lets the source take back opt-outs. */
export interface Erasure {
  /**
   * Deletes a record from the platform, also one that the mirror did not make. Throws what the
   * requests throw, and Unavailable while the platform still shows the record.
   */
  erase(what: Erasing, deadlines: Deadlines): Promise<void>;
  /**
   * Lets the source take back the opt-outs that we sent because it stated them. Returns the new row
   * and the parts of these opt-outs; undefined if there are none.
   */
  release(row: RecordedRow): { row: RecordedRow; parts: string[] } | undefined;
  /**
   * Returns the row of a record whose erasure was taken back. An opt-out that the platform shows
   * next may be ours. `row` is what is recorded, if anything is.
   */
  unerased(key: Key, row: RecordedRow | undefined): RecordedRow;
}

/** The record to erase. */
export interface Erasing {
  key: Key;
  /** Undefined: nothing is recorded of the record. */
  recorded: RecordedRow | undefined;
  /** The platform ids that an earlier attempt found. */
  known: readonly string[];
  /** Reports a step once it is done. */
  tell(deed: Deed): void;
}

/** One step of an erasure, with the platform id of the record. A deletion may be reported twice. */
export type Deed =
  { is: 'found' | 'deleted'; id: string } | { is: 'opted out'; id: string; channel: string };

/** The signals that end a request: `signal` while it waits, `abort` also once it is in flight. */
export interface Deadlines {
  signal: AbortSignal;
  abort: AbortSignal;
}

/** Finds the opt-outs that the source is to be told of. The functions are pure. */
export interface PlatformOptOuts {
  /** Returns the recorded opt-outs, in the parts that are kept equal. */
  recorded(row: Pick<RecordedRow, 'body' | 'seenAt'>, facts: PlatformFacts): PlatformOptOut[];
  /**
   * Returns the opt-out that an entry of the do-not-contact list stands for; undefined if the entry
   * is about something else.
   */
  remembered(entry: Entry, facts: PlatformFacts): PlatformOptOut | undefined;
  /** Returns whether a record of the source states the opt-out itself. Then it needs no report. */
  saysSo(row: DesiredRow, out: PlatformOptOut): boolean;
  /**
   * Returns whether a record of the source states something newer than the opt-out. False if policy
   * does not let a newer statement count.
   */
  isNewer(row: DesiredRow, out: PlatformOptOut): boolean;
}

/**
 * An opt-out that the platform shows and that we did not send. It was made after `after` (null: not
 * known) and not later than `by`, both in milliseconds since the epoch.
 *
 * A doubtful opt-out may be nobody's: the default of a channel, or the result of a request of ours
 * that had no answer. The source is not told of it.
 */
export interface PlatformOptOut {
  /** The id of a channel; '*' for all of them. */
  channel: string;
  cause: ReturnCause | 'doubtful';
  after: number | null;
  by: number;
}

/** Counts and lists the people who unsubscribed on the platform. */
export interface UnsubscribeListing {
  /** The route by which they are counted and listed. */
  readonly route: string;
  /** The ways to unsubscribe. Each is counted and listed by itself. */
  readonly ways: readonly string[];
  /**
   * Sends one request. Returns a count for each way; undefined if the platform does not count. A
   * count rises when somebody unsubscribes, unless somebody else comes back at the same time.
   * Throws what the request throws.
   */
  counts(deadlines: Deadlines): Promise<UnsubscribeCounts | undefined>;
  /**
   * Returns one page of the people who unsubscribed this way, the newest contacts first. Throws
   * what the request throws.
   */
  list(
    page: { way: string; page: number; limit: number },
    deadlines: Deadlines,
  ): Promise<LeavingPage>;
  /**
   * Returns an empty source record for a person who is known by the key only. It states nothing.
   */
  named(key: Key): DesiredRow;
}

/** The number of people who unsubscribed, by way. */
export type UnsubscribeCounts = Readonly<Record<string, number>>;

/** One page of the people who unsubscribed one way. */
export interface LeavingPage {
  /** The people of the page whose record shows that they unsubscribed. */
  rows: ObservedRow[];
  /** The number of people on the page. */
  listed: number;
  /** The number of people who unsubscribed this way, as the platform says. */
  total: number;
}
