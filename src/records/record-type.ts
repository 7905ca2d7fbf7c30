/**
 * Defines what a record type is: contact, template. Each has a folder here.
 *
 * The contract:
 * - `desire` brings one source record into canonical form; it never throws, a bad one is `invalid`.
 * - `list` reads one page of the platform; canonical forms of equal records are equal texts.
 * - `decide` is pure: what to do with one record, from the three things known about it. Called
 *   twice on an unchanged world the second decision holds no changes.
 * - `look` is asked right before a change is sent: what it was planned on may no longer hold.
 * - `send` sends one change, reads back where an answer needs it, and names the outcome; it throws
 *   only for bugs. `recover` finds the outcome of a change that was sent and not answered, by
 *   reading, never by sending again; it throws what that reading throws.
 * - `acknowledge` gives the recorded row that follows from a change; undefined = gone.
 * - `capabilities` are what a type can do beside that; all of `doNotContact` is pure.
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

/** The contract of a record type; see above. */
export interface RecordType {
  readonly name: RecordTypeName;
  /** The source fields it needs to find. */
  readonly fields: readonly string[];
  /** Phases of its changes, in the order they are sent. */
  readonly phases: readonly number[];
  /** Whether a run without a certified reading of the source has failed: only opt-outs are sent. */
  readonly needsCertificate: boolean;
  /** Whether a platform record that is renamed there stays the same: it has no key of its own. */
  readonly keyedById: boolean;
  /**
   * In which runs recorded records that the source no longer names are decided upon one by one.
   */
  readonly decidesAbsent: Readonly<Record<'full' | 'fast', boolean>>;
  readonly capabilities: Capabilities;
  /** The body of a source record that cannot be read: it says nothing. */
  readonly unreadBody: string;
  desire(value: Record<string, unknown>, place: string): DesiredRow;
  list(page: ListingPage, signal: AbortSignal): Promise<Page>;
  decide(states: States): Decision;
  /** Returns the platform's route that an operation uses; a refused route stops alone. */
  route(op: Op): string;
  /** Returns the route that `look` reads by. */
  lookRoute(op: Op): string;
  look(change: Change, known: KnownRecord): Promise<SendOutcome | undefined>;
  send(change: Change, sendContext: SendContext): Promise<SendOutcome>;
  recover(change: Change, asked: Recovery): Promise<SendOutcome>;
  acknowledge(
    before: RecordedRow | undefined,
    change: Change,
    ack: Acknowledged,
  ): RecordedRow | undefined;
}

/** All that is known about one record when it is decided upon. */
export interface States<R extends Rows = Rows> {
  key: Key;
  /** Every source record of this key, broken ones too. */
  desired: readonly R['desired'][];
  recorded: R['recorded'] | undefined;
  /**
   * Recorded rows of other keys that are this record under a former name: the platform shows the
   * same id, or the source once gave that key the same id. `seen`: what the platform shows of it
   * now, if it was listed.
   */
  former: readonly { row: R['recorded']; seen: readonly R['observed'][] }[];
  /**
   * The other keys that the source has by now for what once had this one, and what is wanted and
   * recorded of them: only when nothing in the reading has this key any more.
   */
  successors: readonly Successor<R>[];
  /** Platform records that are recorded under this name, and have another name there by now. */
  renamed: readonly Renamed<R>[];
  /**
   * Whether something that once had this key is nowhere in the source by now: told where there are
   * successors, and where a whole reading says that all records of this key are gone.
   */
  strays: boolean;
  /** Every id of the source that was known under this key before. */
  origins: readonly string[];
  /** Parts of the record, '' for the whole, of which the platform refused a change. */
  parked: readonly string[];
  /** The do-not-contact entries of the record, under this name or the ids of its source. */
  entries: readonly Entry[];
  /** Every platform record of this key. */
  observed: readonly R['observed'][];
  /**
   * listed: `observed` was read, empty means absent. assumed: nothing was read, take what is
   * recorded.
   */
  sight: 'listed' | 'assumed';
  /** Whether the reading of the source was certified complete. */
  certified: boolean;
  /** Whether what is recorded was put back from a backup, and nothing was listed since. */
  restored: boolean;
  /** For how long the source has not named it; undefined where that counts for nothing. */
  absence: Absence | undefined;
  /** Whether nothing is concluded from absence yet: a new default is only announced. */
  announces: boolean;
  /** Whether this run may delete: it is no first load, and a full one listed the whole platform. */
  mayDelete: boolean;
  /** When the platform began to show this, by our clock; what is true now may be younger. */
  at: number;
  /** When it had ended; what it shows was so by then. */
  by: number;
  /** The same by whichever clock shows more, ours or the platform's. */
  latest: number;
  /** Parts that so many records have lost at once that nothing is concluded from it. */
  lost: ReadonlySet<string>;
  /** The facts that are known of the platform itself. */
  facts: PlatformFacts;
}

