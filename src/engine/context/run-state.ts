/**
 * Holds what is fixed when a run begins, and what it has found: as a whole, and of people and of
 * templates by reading their sources and by listing the platform.
 */
import type { CanaryBook } from '../../domain/guards/canary.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import {
  Busy,
  type ExpectedError,
  Interrupted,
  isExpected,
  type Problem,
  Rejected,
} from '../../domain/errors.ts';
import { type RecordTypeName, recordTypes } from '../../domain/record.ts';
import type { Forecast } from '../report/duration-forecast.ts';
import type { FullCode, Plan } from '../report/run-summary.ts';
import type { HoldReason } from '../report/guard-rules.ts';
import type { PlanDecision } from '../../store/holds/holds.ts';
import type { Unread } from '../../store/tables/known-problems.ts';
import type { PersonLock } from './person-locks.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { Mirror, RunOptions } from './mirror-context.ts';
import type { RunContext } from './run-context.ts';
import type { RunTally } from './run-tally.ts';
import type { UnknownWords } from '../../domain/unknown-words.ts';

/** The cursor of the CRM, or why there is none. */
export interface SourceCursor {
  cursor?: string;
  without?: FullCode;
}

/** What is fixed when a run begins, but for the contents of the tally and the breaker. */
export interface Started {
  readonly mirror: Mirror;
  readonly options: RunOptions;
  readonly run: RunContext;
  /** What the run began with: people, templates, or both. */
  readonly begun: Pick<Mirror, 'contacts' | 'templates'>;
  /** Where an incremental reading of the CRM continues, or why there can be none. */
  readonly cursor: SourceCursor;
  /** Whether another run held a person's lock when this one began. */
  readonly supersededAtStart: boolean;
  /** The number of runs about all people that had ended when this one began. */
  readonly endedBefore: number;
  /** The approvals in force when the run began, including the one passed to the run itself. */
  readonly approvals: PlanDecision[];
  /** Whether the run itself approved an earlier plan when it began. */
  readonly hasApproved: boolean;
  readonly tally: RunTally;
  readonly breaker: CircuitBreaker;
  readonly reasons: readonly Problem[];
  readonly notes: readonly Problem[];
}

/**
 * What the run has found so far. It is stored at once, so that a failed run reports it, too. Of
 * `contacts` and `templates`, what cannot be read or listed is left out.
 */
export interface RunState extends Started, Pick<Mirror, 'contacts' | 'templates'> {
  /** The context, which for a run about one record learns the person as it reads the record. */
  run: RunContext;
  lock: PersonLock | undefined;
  known: Map<RecordTypeName, Findings>;
  /** The known problems of people that an incremental reading does not contain. */
  unread: Unread | undefined;
  reasons: Problem[];
  notes: Problem[];
  /** Why the run compares everything, or reads the whole source. */
  because: FullCode[];
  plan: Plan | undefined;
  /** The estimated duration of the plan; of what the guards let pass once that is known. */
  forecast: Forecast | undefined;
  isForeseen: boolean;
  /** The numbers of changes that the guards have let pass. */
  passed: Record<RecordTypeName, number>;
  failure: ExpectedError | undefined;
  readonly review: ReviewState;
}

/** What the guards, and only they, remember from one round of a run to the next. */
export interface ReviewState {
  /** The guard classes with changes that await approval, and why. */
  held: Map<GuardClass, HoldReason>;
  /** The guard classes that hold people whose opt-out the CRM no longer states, and why. */
  withdrawn: Map<GuardClass, HoldReason>;
  /** The guard classes that rules withhold, and what the approver reads. */
  asked: Map<GuardClass, string>;
  /** The canaries of the run; undefined if it has none. */
  canaries: CanaryBook | undefined;
  /** The number of people with stated opt-outs awaiting approval who were not read by this run. */
  unplanned: number;
  /** The number of records that a guard class covers, once it has been counted. */
  population: Partial<Record<GuardClass, number>>;
  /** The hash under which a person approves what is withheld; undefined before the guards. */
  heldAs: string | undefined;
  /** How often the guards have reviewed the plan. */
  rounds: number;
}

