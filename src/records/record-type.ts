/**
 * The contract of a record type: contact or template. Each type has a folder here.
 *
 * A run calls `desire` for each source record, `list` for each page of the platform, and `decide`
 * for each record. For each change it calls `look`, `send` and `acknowledge`; it calls `recover`
 * instead if a change was sent and got no response.
 */
import type { Change, Op, DoneChange } from '../domain/change.ts';
import type { Entry, ListChanges } from '../domain/do-not-contact.ts';
import type { RecordProblem } from '../domain/record-problem.ts';
import type { Evidence, PlatformFacts, NamedParts } from './platform-facts.ts';
import type {
  Absence,
  DesiredRow,
  Key,
  ObservedRow,
  RecordedRow,
  RecordTypeName,
  Rows,
} from '../domain/record.ts';
import type { Capabilities, Settled, SettlementAsked } from './capabilities.ts';
import type { CanaryBound } from '../domain/guards/canary.ts';
import type { Answer } from '../domain/exchange.ts';
import {
  NotSent,
  Interrupted,
  isExpected,
  RateLimited,
  Rejected,
  Unavailable,
} from '../domain/errors.ts';

/** One record type. A function throws platform errors only if its comment states that. */
export interface RecordType {
  readonly name: RecordTypeName;
  readonly fields: readonly string[];
  /** The phases of the type's changes, in sending order. */
  readonly phases: readonly number[];
  /** Whether an incomplete reading of the source fails the run, so that it sends only opt-outs. */
  readonly needsCertificate: boolean;
  /** Whether the platform id identifies the record, whatever its name on the platform. */
  readonly keyedById: boolean;
  /** Whether full and fast runs decide about recorded records that the source lacks. */
  readonly decidesAbsent: Readonly<Record<'full' | 'fast', boolean>>;
  readonly capabilities: Capabilities;
  /** The body of a source record that cannot be read. It states nothing. */
  readonly unreadBody: string;
  /** Returns a source record in canonical form, with `invalid` set if unusable. Never throws. */
  desire(value: Record<string, unknown>, place: string): DesiredRow;
  /** Returns a page of canonical forms, equal for equal records. Throws the request's errors. */
  list(page: ListingPage, signal: AbortSignal): Promise<Page>;
  /** Returns what to do about one record. Pure; nothing, once its changes are acknowledged. */
  decide(states: States): Decision;
  /** Returns the inverse of the changes that an earlier run made to one record. It is pure. */
  undo(states: States, undoing: Undoing): Undone;
  /** Returns why a change is planned, in the words of the rule that decided; '' without one. */
  reason(change: Change, rule: string | null): string;
  /** Decides whether an operator may settle a conflict; undefined for a type without channels. */
  settle?(states: States, asked: SettlementAsked): Settled;
  /** Returns the route of an operation. A refused one stops only the changes that use it. */
  route(op: Op): string;
  /** Returns the route that `look` reads for an operation. */
  lookRoute(op: Op): string;
  /**
   * Checks immediately before a change is sent whether the plan's assumptions still hold. Returns
   * undefined if they do, otherwise the outcome of the change. Throws only unexpected errors.
   */
  look(change: Change, known: KnownRecord): Promise<SendOutcome | undefined>;
  /** Sends a change, reading back if needed. Throws only unexpected errors. */
  send(change: Change, sendContext: SendContext): Promise<SendOutcome>;
  /** Finds the outcome of a silent change by reading. Throws the errors of the read. */
  recover(change: Change, asked: Recovery): Promise<SendOutcome>;
  /** Returns what is wrong some time after a change of an earlier run, if anything. Pure. */
  readBack(
    change: { op: Op; part: string; target: string | null },
    now: { rows: readonly ObservedRow[]; recorded: RecordedRow | undefined },
  ): CanaryBound | undefined;
  /** Returns the row that follows from an acknowledged change, or undefined if none remains. */
  acknowledge(
    before: RecordedRow | undefined,
    change: Change,
    ack: Acknowledged,
  ): RecordedRow | undefined;
}

