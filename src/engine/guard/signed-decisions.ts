/** Signs what awaits approval under a plan (signed-approvals.ts), or a part of it. */
import type { ApprovalSignature } from '../../store/guards/plan-approvals.ts';
import { partHash } from '../../store/guards/plan-parts.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Approvers } from '../context/mirror-context.ts';
import { type Decided, isWhole, type PartFilter, toApprove } from './plan-decisions.ts';
import { addSignature } from './signed-approvals.ts';

/**
 * Signs what awaits approval under a plan, or a part of it; the part is approved once enough
 * approvers have signed it. Signing the hash of a part signs all of it, so that everybody signs the
 * same changes.
 */
export function signPlan(
  snapshot: Snapshot,
  { plan, only, signature, caller }: ToSign,
  verified: { approvers: Approvers; now: number },
): Decided & { by: string[]; isNew: boolean; next: string } {
  const { awaitingApproval, transaction } = snapshot;
  return transaction(() => {
    const { part, changes, made, told, next } = toSign(snapshot, { plan, only }, verified);
    if (made.length === 0) return { part: undefined, ...told, by: [], isNew: false, next };
    const { now } = verified;
    if (part !== plan) awaitingApproval.keepPart(plan, { is: 'approved', changes, at: now });
    const signed = addSignature(snapshot, { part, signature, caller }, verified);
    if (signed.by.length >= verified.approvers.need) {
      awaitingApproval.takeBack(plan, changes);
      const by = signed.by.join(', ');
      awaitingApproval.approve(part, { at: now, by, reason: signature.reason });
    }
    return { part, ...told, ...signed, next };
  });
}

interface ToSign {
  plan: string;
  only: PartFilter;
  signature: ApprovalSignature;
  /** The user and the host that gave the command, for the audit log. */
  caller: string;
}

/**
 * Returns the part that a signature has to be about, its counts, and the hash that the next
 * approver signs. It stores nothing.
 */
export function toSign(
  snapshot: Snapshot,
  { plan, only }: { plan: string; only: PartFilter },
  verified: { approvers: Approvers; now: number },
) {
  const { awaitingApproval } = snapshot;
  const { made, told } = toApprove(snapshot, { plan, only }, verified);
  const whole = awaitingApproval.wholeOf(plan);
  const isRejected = awaitingApproval.rejections().some((one) => one.plan === plan);
  if (whole !== null && isWhole(only) && !isRejected)
    return { whole, part: plan, changes: awaitingApproval.shown(plan), made, told, next: plan };
  const part = partHash(plan, { is: 'approved', changes: made });
  // A rejection is taken back only under its own hash.
  return { whole: whole ?? plan, part, changes: made, made, told, next: isRejected ? plan : part };
}
