/**
 * What was approved, as anybody could know who saw what was shown when that was done: what it lets
 * pass, how often, and when it ends. Told apart from how the engine counts.
 */
import type { GuardClass } from '../../../src/domain/guard-classes.ts';
import { type Reading, wishFor } from '../world/crm.ts';
import type { Unanswered } from './unanswered.ts';

/** What a guard holds, as the snapshot keeps it under the plan that showed it. */
export interface Shown {
  plan: string;
  guard: GuardClass;
  key: string;
  op: string;
  part: string;
  /** The contact; '' = none was there. */
  target: string;
  /** What would be sent, as it was shown. */
  body: string;
  /** Whether the plan is one of `undo`: only that command does it, and no other run ends it. */
  undoes?: boolean;
}

/** A change that a guard is for, as it reached the platform. */
export interface Passing {
  guard: GuardClass;
  op: 'opt_in' | 'opt_out' | 'delete' | 'update' | 'archive';
  /** Every address it may be about. */
  keys: readonly string[];
  part: string;
  target: string | undefined;
  done: boolean;
}

export interface Approval {
  plan: string;
  /** By the clock of the mirror. */
  at: number;
  shown: readonly Shown[];
  /** In which run it was done. */
  used: Map<Shown, object>;
  /** The opt-outs that the CRM has not stated since in every reading: a run may have ended them. */
  unstated: Set<Shown>;
  /** A run may have ended it. */
  isDoubtful: boolean;
}

export interface Approvals {
  approve(plan: string, at: number, shown: readonly Shown[]): void;
  /** These are covered no more: they were rejected. */
  revoke(changes: readonly Shown[]): void;
  /** For a run that begins then, by the clock of the mirror. */
  inForce(ourStart: number, undoes: boolean): Approval[];
  /** How many have grown old by then. */
  countOld(ourStart: number): number;
  /** A full run has ended them, but those it could not do all of; answers whether it ended any. */
  concluded(full: { only: string | undefined; named: number }): boolean;
  /** A full run may have ended them. */
  doubt(): void;
  /** A run has read the CRM. */
  read(reading: Reading): void;
  /** Whether a first load is behind us, for certain. */
  isLoaded(): boolean;
  /** The snapshot is gone, and with it all that was approved. */
  lose(): void;
}

const weekMs = 7 * 86_400_000;
/** By which a clock may be set back within a run, and some. */
const doubtMs = 3 * 3_600_000;

export function createApprovals(): Approvals {
  let approvals: Approval[] = [];
  let isLoaded = false;
  const isOld = ({ at }: Approval, ourStart: number): boolean => ourStart - at > weekMs + doubtMs;
  return {
    approve(plan, at, shown) {
      approvals = approvals.filter((one) => one.plan !== plan);
      approvals.push({ plan, at, shown, used: new Map(), unstated: new Set(), isDoubtful: false });
    },
    revoke(changes) {
      const isRevoked = (one: Shown): boolean => changes.some((other) => isAlike(one, other));
      approvals = approvals.map((one) => ({
        ...one,
        shown: one.shown.filter((change) => !isRevoked(change)),
      }));
    },
    inForce: (ourStart, undoes) =>
      approvals.filter((one) => !isOld(one, ourStart) && (undoes || !isOfUndo(one))),
    countOld: (ourStart) => approvals.filter((one) => isOld(one, ourStart)).length,
    concluded({ only, named }) {
      const before = approvals.length;
      const hasTemplates = ({ shown }: Approval) => shown.some(({ guard }) => guard === 'template');
      approvals = approvals.filter(
        (one) => isOfUndo(one) || (only === 'contacts' && hasTemplates(one)),
      );
      if (named > 0) isLoaded = true;
      return approvals.length < before;
    },
    doubt() {
      for (const approval of approvals) approval.isDoubtful = true;
    },
    read(reading) {
      for (const { shown, unstated } of approvals)
        for (const one of shown)
          if (one.guard === 'opt_out' && wishFor(reading, one.key, one.part) !== 'opt_out')
            unstated.add(one);
    },
    isLoaded: () => isLoaded,
    lose() {
      approvals = [];
      isLoaded = false;
    },
  };
}

function isOfUndo({ shown }: Approval): boolean {
  return shown.some(({ undoes }) => undoes);
}

function isAlike(one: Shown, other: Shown): boolean {
  const names: (keyof Shown)[] = ['guard', 'key', 'op', 'part', 'target', 'body'];
  return names.every((name) => one[name] === other[name]);
}

/**
 * Whether an approval that was in force when the run began lets this pass, in this run and in no
 * other; of what had no answer nobody knows whether it was done.
 */
export function passes(
  change: Passing,
  { run, approvals }: { run: object; approvals: readonly Approval[] },
  unanswered: Pick<Unanswered, 'hadBefore'>,
): boolean {
  for (const { shown, used } of approvals) {
    for (const one of shown.filter((other) => isSameChange(other, change))) {
      const by = used.get(one) ?? run;
      if (by !== run && !unanswered.hadBefore(`${one.key} ${one.part} ${change.op}`)) continue;
      if (change.done) used.set(one, run);
      return true;
    }
  }
  return false;
}

/** A creation is an opt-in as soon as somebody is there. */
export function isSameChange(
  { guard, key, op, part, target }: Shown,
  change: Omit<Passing, 'done'>,
): boolean {
  if (guard !== change.guard) return false;
  if ((op === 'create' ? 'opt_in' : op) !== change.op || part !== change.part) return false;
  return target === '' ? change.keys.includes(key) : target === change.target;
}