/** The facts about one record that `decide` needs. Times are in milliseconds since the epoch. */
export interface States<R extends Rows = Rows> {
  key: Key;
  /** The source records with this key, including invalid ones. */
  desired: readonly R['desired'][];
  recorded: R['recorded'] | undefined;
  /**
   * Recorded rows with other keys that are this record under a former name: the platform shows the
   * same id, or the source once gave that key the same id. `seen`: what the platform shows for that
   * key.
   */
  former: readonly { row: R['recorded']; seen: readonly R['observed'][] }[];
  /** Other keys that the source gives to this key's ids now; empty while it has the key. */
  successors: readonly Successor<R>[];
  /** The platform records that are recorded under this key and now have another one. */
  renamed: readonly Renamed<R>[];
  /**
   * Whether a source id that once had this key is missing from the source now. Looked up only if
   * there are successors, or if the key is gone according to a complete reading; otherwise false.
   */
  strays: boolean;
  /** The source ids that are known to have had this key. */
  origins: readonly string[];
  /** The parts for which a source record of this key, or one of these ids, has opted out. */
  statedOut: readonly string[];
  /** The parts of the record ('' for the whole record) in which the platform refused a change. */
  parked: readonly string[];
  /** The entries of the do-not-contact list about this key or its source ids. */
  entries: readonly Entry[];
  /** The platform records with this key that were read. */
  observed: readonly R['observed'][];
  /** listed: what was read is all there is. assumed: not read; the recorded state counts. */
  sight: 'listed' | 'assumed';
  certified: boolean;
  /** Whether the recorded rows were restored from a backup and nothing has been listed since. */
  restored: boolean;
  /** How long it has been missing from the source; undefined if that does not count. */
  absence: Absence | undefined;
  /** Whether this run may delete. False in a first load, and after an incomplete full listing. */
  mayDelete: boolean;
  /** When the reading of the platform began, by our clock. Later changes may be missing from it. */
  at: number;
  /** When that reading ended, by our clock. */
  by: number;
  /** The same time as `by`, by our clock or the platform's, whichever is ahead. */
  latest: number;
  /** The parts that so many records lost together that the loss does not count as an opt-out. */
  lost: ReadonlySet<string>;
  /** Whether the run is limited to other people. */
  unchosen?: true;
  /** The parts from which an operator opted out a record that is neither in the CRM nor ours. */
  unmanagedOut?: readonly string[];
  facts: PlatformFacts;
}

/** A key that the source now gives to an id that previously had another key. */
export interface Successor<R extends Rows = Rows> {
  desired: readonly R['desired'][];
  recorded: R['recorded'] | undefined;
  vanished: boolean;
  /** Everything known about the key, without successors of its own; undefined if not looked up. */
  states?: States<R> | undefined;
}

/**
 * A platform record that is recorded under one key and now has another. The fields that States has,
 * too, describe its current key; `recorded` is set only if the source was not read completely.
 */
export interface Renamed<R extends Rows = Rows> {
  desired: readonly R['desired'][];
  recorded: R['recorded'] | undefined;
  successors: readonly Successor<R>[];
  origins: readonly string[];
  id: string;
  /** The record as this run read it; undefined if it was not read. */
  row: R['observed'] | undefined;
}

/** The result of `decide`. */
export interface Decision {
  changes: Change[];
  /** The row to record before anything is sent; undefined if there is nothing to record. */
  note: RecordedRow | undefined;
  /** The changes to the do-not-contact list. */
  news?: ListChanges;
  /** Whether the record was found on the platform and is owned by the mirror from now on. */
  adopts: boolean;
  /** The settings that prevent a change to the record, each once. */
  stoppedBy?: readonly Stop[];
  forgets: Key[];
  problems: RecordProblem[];
}

export interface Undone {
  decision: Decision;
  cannot: NotUndone[];
}

