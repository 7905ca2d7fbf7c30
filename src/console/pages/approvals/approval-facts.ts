/** Reads what the page of the approvals shows, in the words of its users. */
import { type GuardClass, guardNames } from '../../../domain/guard-classes.ts';
import { askedBefore } from '../../../engine/guard/plan-rules.ts';
import { approvalsInForce } from '../../../engine/guard/signed-approvals.ts';
import type { Seen } from '../../../views/lookup/seen-mirror.ts';
import { heldReason } from '../../../views/lookup/standing-problems.ts';
import type { CurrentStatus } from '../../../views/status/mirror-status.ts';
import type { Approval } from '../../../store/guards/plan-approvals.ts';
import type { DecidedGroup, StatedGroup } from '../../../store/guards/awaiting-approval.ts';
import { tellChanges, type ToldChange } from './change-list.ts';

/** What a guard withholds of a plan. */
export interface WithheldPart {
  guard: GuardClass;
  /** The records with a change that nobody has decided about. */
  open: number;
  /** Why the guard withholds them; undefined if no run has said so. */
  reason: string | undefined;
  groups: readonly StatedGroup[];
  /** The first changes. */
  first: readonly ToldChange[];
}

/** A plan with changes that nobody has decided about, or that wait for a run. */
export interface ShownPlan {
  held: CurrentStatus['held'][number];
  causes: readonly WithheldPart[];
}

/** Everything that the page shows. */
export interface ApprovalFacts {
  plans: readonly ShownPlan[];
  approvals: ReadonlyMap<string, Approval>;
  lately: readonly DecidedGroup[];
  /** What is rejected, by the hash of the part. */
  rejected: ReadonlyMap<string, readonly StatedGroup[]>;
}

/** How many changes of a cause are listed. */
export const changesShown = 20;
const approvalsShown = 10;

const nothing: ApprovalFacts = {
  plans: [],
  approvals: new Map(),
  lately: [],
  rejected: new Map(),
};

/** Reads it. */
export function factsOf(
  { snapshot, names, config, now }: Seen,
  { held: plans }: CurrentStatus,
): ApprovalFacts {
  if (!snapshot) return nothing;
  const { awaitingApproval, meta } = snapshot;
  const inForce = approvalsInForce(snapshot, { approvers: config.approvers, now });
  const tell = tellChanges(snapshot, names);
  const causesOf = (held: CurrentStatus['held'][number]): WithheldPart[] => {
    const groups = awaitingApproval.statedGroups(held.plan, inForce);
    return guardNames.flatMap((guard): WithheldPart[] => {
      const mine = groups.filter((group) => group.guard === guard);
      if (mine.length === 0) return [];
      const first = awaitingApproval.firstWaiting(held.plan, guard, changesShown).map(tell);
      const reason = askedBefore(meta, guard) ?? heldReason(snapshot, guard)?.reason;
      return [{ guard, open: held.undecided[guard], reason, groups: mine, first }];
    });
  };
  return {
    plans: plans.map((held) => ({ held, causes: causesOf(held) })),
    approvals: new Map(inForce.map((one) => [one.plan, one])),
    lately: awaitingApproval.decidedLately(approvalsShown),
    rejected: new Map(
      awaitingApproval
        .rejections()
        .map(({ plan }) => [plan, awaitingApproval.statedGroups(plan, [])]),
    ),
  };
}

/** Returns whether nobody has decided about some of it. */
export function isOpen({ open, groups }: WithheldPart): boolean {
  return open > 0 && groups.some(({ approval }) => approval === null);
}
