/** Holds what is fixed when a run begins, and what the run has found so far. */
import type { RecordType } from '../../records/record-type.ts';
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
import type { RecordTypeName } from '../../domain/record.ts';
import type { Forecast } from '../report/duration-forecast.ts';
import type { FullCode } from '../report/full-reasons.ts';
import type { HoldReason } from '../report/guard-rules.ts';
import type { Plan } from '../report/run-summary.ts';
import type { Approval } from '../../store/guards/plan-approvals.ts';
import type { Unread } from '../../store/tables/retry-later.ts';
import type { PersonLock } from './person-locks.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import { type Findings, noFindings } from './run-findings.ts';
import type { Mirror, MirrorPart, RunOptions } from './mirror-context.ts';
import type { RunContext } from './run-context.ts';
import type { RunTally } from './run-tally.ts';

/**
 * Holds what is fixed when a run begins. Only the contents of the tally and the circuit breaker
 * change during the run.
 */
export interface Started {
  readonly mirror: Mirror;
  readonly options: RunOptions;
  readonly run: RunContext;
  /** The record types that the run began with, each with its source. */
  readonly begun: readonly MirrorPart[];
  /** The positions from which incremental readings continue, for the record types that have one. */
  readonly cursors: ReadonlyMap<RecordType, string>;
  /** Why a record type has none. */
  readonly cursorless: ReadonlyMap<RecordType, FullCode>;
  /** Whether another run held a person's lock when this one began. */
  readonly supersededAtStart: boolean;
  /** The number of runs about all people that had ended when this one began. */
  readonly endedBefore: number;
  /** The approvals in force when the run began, including the one passed to the run itself. */
  readonly approvals: Approval[];
  /** The hashes of the rejections from before the run began. */
  readonly rejections: readonly string[];
  /** Whether the run itself approved an earlier plan when it began. */
  readonly hasApproved: boolean;
  readonly tally: RunTally;
  readonly breaker: CircuitBreaker;
  /** The reasons for which the run counts as failed from the start, one line each. */
  readonly reasons: readonly Problem[];
  /** Remarks for the summary, one line each. */
  readonly notes: readonly Problem[];
}

/**
 * Holds what the run has found so far. Each step returns its findings, which are stored here
 * immediately, because a failed run still reports what it found before the failure.
 */
export interface RunState extends Started {
  /**
   * The context as the run began. A run about one record finds out which person the record belongs
   * to when it reads the record.
   */
  run: RunContext;
  /** The record types still in the run; one that cannot be read or listed is left out. */
  parts: readonly MirrorPart[];
  /** The lock of the person that the run is about. */
  lock: PersonLock | undefined;
  known: Map<RecordType, Findings>;
  /** The known problems of records that an incremental reading does not contain. */
  unread: Map<RecordTypeName, Unread>;
  reasons: Problem[];
  notes: Problem[];
  /** Why the run compares everything, or reads the whole source. */
  because: FullCode[];
  plan: Plan | undefined;
  /** The estimated duration of the plan; of what the guards let pass once that is known. */
  forecast: Forecast | undefined;
  /** Whether it is. */
  isForeseen: boolean;
  /** The numbers of changes that the guards have let pass. */
  passed: Record<RecordTypeName, number>;
  failure: ExpectedError | undefined;
  readonly review: ReviewState;
}

/**
 * Holds what the guards remember from one round of a run to the next. Only the guards write to it.
 */
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

/** Creates the state with what is known at the start and nothing found yet. */
export function stateOf(started: Started): RunState {
  return {
    ...started,
    parts: started.begun,
    lock: undefined,
    known: new Map(),
    unread: new Map(),
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

/** Returns what the run has found for a record type so far. */
export function findingsOf({ known }: Pick<RunState, 'known'>, type: RecordType): Findings {
  return known.get(type) ?? noFindings;
}

/**
 * Leaves a record type out of the run, and records the reason. Throws the error instead if it ends
 * the whole run: a refused key, an interruption, a bug, or no other record type left.
 */
export function excludePart(state: RunState, part: MirrorPart, error: unknown): void {
  const isLast = state.parts.length === 1;
  const endsAll = error instanceof Interrupted || error instanceof Busy || isRefusedKey(error);
  if (isLast || endsAll || !isExpected(error)) throw error;
  state.reasons.push({
    code: 'source-left-out',
    reason: `${part.type.name}s are left out: ${error.message}`,
  });
  state.parts = state.parts.filter((other) => other !== part);
}

function isRefusedKey(error: unknown): boolean {
  return error instanceof Rejected && error.status === 401;
}