/** A setting that prevents a change: contacts.protect, policy.optIns: off, or a sample. */
export type Stop = 'protect' | 'optIns' | 'sample';

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

/** A change that took effect, or whose effect was found on the platform. */
export interface Acked {
  is: 'acked';
  /** The platform id of the record; undefined if the response does not name it. */
  id: string | undefined;
  /** The record as shown in the response; undefined if not shown completely. */
  observed: ObservedRow | undefined;
  /** Whether the state was already there, so that it is unknown whether this request caused it. */
  found: boolean;
  /** Whether the state was there before anything was sent. */
  wasThere?: boolean;
  /** Whether `observed` was read so late that parts of it may be later changes by others. */
  late?: boolean;
  /** Whether the change may have been made and then undone by the person. */
  undone?: boolean;
  /** Whether the opt-out may be this request's or a default, and not the person's. */
  doubtful?: boolean;
  /** Whether a further change of the record follows at once. */
  more?: boolean;
  /** Why no test could be sent of what was written. */
  untested?: string | undefined;
  /** The evidence about the platform that the response contains. */
  evidence?: Evidence | undefined;
  /** Whether the record now has another key on the platform. */
  renamed?: boolean;
}

/**
 * An acknowledgement in the form in which it is recorded.
 *
 *   at          when the change was acknowledged, by our clock, in milliseconds since the epoch
 *   latest      the same time by our clock or the platform's, whichever is ahead
 *   wanted      the fingerprint of the key's only source record; undefined if none or several
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
 *   stale      the plan's assumptions no longer hold. `observed` is all that the platform has under
 *              its key, or the key it is `about`; undefined if the platform was not read. `undone`:
 *              it may have been made and taken back since
 *   rejected   the platform refused it
 *   unsent     it certainly did not take effect
 *   held       we withheld it
 *   unknown    it may have taken effect
 *   stopped    nothing more in this scope may be sent: the run (the key is refused), the part that
 *              the change is about, or the route. `acted`: an earlier attempt may have taken effect
 */
export type SendOutcome =
  | Acked
  | { is: 'stale'; observed: ObservedRow[] | undefined; why: string; about?: Key; undone?: boolean }
  | { is: 'rejected'; status: number; reason: string; fix: string }
  | { is: 'unsent'; why: string }
  | { is: 'held'; why: string }
  | { is: 'unknown'; why: string }
  | { is: 'stopped'; scope: 'run' | 'part'; why: string; acted?: 'no' | 'maybe' }
  | { is: 'stopped'; scope: 'route'; route: string; why: string; acted?: 'no' | 'maybe' };

/** The outcome of a change whose plan no longer holds. */
export type Stale = Extract<SendOutcome, { is: 'stale' }>;

/** Returns an acknowledgement with these fields; without any, the change just took effect. */
export function acked(fields: Partial<Acked> = {}): Acked {
  return { is: 'acked', id: undefined, observed: undefined, found: false, ...fields };
}

/** The page to request: its number, starting at 1, and the maximum number of records on it. */
export interface ListingPage {
  page: number;
  limit: number;
}

/** A page about one mirror, at `/m/<mirror>/<path>`. */
export interface Page {
  rows: ObservedRow[];
  /** The total number of records, as stated by the platform. It is never trusted on its own. */
  total: number;
  /** When the platform responded, by its own clock, in milliseconds since the epoch. */
  date: number | undefined;
  /** The id of the organization that owns the records, if the platform states it. */
  organization: string | undefined;
  /** The parts that the records name; undefined if there are none. */
  parts?: NamedParts | undefined;
  /** The parts that the configuration does not name, once for each record that is in one. */
  others?: readonly { id: string; name: string }[];
}

/** A run that is undone, and its changes to one record, oldest first (docs/decisions/memory.md). */
export interface Undoing {
  run: string;
  changes: readonly DoneChange[];
  /**
   * When the newest change of any run to the record was acknowledged, by the platform's clock as
   * far as it is known, in milliseconds since the epoch.
   */
  doneAt?: number | undefined;
}

