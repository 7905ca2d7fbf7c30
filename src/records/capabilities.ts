/** Describes what only some record types can do: one interface for each capability. */
import type { Change } from '../domain/change.ts';
import type { Entry, ListChanges, RememberedOptOut } from '../domain/do-not-contact.ts';
import type { FoundRecord } from './listing-page.ts';
import type { AbsenceDue, DesiredRow, Key, ObservedRow, RecordedRow } from '../domain/record.ts';
import type { ReturnCause } from '../domain/opt-out-report.ts';
import type { PlatformFacts } from './platform-facts.ts';

/** A capability that is missing is not supported. Contacts have all of them, templates none. */
export interface Capabilities {
  /** Records are in parts of the platform, as contacts are in channels. */
  readonly channels?: Parts;
  /** Records can be read one by one; then a run about one record locks it. */
  readonly personRead?: PersonRead;
  /** Somebody must be remembered when the record is gone. */
  readonly doNotContact?: DoNotContactRules;
  /** A record can be taken off the platform for good. */
  readonly erasure?: Erasure;
  /** People unsubscribe on the platform: the source is told. */
  readonly optOuts?: PlatformOptOuts;
  /** The platform lists who unsubscribed. */
  readonly departures?: UnsubscribeListing;
  /** A record that the source no longer names is due after some time. */
  readonly absence?: AbsenceDue;
}

/** Reads single records. Each function throws what the request throws. */
export interface PersonRead {
  /** Returns all that the platform shows of a record: under its key, and under its id. */
  read(known: Pick<RecordedRow, 'key' | 'id'>, signal: AbortSignal): Promise<ObservedRow[]>;
  /** Looks for a recorded record that no page of the listing showed. */
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

/** Decides what goes into the do-not-contact list, and what the list forbids. All is pure. */
export interface DoNotContactRules {
  /** Returns what must be remembered of a record, by what is recorded. */
  memories(row: RecordedRow): RememberedOptOut[];
  /** Returns what an acknowledged change, and the row that follows from it, change in the list. */
  learn(change: Change, after: RecordedRow | undefined, entries: readonly Entry[]): ListChanges;
  /** Returns whether the list forbids a change. */
  forbids(change: Change, entries: readonly Entry[]): boolean;
}

export interface Erasure {
  /**
   * Takes a record off the platform for good, even one that we did not make. Throws as long as
   * that is not proven.
   */
  erase(what: Erasing, deadlines: Deadlines): Promise<void>;
  /**
   * Lets the source take back the opt-outs that we sent on its word. Returns the row that follows
   * and their parts; undefined if there are none.
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
  recorded: RecordedRow | undefined;
  /** The ids that an earlier attempt found. */
  known: readonly string[];
  /** Is called for each deed, once it is done. */
  tell(deed: Deed): void;
}

/** A deed that was done to a record of the platform, by its id. A deletion may be told twice. */
export type Deed =
  { is: 'found' | 'deleted'; id: string } | { is: 'opted out'; id: string; channel: string };

/** `signal` ends the waiting, `abort` ends a request that is in flight. */
export interface Deadlines {
  signal: AbortSignal;
  abort: AbortSignal;
}

/** Finds the opt-outs that the source is to be told of. All of it is pure. */
export interface PlatformOptOuts {
  /** Returns the opt-outs that are recorded, in parts that are kept equal. */
  recorded(row: Pick<RecordedRow, 'body' | 'seenAt'>, facts: PlatformFacts): PlatformOptOut[];
  /** Returns the opt-out of an entry of the list; undefined if it is about something else. */
  remembered(entry: Entry, facts: PlatformFacts): PlatformOptOut | undefined;
  /** Returns whether a record of the source says the same by itself: then it needs no report. */
  saysSo(row: DesiredRow, out: PlatformOptOut): boolean;
  /** Returns whether what a record of the source says is newer, where that may count for more. */
  isNewer(row: DesiredRow, out: PlatformOptOut): boolean;
}

/**
 * An opt-out that the platform shows and that we did not send. It was made after `after` (null: not
 * known) and by `by`, in milliseconds since the epoch. doubtful: nobody is known to have opted out;
 * it may be a channel's default, or the result of a request of ours that had no answer. The source
 * is not told.
 */
export interface PlatformOptOut {
  /** '*': all channels. */
  channel: string;
  cause: ReturnCause | 'doubtful';
  after: number | null;
  by: number;
}

/** Counts and lists the people who unsubscribed on the platform. */
export interface UnsubscribeListing {
  /** The route by which they are counted and listed. */
  readonly route: string;
  /** The ways to unsubscribe; each is listed by itself. */
  readonly ways: readonly string[];
  /**
   * Sends one request. Returns a count for each way, which rises when somebody unsubscribes, unless
   * somebody comes back at the same time; undefined if the platform does not count.
   */
  counts(deadlines: Deadlines): Promise<UnsubscribeCounts | undefined>;
  /** Returns one page of the people who unsubscribed this way, the newest contacts first. */
  list(
    page: { way: string; page: number; limit: number },
    deadlines: Deadlines,
  ): Promise<LeavingPage>;
  /** Returns the source record of a person, made from nothing but the key. */
  named(key: Key): DesiredRow;
}

export type UnsubscribeCounts = Readonly<Record<string, number>>;

export interface LeavingPage {
  /** The people of the page who unsubscribed indeed. */
  rows: ObservedRow[];
  /** The number of people on the page. */
  listed: number;
  /** The number of people who unsubscribed this way, as the platform says. */
  total: number;
}
