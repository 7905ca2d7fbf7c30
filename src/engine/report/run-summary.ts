/** What a run reports: its summary, which --json prints, its plan, and why it reads everything. */
import { createHash } from 'node:crypto';
import type { Change, Op } from '../../domain/change.ts';
import { byGuard, type GuardClass } from '../../domain/guard-classes.ts';
import { type AskedClass, byAsked } from '../../domain/guards/plan-rule.ts';
import { canonicalJson, type RecordTypeName, type Key } from '../../domain/record.ts';
import type { ProblemCode } from '../../domain/errors.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { UnmanagedPeople } from '../../domain/unmanaged-people.ts';
import type { Stop } from '../../records/decision.ts';
import type { ToldCanary } from './guard-text.ts';
import type { ProblemGroup } from './problem-groups.ts';
import type { Forecast } from './duration-forecast.ts';
import type { ChangeGroup } from '../../store/staging/staging.ts';

export type Status = 'done' | 'held' | 'rejected' | 'failed' | 'interrupted';

export interface Summary {
  run: string;
  mirror: string;
  status: Status;
  mode: 'full' | 'fast' | 'single' | 'undo';
  /** Null if the run covers everything in the mirror. */
  only: 'contacts' | 'templates' | null;
  /** The hash of the plan; '' if none was made. */
  plan: string;
  /** The hash under which to approve what is withheld, if it is not that of the plan. */
  heldAs?: string;
  contacts: KindSummary & {
    held: Record<Exclude<GuardClass, 'template'>, number>;
    /** Records that identify no person: they have no address, and their id was never known. */
    skipped: number;
    /** The number of recorded people who are missing from the source for the first time. */
    missing: number;
    invalid: number;
    /** How many of `applied.opt_in` are further channels of people that the run created. */
    furtherOptIns: number;
    /** The number of people with a change that a setting prevents: optIns, protect or sample. */
    prevented: Record<Stop, number>;
    /** People who are gone from the CRM and subscribed, and not managed by the mirror. */
    unmanaged: UnmanagedPeople;
  };
  templates: KindSummary & { held: number; invalid: number };
  /** The number of people or templates whose changes wait for a window or a canary, by class. */
  deferred: Record<AskedClass, number>;
  /** The canaries that are under way, have failed or have passed; only with `policy.canary`. */
  canaries?: ToldCanary[];
  /** The changes to which the platform answered in this run, and how many of them it refused. */
  attempted: { sent: number; refused: number };
  /** Opt-outs reported to the CRM; null if this mirror, or this kind of run, reports none. */
  returns: WriteBackSummary | null;
  requests: RequestCounts;
  /** The forecast duration of the plan, from the observed limits; null if nothing was planned. */
  forecast: Forecast | null;
  /** Null for a side that this run did not read. */
  certificate: { source: boolean | null; platform: boolean | null };
  problems: ListedProblem[];
  groups: ProblemGroup[];
  /** Why the run compared or read everything; empty if it did neither. */
  fullBecause: FullReason[];
  /** The reasons why the run did not complete successfully, one line each. */
  reasons: string[];
  /** The code of each reason, for use by programs. It is neither stored nor printed. */
  reasonCodes: readonly ProblemCode[];
  /** The number of rejected or invalid records that earlier runs already listed. */
  known: number;
  ms: number;
  undoes?: string;
  /** What of it cannot be undone, grouped by reason; only for `undo`. */
  cannot?: CannotUndo[];
}

/** Changes of a run that cannot be undone for the same reason. */
export interface CannotUndo {
  kind: RecordTypeName;
  op: Op;
  /** The reason as a word for programs, and in a sentence. */
  rule: string;
  reason: string;
  count: number;
  /** The first records, with the channel of a person's change. */
  records: { key: string; channel: string }[];
}

/**
 * The opt-outs reported to the CRM. `rejected` and `waiting` are totals after the run; of a plan,
 * `waiting` counts the opt-outs that a run would report.
 */
export interface WriteBackSummary {
  told: number;
  rejected: number;
  waiting: number;
  /** Opt-outs that cannot be reported with the mirror's configuration. */
  leftOut: number;
  /** Opt-outs that are not reported, because it is not known that the person unsubscribed. */
  doubtful: number;
}

export interface RequestCounts {
  total: number;
  byRoute: Record<string, number>;
  rateLimited: number;
}

export interface ListedProblem extends RecordProblem {
  /** Whether no earlier run listed the problem. */
  isNew: boolean;
  /** The reason including values from the CRM, for readers who may see addresses. */
  shown?: string | undefined;
}

export interface KindSummary {
  desired: number;
  observed: number;
  changes: Record<string, number>;
  applied: Record<string, number>;
  refused: number;
  /** The records with a refusal, those of earlier runs included. */
  rejected: number;
  conflicts: number;
}

/** The summary of a run that never began: all counts are zero. */
export function nothingDone(of: {
  mirror: string;
  mode: Summary['mode'];
  reasons: Summary['reasons'];
}): Summary {
  const held = splitHeld(byGuard(() => 0));
  const counts = (kind: RecordTypeName) => ({
    desired: 0,
    observed: 0,
    changes: shownCounts(kind, {}, 'changes'),
    applied: shownCounts(kind, {}, 'applied'),
    refused: 0,
    rejected: 0,
    conflicts: 0,
    invalid: 0,
  });
  return {
    run: '',
    only: null,
    status: 'failed',
    plan: '',
    contacts: {
      ...counts('contact'),
      held: held.contacts,
      skipped: 0,
      missing: 0,
      furtherOptIns: 0,
      prevented: { optIns: 0, protect: 0, sample: 0 },
      unmanaged: { deleted: 0, outOfScope: 0 },
    },
    templates: { ...counts('template'), held: held.templates },
    deferred: byAsked(() => 0),
    attempted: { sent: 0, refused: 0 },
    returns: null,
    requests: { total: 0, byRoute: {}, rateLimited: 0 },
    forecast: null,
    certificate: { source: null, platform: null },
    problems: [],
    groups: [],
    fullBecause: [],
    reasonCodes: [],
    known: 0,
    ms: 0,
    ...of,
  };
}

