/** Declares the values that the steps of a run return. */
import type { CanaryBook } from '../../domain/guards/canary.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { ExpectedError, Problem } from '../../domain/errors.ts';
import { type Fault, type RecordTypeName, recordTypes } from '../../domain/record.ts';
import type { Forecast } from '../report/duration-forecast.ts';
import type { FullCode, Plan } from '../report/run-summary.ts';
import type { HoldReason } from '../../domain/guards/guard-limits.ts';
import type { PlanDecision } from '../../store/holds/holds.ts';
import type { Unread } from '../../store/tables/known-problems.ts';
import type { PersonLock } from './person-locks.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { Mirror, MirrorContacts, MirrorTemplates, RunOptions } from './mirror-context.ts';
import type { RunContext } from './run-context.ts';
import type { RunTally } from './run-tally.ts';
import type { UnknownWords } from '../../domain/unknown-words.ts';

/** The cursor of the CRM, or why there is none. */
export interface SourceCursor {
  cursor?: string;
  without?: FullCode;
}

/** The people and the templates that a run is about, without what cannot be read or listed. */
export interface RunParts {
  readonly contacts?: MirrorContacts | undefined;
  readonly templates?: MirrorTemplates | undefined;
}

/** Returns what is in the run. */
export function kindsIn(parts: RunParts): RecordTypeName[] {
  return recordTypes.filter((kind) => parts[`${kind}s`]);
}

/**
 * What is fixed when a run begins, and what it has found so far. Only run.ts writes it, and at
 * once, because a failed run reports it, too. The steps receive what they need, and return what
 * they find.
 */
export interface RunResults {
  readonly mirror: Mirror;
  readonly options: RunOptions;
  /** What the run began with: people, templates, or both. */
  readonly begun: RunParts;
  /** Where an incremental reading of the CRM continues, or why there can be none. */
  readonly cursor: SourceCursor;
  /** Whether another run held a person's lock when this one began. */
  readonly supersededAtStart: boolean;
  /** The number of runs about all people that had ended when this one began. */
  readonly endedBefore: number;
  /** Whether the run itself approved an earlier plan when it began. */
  readonly hasApproved: boolean;
  readonly tally: RunTally;
  readonly breaker: CircuitBreaker;
  /** The context, which for a run about one record learns the person as it reads the record. */
  run: RunContext;
  parts: RunParts;
  lock: PersonLock | undefined;
  known: Known;
  /** The known problems of people that an incremental reading does not contain. */
  unread: Unread | undefined;
  readonly reasons: Problem[];
  readonly notes: Problem[];
  /** Why the run compares everything, or reads the whole source. */
  readonly because: FullCode[];
  /** The plan of the first round. */
  plan: Plan | undefined;
  /** The estimated duration of the plan; of what the guards let pass once that is known. */
  forecast: Forecast | undefined;
  /** The numbers of changes that the guards have let pass. */
  passed: Record<RecordTypeName, number>;
  /** The approvals in force, including the one that was passed to the run itself. */
  approvals: readonly PlanDecision[];
  verdict: Verdict;
  failure: ExpectedError | undefined;
}

/** What the guards have found. Each round of a run continues with that of the round before. */
export interface Verdict {
  /** The guard classes with changes that await approval, and why. */
  readonly held: ReadonlyMap<GuardClass, HoldReason>;
  /** The guard classes that hold people whose opt-out the CRM no longer states, and why. */
  readonly withdrawn: ReadonlyMap<GuardClass, HoldReason>;
  /** The guard classes that rules withhold, and what the approver reads. */
  readonly asked: ReadonlyMap<GuardClass, string>;
  /** What the approver reads about each class with changes that await approval. */
  readonly reports: ReadonlyMap<GuardClass, Fault>;
  /** The canaries of the run; undefined if it has none. */
  readonly canaries: CanaryBook | undefined;
  /** The number of people with stated opt-outs awaiting approval who were not read by this run. */
  readonly unplanned: number;
  /** The number of records that a guard class covers, once it has been counted. */
  readonly population: Readonly<Partial<Record<GuardClass, number>>>;
  /** The hash under which a person approves what is withheld; undefined before the guards. */
  readonly heldAs: string | undefined;
  /** How often the guards have reviewed the plan. */
  readonly rounds: number;
}

export const noVerdict: Verdict = {
  held: new Map(),
  withdrawn: new Map(),
  asked: new Map(),
  reports: new Map(),
  canaries: undefined,
  unplanned: 0,
  population: {},
  heldAs: undefined,
  rounds: 0,
};

export type Known = ReadonlyMap<RecordTypeName, Findings>;

/** Returns what was found of people or templates, whether or not they are in the run. */
export function findingsOf(known: Known, kind: RecordTypeName): Findings {
  return known.get(kind) ?? noFindings;
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

export interface Sizes {
  valid: number;
  /** Keys whose records request something, such as a subscription or a template. */
  wanted: number;
  invalid: number;
  /** Records that identify no person. */
  skipped: number;
  /** The number of recorded records that this complete reading is the first to lack. */
  missing: number;
  /** Words that the configuration does not define. */
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
