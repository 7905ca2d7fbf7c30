/** The plan of a run, and its summary: the document that --json prints and tables come from. */
import { createHash } from 'node:crypto';
import type { Change, Op } from '../../domain/change.ts';
import { byGuard, type GuardClass } from '../../domain/guard-classes.ts';
import { canonicalJson, type RecordTypeName } from '../../domain/record.ts';
import type { ProblemCode } from '../../domain/errors.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Forecast } from './duration-forecast.ts';

export type Status = 'done' | 'held' | 'rejected' | 'failed' | 'interrupted';

export interface Summary {
  run: string;
  mirror: string;
  status: Status;
  mode: 'full' | 'fast' | 'single';
  /** null: everything the mirror has. */
  only: 'contacts' | 'templates' | null;
  /** The plan's hash; '' when none was made. */
  plan: string;
  contacts: KindSummary & {
    /** People, by guard class. */
    held: Record<Exclude<GuardClass, 'template'>, number>;
    /** Records that name nobody, for they have no address and were never known. */
    skipped: number;
    invalid: number;
  };
  templates: KindSummary & { held: number; invalid: number };
  /** Opt-outs reported to the CRM; null: this mirror, or such a run, reports none. */
  returns: WriteBackSummary | null;
  requests: RequestCounts;
  /** How long the plan takes, by the limits that were seen; null: nothing was planned. */
  forecast: Forecast | null;
  /** null: not read in this run. */
  certificate: { source: boolean | null; platform: boolean | null };
  problems: ListedProblem[];
  /** Reasons why the run did not end as it should, one line each. */
  reasons: string[];
  /** The code of each reason, for programs: neither stored nor printed. */
  reasonCodes: readonly ProblemCode[];
  /** Rejected or invalid records that earlier runs already listed. */
  known: number;
  /** Milliseconds. */
  ms: number;
}

/**
 * Counts the opt-outs reported to the CRM. `rejected` and `waiting` are totals after the run; after
 * a plan, `waiting` are those that a run would report.
 */
export interface WriteBackSummary {
  told: number;
  rejected: number;
  waiting: number;
  /** Opt-outs that cannot be reported as the mirror is configured. */
  leftOut: number;
  /** Opt-outs that are not reported, since nobody is known to have unsubscribed by them. */
  doubtful: number;
}

export interface RequestCounts {
  total: number;
  byRoute: Record<string, number>;
  /** 429s among them. */
  rateLimited: number;
}

export interface ListedProblem extends RecordProblem {
  /** Not listed by an earlier run. */
  isNew: boolean;
  /** The reason with the values of the CRM in it, for who may see addresses. */
  shown?: string | undefined;
}

export interface KindSummary {
  desired: number;
  observed: number;
  changes: Record<string, number>;
  applied: Record<string, number>;
  rejected: number;
  conflicts: number;
}

/** Returns the summary of a run that never began: the same document, with nothing in it. */
export function nothingDone(of: Pick<Summary, 'mirror' | 'mode' | 'reasons'>): Summary {
  const held = splitHeld(byGuard(() => 0));
  const counts = (kind: RecordTypeName) => ({
    desired: 0,
    observed: 0,
    changes: shownCounts(kind, {}, 'changes'),
    applied: shownCounts(kind, {}, 'applied'),
    rejected: 0,
    conflicts: 0,
    invalid: 0,
  });
  return {
    run: '',
    only: null,
    status: 'failed',
    plan: '',
    contacts: { ...counts('contact'), held: held.contacts, skipped: 0 },
    templates: { ...counts('template'), held: held.templates },
    returns: null,
    requests: { total: 0, byRoute: {}, rateLimited: 0 },
    forecast: null,
    certificate: { source: null, platform: null },
    problems: [],
    reasonCodes: [],
    known: 0,
    ms: 0,
    ...of,
  };
}

/** Splits what guards hold, by class, into the two places of a summary. */
export function splitHeld({ template, ...people }: Record<GuardClass, number>) {
  return { contacts: people, templates: template };
}

/** Joins the two again. */
export function heldIn({ contacts, templates }: HeldCounts): Record<GuardClass, number> {
  return { ...byGuard(() => templates.held), ...contacts.held };
}

type HeldCounts = { [K in 'contacts' | 'templates']: Pick<Summary[K], 'held'> };

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

/**
 * Returns the counts in the order of the contract, with zeros; the second step of a creation is no
 * change of its own.
 */
export function shownCounts(
  kind: RecordTypeName,
  counts: ChangeCounts,
  which: 'changes' | 'applied',
): Record<string, number> {
  return Object.fromEntries(shownOps[kind][which].map((op) => [op, counts[op] ?? 0]));
}

/** Returns the number of changes of all record types. */
export function changeCount(summary: Summary): number {
  const counts = [summary.contacts.changes, summary.templates.changes];
  return counts.flatMap((of) => Object.values(of)).reduce((sum, n) => sum + n, 0);
}

export type ChangeCounts = Partial<Record<Op | 'adopt' | 'forget', number>>;

/** A plan as a value: what a run would send, counted and named by a hash. */
export interface Plan {
  /** Names exactly these changes: equal plans have equal hashes. 16 hexadecimal digits. */
  hash: string;
  changes: Record<RecordTypeName, ChangeCounts>;
}

/** A plan in the making: its changes come in its order, each once. */
export interface Planning {
  add(changes: Iterable<Change>): void;
  done(): Plan;
}

/** Collects the changes of a plan; whether a guard holds a change makes no difference. */
export function planning(): Planning {
  const hash = createHash('sha256');
  const counts: Record<RecordTypeName, ChangeCounts> = { contact: {}, template: {} };
  return {
    add(changes) {
      for (const { kind, key, op, part, target, body, phase, guard } of changes) {
        // In the order of canonical JSON, which saves sorting it.
        const named = { body, guard, key, kind, op, part, phase, target };
        hash.update(`${canonicalJson(named)}\n`);
        counts[kind][op] = (counts[kind][op] ?? 0) + 1;
      }
    },
    done: () => ({ hash: hash.digest('hex').slice(0, 16), changes: counts }),
  };
}
