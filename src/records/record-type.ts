/**
 * The contract of a record type: contact, template. Each has a folder here.
 *
 * A run calls `desire` for each source record and `list` for each page of the platform, `decide`
 * for each record, and for each change `look`, `send` and `acknowledge`. It calls `recover` instead
 * if a change was sent and never answered.
 */
import type { Change, Op } from '../domain/change.ts';
import type { Entry, ListChanges } from '../domain/do-not-contact.ts';
import type { RecordProblem } from '../domain/record-problem.ts';
import type { Evidence, PlatformFacts } from './platform-facts.ts';
import type { ListingPage, Page } from './listing-page.ts';
import type {
  Absence,
  DesiredRow,
  Key,
  ObservedRow,
  RecordedRow,
  RecordTypeName,
  Rows,
} from '../domain/record.ts';
import type { Capabilities } from './capabilities.ts';

/** One record type. Its functions throw errors of the platform only where they say so. */
export interface RecordType {
  readonly name: RecordTypeName;
  /** The names of the source fields that it reads. */
  readonly fields: readonly string[];
  /** The phases of its changes, in the order in which they are sent. */
  readonly phases: readonly number[];
  /** Whether an incomplete reading of the source fails the run, so that it sends only opt-outs. */
  readonly needsCertificate: boolean;
  /** Whether the platform id decides which record it is, whatever its name there. */
  readonly keyedById: boolean;
  /**
   * Whether recorded records that the source does not name are decided, in full and in fast runs.
   */
  readonly decidesAbsent: Readonly<Record<'full' | 'fast', boolean>>;
  /** The optional abilities of the type. */
  readonly capabilities: Capabilities;
  /** The body of a source record that cannot be read: it states nothing. */
  readonly unreadBody: string;
  /** Returns a source record in canonical form, `invalid` if it cannot be used. Never throws. */
  desire(value: Record<string, unknown>, place: string): DesiredRow;
  /** Returns a page of canonical forms, equal for equal records. Throws what the request throws. */
  list(page: ListingPage, signal: AbortSignal): Promise<Page>;
  /**
   * Returns what to do about one record. It is pure, and converges: once its changes are
   * acknowledged and nothing else has changed, it returns no changes.
   */
  decide(states: States): Decision;
  /**
   * Returns the route that an operation uses. A refused route stops only the changes that use it.
   */
  route(op: Op): string;
  /** Returns the route that `look` reads for this operation. */
  lookRoute(op: Op): string;
  /**
   * Checks right before a change is sent whether what it was planned on still holds. Returns
   * undefined if it does, else the outcome of the change. Throws only for bugs.
   */
  look(change: Change, known: KnownRecord): Promise<SendOutcome | undefined>;
  /**
   * Sends one change, reads back where the answer says too little, and returns the outcome. Throws
   * only for bugs.
   */
  send(change: Change, sendContext: SendContext): Promise<SendOutcome>;
  /**
   * Finds the outcome of a change that was sent and not answered: by reading, never by sending
   * again. Throws what the reading throws.
   */
  recover(change: Change, asked: Recovery): Promise<SendOutcome>;
  /**
   * Returns the row that follows from an acknowledged change; undefined: none is recorded any more.
   */
  acknowledge(
    before: RecordedRow | undefined,
    change: Change,
    ack: Acknowledged,
  ): RecordedRow | undefined;
}

/** The facts about one record that `decide` needs. Times are milliseconds since the epoch. */
export interface States<R extends Rows = Rows> {
  key: Key;
  /** The source records of this key, invalid ones included. */
  desired: readonly R['desired'][];
  recorded: R['recorded'] | undefined;
  /**
   * Recorded rows of other keys that are this record under a former name: the platform shows the
   * same id, or the source once gave that key the same id. `seen`: what the platform shows of that
   * key.
   */
  former: readonly { row: R['recorded']; seen: readonly R['observed'][] }[];
  /**
   * The other keys that the source now gives to the ids that once had this one. Empty while the
   * source names this key.
   */
  successors: readonly Successor<R>[];
  /** The platform records that are recorded under this key and have another one by now. */
  renamed: readonly Renamed<R>[];
  /**
   * Whether a source id that once had this key is missing from the source now. Looked up only where
   * there are successors, or where a whole reading names the key as gone; else false.
   */
  strays: boolean;
  /** The source ids that are known to have had this key. */
  origins: readonly string[];
  /** The parts of the record ('' for the whole) in which the platform refused a change. */
  parked: readonly string[];
  /** The entries of the do-not-contact list about this key or its source ids. */
  entries: readonly Entry[];
  /** The platform records of this key that were read. */
  observed: readonly R['observed'][];
  /**
   * listed: the platform was read for this key, and an empty `observed` means that it has no such
   * record. assumed: it was not, and what is recorded counts.
   */
  sight: 'listed' | 'assumed';
  /** Whether the reading of the source was certified complete. */
  certified: boolean;
  /** Whether the recorded rows were restored from a backup and nothing was listed since. */
  restored: boolean;
  /** How long the source has not named the record; undefined where that does not count. */
  absence: Absence | undefined;
  /** Whether absence does not count yet, because this run first announces a new default. */
  announces: boolean;
  /** Whether this run may delete: not in a first load, nor after an incomplete full listing. */
  mayDelete: boolean;
  /** When the reading of the platform began, by our clock. Later changes may be missing from it. */
  at: number;
  /** When that reading had ended, by our clock. */
  by: number;
  /** `by` by whichever clock is ahead, ours or the platform's. */
  latest: number;
  /** The parts that so many records lost at once that their loss is no opt-out. */
  lost: ReadonlySet<string>;
  /** The facts that are known of the platform. */
  facts: PlatformFacts;
}