/** A change that cannot be undone, and why. */
export interface NotUndone {
  op: Op;
  part: string;
  /** A word for programs: the id of the rule or gate that forbids it, or one of undo's own. */
  rule: string;
  reason: string;
}

/** Says that a later run has changed the same part, or has undone the change. */
export function changedLater({ op, part, later = '', isUndone }: DoneChange): NotUndone {
  return isUndone
    ? { op, part, rule: 'already-undone', reason: `run ${later} has undone it already` }
    : {
        op,
        part,
        rule: 'changed-later',
        reason: `run ${later} has changed it since: undo that run first`,
      };
}

/** A test of one content of a template, to one address. */
export interface TestClaim {
  key: Key;
  content: string;
  to: string;
}

/** The signals and facts with which a change is sent. */
export interface SendContext {
  /** Ends the wait before the request is sent. */
  signal: AbortSignal;
  abort: AbortSignal;
  /** Whether this run read the record recently enough before sending the change. */
  seen: boolean;
  facts(): PlatformFacts;
  recorded(): RecordedRow | undefined;
  /** Is awaited immediately before each attempt is sent. Throws NotSent to prevent it. */
  leaves(): Promise<void>;
  /** Claims tests of templates, so that none is sent twice; undefined if nothing is remembered. */
  claims?: {
    /** Returns false if the test was claimed before. The claim is on disk when this returns. */
    claim(test: TestClaim): boolean;
    /** Gives the claim back, because the test was certainly not sent. */
    release(test: TestClaim): void;
  };
  /** Is called with the answer to each attempt. */
  answered?(answer: Answer): void;
}

/** Returns the result of `ask`, or the outcome of an expected error; throws any other. */
export async function settled<T>(ask: () => Promise<T | SendOutcome>): Promise<T | SendOutcome> {
  try {
    return await ask();
  } catch (error) {
    return outcomeOf(error);
  }
}

/** Returns the outcome of an outdated plan; `observed`: the records that have its key now. */
export function stale(observed: ObservedRow[], why: string): Stale {
  return { is: 'stale', observed, why };
}

/** Returns the outcome that reading shows; unknown if it fails. Throws unexpected errors. */
export async function afterwards(read: () => Promise<SendOutcome>): Promise<SendOutcome> {
  try {
    return await read();
  } catch (error) {
    if (isExpected(error)) return { is: 'unknown', why: error.message };
    throw error;
  }
}

/**
 * Returns the outcome that corresponds to an error of a request, if the record type has no rule of
 * its own (docs/decisions/journal-and-speed.md). Throws the error if there is none.
 *
 *   Rejected, 401          stopped: the run
 *   Rejected, 403          stopped: the route
 *   Rejected, otherwise    rejected
 *   Unavailable            unsent if the request certainly did not act, otherwise unknown
 *   RateLimited            stopped: the route
 *   NotSent, Interrupted   held
 */
export function outcomeOf(error: unknown): SendOutcome {
  if (error instanceof Rejected) {
    const { acted, message: why, route, status, fix } = error;
    if (status === 401) return { is: 'stopped', scope: 'run', why, acted };
    if (status === 403) return { is: 'stopped', scope: 'route', route, why, acted };
    const reason = error.why !== '' && error.why !== why ? `${why}: ${error.why}` : why;
    return { is: 'rejected', status, reason, fix };
  }
  if (error instanceof Unavailable) {
    return error.acted === 'no'
      ? { is: 'unsent', why: error.message }
      : { is: 'unknown', why: error.message };
  }
  if (error instanceof RateLimited) {
    return { is: 'stopped', scope: 'route', route: error.route, why: error.message };
  }
  if (error instanceof NotSent || error instanceof Interrupted) {
    return { is: 'held', why: error.message };
  }
  throw error;
}