/** Returns the state of a run that has found nothing yet. */
export function stateOf(started: Started): RunState {
  return {
    ...started,
    ...started.begun,
    lock: undefined,
    known: new Map(),
    unread: undefined,
    reasons: [...started.reasons],
    notes: [...started.notes],
    because: started.run.mode === 'full' ? [...(started.options.because ?? [])] : [],
    plan: undefined,
    forecast: undefined,
    isForeseen: false,
    passed: { contact: 0, template: 0 },
    failure: undefined,
    review: {
      held: new Map(),
      withdrawn: new Map(),
      asked: new Map(),
      canaries: undefined,
      unplanned: 0,
      population: {},
      heldAs: undefined,
      rounds: 0,
    },
  };
}

/** Returns what was found of people or templates, whether or not they are in the run. */
export function findingsOf({ known }: Pick<RunState, 'known'>, kind: RecordTypeName): Findings {
  return known.get(kind) ?? noFindings;
}

/** Returns what is still in the run. */
export function kindsIn(state: Pick<RunState, 'contacts' | 'templates'>): RecordTypeName[] {
  return recordTypes.filter((kind) => state[`${kind}s`]);
}

/** Leaves people or templates out of the run, and says why. Throws if that ends the run. */
export function exclude(state: RunState, kind: RecordTypeName, error: unknown): void {
  const isLast = kindsIn(state).length === 1;
  const isRefusedKey = error instanceof Rejected && error.status === 401;
  const endsAll = error instanceof Interrupted || error instanceof Busy || isRefusedKey;
  if (isLast || endsAll || !isExpected(error)) throw error;
  state.reasons.push({
    code: 'source-left-out',
    reason: `${kind}s are left out: ${error.message}`,
  });
  state[`${kind}s`] = undefined;
}

export interface PlatformListing {
  /** Whether it is proven that a record missing from the listing does not exist on the platform. */
  complete: boolean;
  size: number;
  /** When the listing began by our clock, in milliseconds since the epoch. */
  startedAt: number;
  endedAt: number;
  /** The number of the newest entry of the do-not-contact list when the listing began. */
  knownEntries: number;
  /** When it began by the platform's clock; undefined if the response had no Date header. */
  platformStartedAt: number | undefined;
  /** The organization that the platform names as the owner; undefined if it names none. */
  organization: string | undefined;
}

/** The sizes of one reading of a source. */
export interface Sizes {
  valid: number;
  /** The number of keys whose records request something, such as a subscription or a template. */
  wanted: number;
  invalid: number;
  /** The number of records that identify no person. */
  skipped: number;
  /** The number of recorded records that this complete reading is the first to lack. */
  missing: number;
  /** Words in the records that the configuration does not define. */
  unknown: readonly UnknownWords[];
  /** The columns that hold nothing but dates; in an incremental reading, those remembered. */
  dateColumns: readonly string[];
}

export interface Findings {
  certified: boolean;
  /** Whether the reading contains every record of the source, rather than only changed ones. */
  whole: boolean;
  /** Where the next incremental reading continues; undefined if the source cannot tell. */
  cursor: string | undefined;
  /** Undefined if nothing was listed, as in a fast run. */
  listing: PlatformListing | undefined;
  /** Channels that so many people lost at once that the loss does not count as opt-outs. */
  lost: ReadonlySet<string>;
  /** The name by which the source identifies this reading; '' if nothing was read. */
  reading: string;
  sizes: Sizes;
  still(): boolean;
  /** Whether this run counts towards how long people have been missing from the CRM. */
  absenceCounts: boolean;
}

/** The findings about what was not read. */
export const noFindings: Findings = {
  certified: false,
  whole: false,
  cursor: undefined,
  listing: undefined,
  lost: new Set(),
  reading: '',
  sizes: { valid: 0, wanted: 0, invalid: 0, skipped: 0, missing: 0, unknown: [], dateColumns: [] },
  still: () => false,
  absenceCounts: false,
};