/** Splits the counts of held changes by class into the two places of a summary. */
export function splitHeld({ template, ...people }: Record<GuardClass, number>) {
  return { contacts: people, templates: template };
}

/** Combines them again. */
export function heldIn(of: {
  contacts: { held: Summary['contacts']['held'] };
  templates: { held: number };
}): Record<GuardClass, number> {
  return { ...byGuard(() => of.templates.held), ...of.contacts.held };
}

const shownOps: Record<RecordTypeName, { changes: (keyof ChangeCounts)[]; applied: Op[] }> = {
  contact: {
    changes: ['create', 'opt_in', 'opt_out', 'delete', 'adopt', 'forget'],
    applied: ['create', 'opt_in', 'opt_out', 'delete'],
  },
  template: {
    changes: ['create', 'update', 'archive', 'adopt'],
    applied: ['create', 'update', 'archive'],
  },
};

/** Returns the counts in the order of the contract, without a creation's second step. */
export function shownCounts(
  kind: RecordTypeName,
  counts: ChangeCounts,
  which: 'changes' | 'applied',
): Record<string, number> {
  return Object.fromEntries(shownOps[kind][which].map((op) => [op, counts[op] ?? 0]));
}

export function changeCount(summary: Summary): number {
  const counts = [summary.contacts.changes, summary.templates.changes];
  return counts.flatMap((of) => Object.values(of)).reduce((sum, n) => sum + n, 0);
}

export type ChangeCounts = Partial<Record<Op | 'adopt' | 'forget', number>>;

/** A plan as a value: the changes that a run would send, counted and identified by a hash. */
export interface Plan {
  /** Identifies exactly these changes: equal plans have equal hashes. 16 hexadecimal digits. */
  hash: string;
  changes: Record<RecordTypeName, ChangeCounts>;
}

/**
 * Collects the changes of a plan in order, held or not. The plan that `undoes` a run has another
 * hash than one that makes the same changes, so that an approval of one is none of the other.
 */
export function planning(undoes = '') {
  const hash = createHash('sha256').update(undoes);
  const counts: Record<RecordTypeName, ChangeCounts> = { contact: {}, template: {} };
  return {
    add(changes: Iterable<Change>): void {
      for (const { kind, key, op, part, target, body, phase, guard } of changes) {
        // The keys are in the order of canonical JSON, which saves sorting them.
        const named = { body, guard, key, kind, op, part, phase, target };
        hash.update(`${canonicalJson(named)}\n`);
        counts[kind][op] = (counts[kind][op] ?? 0) + 1;
      }
    },
    done: (): Plan => ({ hash: hash.digest('hex').slice(0, 16), changes: counts }),
  };
}

/** A plan that can be looked at. It can be used until the next run of its mirror begins. */
export interface PlanView {
  groups: readonly ChangeGroup[];
  /** Yields the first records of a group, in plan order. Yields to other tasks in between. */
  records(group: ChangeGroup, most: number): AsyncIterable<PlannedRecord>;
  /** What cannot be undone, in a run that undoes another. */
  cannot?: readonly CannotUndo[] | undefined;
}

export interface PlannedRecord {
  kind: RecordTypeName;
  op: ChangeGroup['op'];
  held: ChangeGroup['held'];
  key: Key;
  /** The parts of the record that change; none for the whole record. */
  parts: string[];
  reason: string;
}

/** The words of each reason, by its code. The codes stay the same. */
const words = {
  // Why a run compares everything.
  asked: 'it was asked for with --full',
  usual: 'a run compares everything unless --fast is given',
  schedule: 'the schedule has a full run',
  backfill: 'backfill compares everything',
  'first-load': 'no full run has ended well yet, so nothing is known of the platform',
  'plan-file': 'the plan that is applied is one of a full run',
  'snapshot-restored': 'the snapshot was restored from a backup, and the platform not listed since',
  'snapshot-lost': 'the snapshot was damaged or lost, and a new one has begun',
  // Why a fast run reads the whole source.
  'no-cursor':
    'the last run left no place to go on from: it left work, was killed, or was the first',
  'person-open':
    'something was decided or left open for one person, who may not be among the changes',
  'mapping-changed': 'the configuration reads the CRM in another way than before',
  'run-died': 'an earlier run ended before its work was done',
  'cursor-lost': 'the source cannot tell any more what has changed since the last run',
  'changes-many': 'too many records have changed to read them one by one',
  'people-many': 'people with unfinished work, or their other records, cannot be read one by one',
  sample: 'only some people are chosen, which a reading of the changes does not show',
} as const satisfies Record<string, string>;

export type FullCode = keyof typeof words;

export interface FullReason {
  code: string;
  reason: string;
}

/** Returns the reasons, each once. */
export function fullReasons(codes: readonly FullCode[]): FullReason[] {
  return [...new Set(codes)].map((code) => ({ code, reason: words[code] }));
}
