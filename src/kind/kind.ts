/**
 * A kind of record: contact, template. One folder here per kind.
 *
 * The contract:
 * - `desire` brings one source record into canonical form; it never throws, a bad one is `invalid`.
 * - `list` reads one page of the platform; canonical forms of equal records are equal texts.
 * - `decide` is pure: what to do with one record, from the three things known about it. Called
 *   twice
 *   on an unchanged world the second decision holds no changes.
 * - `look` is asked right before a change is sent: what it was planned on may no longer hold.
 * - `send` sends one change, reads back where an answer needs it, and names the outcome; it throws
 *   only for bugs. `recover` finds the outcome of a change that was sent and not answered, by
 *   reading, never by sending again; it throws what that reading throws.
 * - `acknowledge` gives the recorded row that follows from an acknowledged change; undefined =
 *   gone.
 */
import type { Change, Op } from '../model/change.ts';
import type { Problem } from '../model/problem.ts';
import type {
  Absence,
  DesiredRow,
  Key,
  KindName,
  ObservedRow,
  RecordedRow,
} from '../model/record.ts';

export interface Kind {
  readonly name: KindName;
  /** The source fields it needs to find. */
  readonly fields: readonly string[];
  /** Phases of its changes, in the order they are sent. */
  readonly phases: readonly number[];
  /** Whether a run without a certified reading of the source has failed: only opt-outs are sent. */
  readonly needsCertificate: boolean;
  /**
   * Whether a platform record that is renamed there stays the same record: it has no key of its
   * own.
   */
  readonly keyedById: boolean;
  /**
   * In which runs recorded records that the source no longer names are decided upon one by one.
   */
  readonly decidesAbsent: Readonly<Record<'full' | 'fast', boolean>>;
  /** Whether it matters for how long a record has not been named. */
  readonly countsAbsence: boolean;
  desire(value: Record<string, unknown>, place: string): DesiredRow;
  list(page: PageQuery, signal: AbortSignal): Promise<Page>;
  decide(states: States): Decision;
  /** Which of the platform's routes an operation uses; a refused route stops alone. */
  route(op: Op): string;
  /** The route that `look` reads by. */
  lookRoute(op: Op): string;
  look(change: Change, known: Known): Promise<Outcome | undefined>;
  send(change: Change, passage: Passage): Promise<Outcome>;
  recover(change: Change, asked: Recovery): Promise<Outcome>;
  acknowledge(
    before: RecordedRow | undefined,
    change: Change,
    ack: Acked & { at: number },
  ): RecordedRow | undefined;
}

export interface PageQuery {
  page: number;
  limit: number;
}

export interface Page {
  rows: ObservedRow[];
  /** What the platform says there are; never trusted alone. */
  total: number;
  /** When the platform answered, by its own clock, in milliseconds since the epoch. */
  date: number | undefined;
}

/** What is known about one record when it is decided upon. */
export interface States {
  key: Key;
  /** Every source record of this key, broken ones too. */
  desired: readonly DesiredRow[];
  recorded: RecordedRow | undefined;
  /**
   * Recorded rows of other keys that are this record under a former name: the platform shows the
   * same id, or the source once gave that key the same id. `seen`: what the platform shows of it
   * now, if it was listed.
   */
  former: readonly { row: RecordedRow; seen: readonly ObservedRow[] }[];
  /** Every platform record of this key. */
  observed: readonly ObservedRow[];
  /**
   * listed: `observed` was read, empty means absent. assumed: nothing was read, take what is
   * recorded.
   */
  sight: 'listed' | 'assumed';
  /** Whether the reading of the source was certified complete. */
  certified: boolean;
  /** For how long the source has not named it; undefined where that counts for nothing. */
  absence: Absence | undefined;
  /** Whether this run may delete: it has listed the platform wholly, and is no first load. */
  mayDelete: boolean;
  /** When the platform began to show this, by our clock; what is true now may be younger. */
  at: number;
  /** When it had ended; what it shows was so by then. */
  by: number;
}

export interface Decision {
  changes: Change[];
  /** What is known already, before anything is sent. */
  note: RecordedRow | undefined;
  adopts: boolean;
  /** Recorded rows to drop. */
  forgets: Key[];
  problems: Problem[];
}

/** How a change may leave. */
export interface Passage {
  /** Ends the waiting before it leaves. */
  signal: AbortSignal;
  /** Gives it up under way. */
  abort: AbortSignal;
  /** Called right before it leaves; throws Held to keep it. */
  leaves(): void;
}

/** How fresh our knowledge is when a change is about to be sent. */
export interface Known {
  recorded: RecordedRow | undefined;
  /**
   * Whether the platform was read recently enough to prove what the plan assumed of this record.
   */
  fresh: boolean;
  /** Whether the platform was listed, and not wholly: others of this key may have been missed. */
  partial: boolean;
  signal: AbortSignal;
}

/** How a lost outcome is asked for. */
export interface Recovery {
  /**
   * Whether the change left so long ago, or in another process, that what is shown now may be what
   * the person made of it since.
   */
  late: boolean;
  signal: AbortSignal;
}

export interface Acked {
  is: 'acked';
  /** The platform's id of the record. */
  id: string | undefined;
  /** What the platform's answer showed, when it showed the whole record. */
  observed: ObservedRow | undefined;
  /** Found there already, rather than made by this request. */
  found: boolean;
  /** Read so late that not all of it need be the request's doing. */
  late?: boolean;
  /** It may have been done, and was taken back by the person since. */
  undone?: boolean;
}

/**
 * What came of a change. stale: it was planned on something that no longer holds, `observed` is
 * all that holds now of its key, or of the key it is `about`. unsent: certainly nothing happened.
 * held: we kept it ourselves. unknown: something may have happened. stopped: nothing more of that
 * scope may be sent, 'run' for a refused key.
 */
export type Outcome =
  | Acked
  | { is: 'stale'; observed: ObservedRow[]; why: string; about?: Key }
  | { is: 'rejected'; status: number; reason: string; fix: string }
  | { is: 'unsent'; why: string }
  | { is: 'held'; why: string }
  | { is: 'unknown'; why: string }
  | { is: 'stopped'; scope: 'run' | 'part'; why: string }
  | { is: 'stopped'; scope: 'route'; route: string; why: string };

/** The acknowledgement of a request whose answer says no more than that it was done. */
export function acked(fields: Partial<Omit<Acked, 'is'>> = {}): Acked {
  return { is: 'acked', id: undefined, observed: undefined, found: false, ...fields };
}