/** A key that the source now gives to an id that had another key before. */
export interface Successor<R extends Rows = Rows> {
  desired: readonly R['desired'][];
  recorded: R['recorded'] | undefined;
  /** Whether the complete listing of this run lacks the recorded contact. */
  vanished: boolean;
}

type Next = 'desired' | 'recorded' | 'successors' | 'origins';

/**
 * A platform record that is recorded under one key and has another by now. The inherited fields are
 * about the key that it has now; `recorded` is set only where the source was not read as a whole.
 */
export interface Renamed<R extends Rows = Rows> extends Pick<States<R>, Next> {
  id: string;
  /** The record as this run read it; undefined: as it is recorded. */
  row: R['observed'] | undefined;
}

/** The result of `decide`. */
export interface Decision {
  changes: Change[];
  /** The row to record before anything is sent; undefined: nothing to record. */
  note: RecordedRow | undefined;
  /** The changes of the do-not-contact list. */
  news?: ListChanges;
  /** Whether the record was found on the platform, and the mirror owns it from now on. */
  adopts: boolean;
  /** The settings that keep the record from a change that would be made, each once. */
  stoppedBy?: readonly Stop[];
  /** The keys of recorded rows to drop. */
  forgets: Key[];
  problems: RecordProblem[];
}

/** A setting that keeps a record from being changed: contacts.protect, or policy.optIns: off. */
export type Stop = 'protect' | 'optIns';

/** The signals and facts with which a change is sent. */
export interface SendContext {
  /** Ends the wait before the request leaves. */
  signal: AbortSignal;
  /** Ends a request that is in flight. */
  abort: AbortSignal;
  /** Whether this run read the record recently enough before it sends the change. */
  seen: boolean;
  /** Returns the facts about the platform that are known at the moment. */
  facts(): PlatformFacts;
  /** Returns the row that is recorded at the moment. */
  recorded(): RecordedRow | undefined;
  /** Is awaited right before each attempt leaves. Throws NotSent to keep it from leaving. */
  leaves(): Promise<void>;
}

/** The knowledge about a record, and how recent it is, when a change is about to be sent. */
export interface KnownRecord {
  recorded: RecordedRow | undefined;
  /** Whether the platform was read recently enough to prove what the plan assumes of it. */
  fresh: boolean;
  /** Whether a complete listing is recent enough: it proves that of former names, too. */
  listed: boolean;
  /**
   * Whether the listing was incomplete and nothing else read this key: it may have more records.
   */
  partial: boolean;
  signal: AbortSignal;
}

/** The circumstances in which the outcome of an unanswered change is looked for. */
export interface Recovery {
  /**
   * Whether what the platform shows now may be what the person did: the change left too long ago or
   * in another run, or is an opt-out that was sent without a recent reading.
   */
  late: boolean;
  facts: PlatformFacts;
  /** The row that was recorded when the change was sent. It stays until the outcome is known. */
  recorded: RecordedRow | undefined;
  signal: AbortSignal;
}

/** A change that took effect, or is found to hold on the platform. */
export interface Acked {
  is: 'acked';
  /** The platform id of the record; undefined where the answer does not name it. */
  id: string | undefined;
  /** The record as the answer showed it; undefined if it did not show the whole record. */
  observed: ObservedRow | undefined;
  /** Whether the state was found there, so that nobody can tell if this request caused it. */
  found: boolean;
  /** Whether `observed` was read so late that parts of it may be later changes by others. */
  late?: boolean;
  /** Whether the change may have been made and taken back by the person since. */
  undone?: boolean;
  /**
   * Whether the opt-out shown was made by this request or by nobody. It does not count as theirs.
   */
  doubtful?: boolean;
  /** The evidence that the answer gives about the platform. */
  evidence?: Evidence | undefined;
  /** Whether the record has another key on the platform by now. */
  renamed?: boolean;
}

/**
 * An acknowledgement as it is recorded.
 *
 *   at          when the change was acknowledged, by our clock, in milliseconds since the epoch
 *   latest      the same by whichever clock is ahead, ours or the platform's
 *   wanted      the fingerprint of the only source record of the key; undefined: none, or several
 *   elsewhere   whether the change was sent under another key of the same record
 */
export type Acknowledged = Acked & {
  at: number;
  latest?: number;
  wanted?: string | undefined;
  elsewhere?: true;
};

/**
 * The outcome of a change.
 *
 *   acked      it took effect
 *   stale      what it was planned on no longer holds. `observed` is all that the platform has
 *              under its key, or the key it is `about`; undefined: the platform was not asked
 *   rejected   the platform refused it
 *   unsent     it certainly did not take effect
 *   held       we kept it from leaving
 *   unknown    it may have taken effect
 *   stopped    no more of this scope may be sent: of the run (the key is refused), of the part that
 *              the change is about, or of the route
 */
export type SendOutcome =
  | Acked
  | { is: 'stale'; observed: ObservedRow[] | undefined; why: string; about?: Key }
  | { is: 'rejected'; status: number; reason: string; fix: string }
  | { is: 'unsent'; why: string }
  | { is: 'held'; why: string }
  | { is: 'unknown'; why: string }
  | { is: 'stopped'; scope: 'run' | 'part'; why: string }
  | { is: 'stopped'; scope: 'route'; route: string; why: string };

/** Returns an acknowledgement with these fields; without them it says only that it is done. */
export function acked(fields: Partial<Omit<Acked, 'is'>> = {}): Acked {
  return { is: 'acked', id: undefined, observed: undefined, found: false, ...fields };
}