/** Another key that the source has by now for what once had this one. */
export interface Successor<R extends Rows = Rows> {
  desired: readonly R['desired'][];
  recorded: R['recorded'] | undefined;
  /** Whether this run's whole listing lacks what is recorded. */
  vanished: boolean;
}

type Next = 'desired' | 'recorded' | 'successors' | 'origins';

/**
 * row: as it was read; undefined: as it is recorded. The rest is of the name that it has now, and
 * `recorded` only where the source was not read wholly.
 */
export interface Renamed<R extends Rows = Rows> extends Pick<States<R>, Next> {
  id: string;
  row: R['observed'] | undefined;
}

/** The decision about one record. */
export interface Decision {
  changes: Change[];
  /** The row to record already before anything is sent. */
  note: RecordedRow | undefined;
  /** The changes of the do-not-contact list. */
  news?: ListChanges;
  adopts: boolean;
  /** The settings that keep the record from a change that is called for, each once. */
  stoppedBy?: readonly Stop[];
  /** Recorded rows to drop. */
  forgets: Key[];
  problems: RecordProblem[];
}

/** A setting that keeps a record from being changed: contacts.protect, or policy.optIns: off. */
export type Stop = 'protect' | 'optIns';

/** How a change may leave. */
export interface SendContext {
  /** Ends the waiting before it leaves. */
  signal: AbortSignal;
  /** Gives it up under way. */
  abort: AbortSignal;
  /** Whether this run was shown the record, and not too long ago. */
  seen: boolean;
  /** Returns the facts that are known of the platform at that moment. */
  facts(): PlatformFacts;
  /** Returns the row that is recorded at that moment. */
  recorded(): RecordedRow | undefined;
  /** Waited for right before it leaves; rejects with NotSent to keep it. */
  leaves(): Promise<void>;
}

/** How fresh our knowledge is when a change is about to be sent. */
export interface KnownRecord {
  recorded: RecordedRow | undefined;
  /**
   * Whether the platform was read recently enough to prove what the plan assumed of this record.
   */
  fresh: boolean;
  /** Whether that is so of every record, former names included: a listing proves it. */
  listed: boolean;
  /** Whether the platform was listed, and not wholly: others of this key may have been missed. */
  partial: boolean;
  signal: AbortSignal;
}

/** How a lost outcome is asked for. */
export interface Recovery {
  /**
   * Whether the change left so long ago, in another process, or on what an earlier run had seen,
   * that what is shown now may be what the person did.
   */
  late: boolean;
  facts: PlatformFacts;
  /** The row recorded when the change was sent, which stays until its outcome is known. */
  recorded: RecordedRow | undefined;
  signal: AbortSignal;
}

/** The change was done. */
export interface Acked {
  is: 'acked';
  /** The platform's id of the record. */
  id: string | undefined;
  /** The record as the answer showed it, if it showed all of it. */
  observed: ObservedRow | undefined;
  /** Found there: nobody can tell that this request made it. */
  found: boolean;
  /** Read so late that not all of it need be the request's doing. */
  late?: boolean;
  /** It may have been done, and was taken back by the person since. */
  undone?: boolean;
  /** An opt-out that is shown may be this request's doing, or nobody's: it is no departure. */
  doubtful?: boolean;
  /** The evidence that the answer gives of the platform itself. */
  evidence?: Evidence | undefined;
  renamed?: boolean;
}

/**
 * `wanted`: what the source says of the record by now, where it says one thing (a fingerprint).
 * `elsewhere`: it was done under another name. `latest`: `at` by whichever clock shows more.
 */
export type Acknowledged = Acked & {
  at: number;
  latest?: number;
  wanted?: string | undefined;
  elsewhere?: true;
};

/**
 * The outcome of a change. stale: it was planned on something that no longer holds, `observed` is
 * all that holds now of its key, or of the key it is `about`; undefined: the platform was not
 * asked. unsent: certainly nothing happened. held: we kept it ourselves. unknown: something may
 * have happened. stopped: nothing more of that scope may be sent, 'run' for a refused key.
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

/** Returns the outcome of a request whose answer says no more than that it was done. */
export function acked(fields: Partial<Omit<Acked, 'is'>> = {}): Acked {
  return { is: 'acked', id: undefined, observed: undefined, found: false, ...fields };
}
