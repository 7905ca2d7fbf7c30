/**
 * Approves, signs (signed-approvals.ts) or rejects what awaits approval under a plan, or a part of
 * it.
 *
 *   a change           when approved        when rejected    in a run
 *   awaits approval    is approved          is rejected      is not sent, and is reported
 *   is approved        stays approved       is rejected, but is sent once, and is done then
 *                                           only by the hash
 *                                           of the approval
 *   is rejected        is approved, but     stays rejected   is not sent, and is not reported
 *                      only by the hash of
 *                      the rejected part
 *   is done, or is     stays as it is       stays as it is   is judged anew if it is wanted again
 *   wanted no longer
 *
 * A rejected change awaits approval again after 30 days. A stated opt-out is never rejected. A part
 * contains only changes that await approval when the decision is made, so a decision never covers a
 * change that nobody has seen. The later of two decisions counts.
 */
import { addDecision } from '../../store/memory/audit-trail.ts';
import { byGuard, guardNames, type GuardClass, timedGuards } from '../../domain/guard-classes.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import type { Key } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import {
  type PlanDecision,
  type HeldChange,
  type Rejection,
  partHash,
} from '../../store/guards/plan-parts.ts';
import type { Approvers } from '../context/mirror-context.ts';
import type { OnlyPeople } from '../context/people-selection.ts';
import { weekMs } from '../report/guard-rules.ts';
import { notRejectable, undoNotRejectable } from '../report/guard-text.ts';
import { approvalsInForce, addSignature } from './signed-approvals.ts';
import type { ApprovalSignature } from '../../store/guards/plan-approvals.ts';

/** Selects a part of a plan: the changes that match all that is given. */
export interface PartFilter {
  channel?: string | undefined;
  /** The operation as plans show it: a new person's further channels belong to the creation. */
  op?: string | undefined;
  guard?: GuardClass | undefined;
  people?: OnlyPeople | undefined;
}

/** The result of a decision. */
export interface Decided {
  /** The hash of the part that was decided; undefined if it was the whole plan, or nothing. */
  part: string | undefined;
  /** The number of people or templates with a change that was decided, by guard. */
  held: Record<GuardClass, number>;
  /** The number of those with a change that still waits under the plan, by guard. */
  rest: Record<GuardClass, number>;
  /** The number of people left out because they are created in another channel first. */
  uncreated: number;
  /** The number of people left out of a rejection because they are approved under another hash. */
  approved: number;
  /** The lines of the file of people that name nobody who waits. */
  unknown: number[];
}

const noneLeft = { uncreated: 0, approved: 0, unknown: [] };

interface ToDecide<D> {
  plan: string;
  only: PartFilter;
  decision: D;
  /** The user and the host that gave the command, for the audit log. */
  caller?: string | undefined;
  /** Who has to sign approvals; undefined if nobody has. */
  approvers?: Approvers | undefined;
}

/** Approves what awaits approval under a plan, or a part of it, and nothing else. */
export function approvePlan(
  snapshot: Snapshot,
  { plan, only, decision, caller }: ToDecide<PlanDecision>,
): Decided {
  const { awaitingApproval, transaction } = snapshot;
  return transaction(() => {
    const isUntouched =
      !awaitingApproval.hasParts(plan) && awaitingApproval.rejections().length === 0;
    if (isWhole(only) && isUntouched) {
      const held = awaitingApproval.left(plan);
      if (isAnyLeft(held)) {
        awaitingApproval.approve(plan, decision);
        noteDecision(snapshot, 'approve', { plan, caller, ...decision });
      }
      return { ...noneLeft, part: undefined, held, rest: byGuard(() => 0) };
    }
    const verified = { approvers: undefined, now: decision.at };
    const { made, told } = toApprove(snapshot, { plan, only }, verified);
    if (made.length === 0) return { part: undefined, ...told };
    const part = awaitingApproval.keepPart(plan, {
      is: 'approved',
      changes: made,
      at: decision.at,
    });
    awaitingApproval.takeBack(plan, made);
    awaitingApproval.approve(part, decision);
    noteDecision(snapshot, 'approve', { plan: part, caller, ...decision });
    return { part, ...told };
  });
}

/**
 * Chooses what can be approved, and counts it and what is left out: no run could make the opt-ins
 * of new people to a further channel whose creation is neither among the changes nor approved.
 */
function toApprove(
  snapshot: Snapshot,
  { plan, only }: { plan: string; only: PartFilter },
  verified: { approvers: Approvers | undefined; now: number },
) {
  const { awaitingApproval } = snapshot;
  const { chosen, others, unknown } = choose(snapshot, plan, only);
  const inForce = approvalsInForce(snapshot, verified);
  const created = new Set(chosen.filter(({ op }) => op === 'create').map(({ key }) => key));
  const isCreated = (key: string): boolean =>
    created.has(key) ||
    awaitingApproval
      .decisionsOn('contact', key, verified.now - weekMs)
      .some(
        ({ is, op, plan: by }) =>
          is === 'approved' && op === 'create' && inForce.some((one) => one.plan === by),
      );
  const isMade = ({ isFurther, key }: HeldChange): boolean => isFurther === 0 || isCreated(key);
  const made = chosen.filter(isMade);
  const unmade = chosen.filter((change) => !isMade(change));
  const covered = approvedBy(snapshot, inForce);
  const left = [...others, ...unmade].filter((change) => !covered.has(nameOf(change)));
  const counts = { held: countOf(made), rest: countOf(left), uncreated: peopleIn(unmade) };
  return { made, told: { ...noneLeft, ...counts, unknown } };
}

/**
 * Rejects what awaits approval under a plan, or a part of it, also what was approved by this very
 * hash. Throws Invalid if an opt-out that the CRM states is among these changes.
 */
export function rejectPlan(
  snapshot: Snapshot,
  { plan, only, decision, caller, approvers }: ToDecide<Pick<Rejection, 'at' | 'by' | 'reason'>>,
): Decided {
  const { awaitingApproval, transaction } = snapshot;
  const undoes = awaitingApproval.get(plan)?.undoes ?? null;
  if (undoes !== null) throw undoNotRejectable(undoes);
  return transaction(() => {
    const { chosen: all, others, unknown } = choose(snapshot, plan, only);
    const inForce = approvalsInForce(snapshot, { approvers, now: decision.at });
    const elsewhere = inForce.filter((one) => one.plan !== plan);
    const covered = approvedBy(snapshot, elsewhere);
    const chosen = all.filter((change) => !covered.has(nameOf(change)));
    const stated = chosen.filter(({ guard }) => timedGuards.has(guard));
    if (stated.length > 0) throw notRejectable(peopleIn(stated));
    const rest = others.filter((change) => !covered.has(nameOf(change)));
    const approved = peopleIn(all) - peopleIn(chosen);
    const told = { ...noneLeft, held: countOf(chosen), rest: countOf(rest), unknown, approved };
    if (chosen.length === 0) return { part: undefined, ...told };
    const part = awaitingApproval.keepPart(plan, {
      is: 'rejected',
      changes: chosen,
      at: decision.at,
    });
    revoke(snapshot, chosen, decision.at);
    awaitingApproval.reject(part, decision);
    noteDecision(snapshot, 'reject', { plan: part, caller, ...decision });
    return { part, ...told };
  });
}

/** Remembers a decision about a plan or a run for the audit log. Call it within a transaction. */
export function noteDecision(
  snapshot: Snapshot,
  what: 'approve' | 'reject' | 'undo',
  {
    plan: about,
    at,
    by,
    reason,
    caller = null,
  }: PlanDecision & { plan: string; caller?: string | null | undefined },
): void {
  addDecision(snapshot, {
    at,
    what,
    name: by,
    reason,
    about,
    evidence: null,
    as: caller,
  });
}

function approvedBy(
  { awaitingApproval }: Snapshot,
  approvals: readonly { plan: string }[],
): ReadonlySet<string> {
  return new Set(approvals.flatMap(({ plan }) => awaitingApproval.shown(plan).map(nameOf)));
}

/** Limits the open approvals of these changes to the other changes that they cover. */
function revoke({ awaitingApproval }: Snapshot, changes: readonly HeldChange[], at: number): void {
  const names = new Set(changes.map(nameOf));
  const isAbout = (plan: string) =>
    awaitingApproval.shown(plan).some((change) => names.has(nameOf(change)));
  for (const plan of awaitingApproval.signed().filter(isAbout)) awaitingApproval.unsign(plan);
  for (const { plan, ...decision } of awaitingApproval.approvals(at - weekMs)) {
    const covered = awaitingApproval.shown(plan);
    const rest = covered.filter((change) => !names.has(nameOf(change)));
    if (rest.length === covered.length) continue;
    awaitingApproval.end(plan, at);
    if (rest.length === 0) continue;
    const part = awaitingApproval.keepPart(plan, { is: 'approved', changes: rest, at });
    awaitingApproval.approve(part, decision);
  }
}

/** Returns whether a filter selects the whole plan. */
export function isWhole({ channel, op, guard, people }: PartFilter): boolean {
  return [channel, op, guard, people].every((one) => one === undefined);
}

function choose(snapshot: Snapshot, plan: string, only: PartFilter) {
  const waiting = snapshot.awaitingApproval.waiting(plan);
  const ids = only.people ? snapshot.awaitingApproval.idsIn(plan) : [];
  const { keys, unknown } = peopleOf(snapshot, { waiting, ids }, only.people);
  const { channel, op, guard } = only;
  const isChosen = (change: HeldChange): boolean =>
    (channel === undefined || change.part === channel) &&
    // The further channels of a new person are shown as part of the creation.
    (op === undefined || (change.isFurther === 1 ? 'create' : change.op) === op) &&
    (guard === undefined || change.guard === guard) &&
    (keys === undefined || (change.kind === 'contact' && keys.has(change.key)));
  const chosen = waiting.filter(isChosen);
  return { chosen, others: waiting.filter((change) => !isChosen(change)), unknown };
}

/** Finds the people of a file among those who wait: by address, otherwise by CRM id. */
function peopleOf(
  { recorded }: Snapshot,
  { waiting, ids }: { waiting: readonly HeldChange[]; ids: readonly { id: string; key: Key }[] },
  people: OnlyPeople | undefined,
): { keys: ReadonlySet<string> | undefined; unknown: number[] } {
  if (!people) return { keys: undefined, unknown: [] };
  const there = new Set(waiting.filter(({ kind }) => kind === 'contact').map(({ key }) => key));
  const byId = Map.groupBy(ids, ({ id }) => id);
  const keys = new Set<string>();
  const unknown: number[] = [];
  for (const { line, word } of people.entries) {
    const address = contactKey(word);
    // An id may look like the address of somebody else.
    const named = there.has(address)
      ? [address]
      : [
          ...(byId.get(word) ?? []).map(({ key }) => key),
          ...recorded.keysOfOrigin('contact', word),
        ];
    const found = named.filter((key) => there.has(key));
    for (const key of found) keys.add(key);
    if (found.length === 0) unknown.push(line);
  }
  return { keys, unknown };
}

function nameOf({ kind, key, op, part, guard }: HeldChange): string {
  // To be in a channel is the same wish, whether the person has to be created for it or not.
  return JSON.stringify([kind, key, op === 'create' ? 'opt_in' : op, part, guard]);
}

function countOf(changes: readonly HeldChange[]): Record<GuardClass, number> {
  return byGuard((guard) => peopleIn(changes.filter((one) => one.guard === guard)));
}

function peopleIn(changes: readonly HeldChange[]): number {
  return new Set(changes.map(({ key }) => key)).size;
}

/** Returns whether any class has held records. */
export function isAnyLeft(held: Record<GuardClass, number>): boolean {
  return guardNames.some((of) => held[of] > 0);
}

/**
 * Signs what awaits approval under a plan, or a part of it; the part is approved once enough
 * approvers have signed it. Signing the hash of a part signs all of it, so that everybody signs the
 * same changes. `caller`: the user and the host that gave the command, for the audit log.
 */
export function signPlan(
  snapshot: Snapshot,
  {
    plan,
    only,
    signature,
    caller,
  }: { plan: string; only: PartFilter; signature: ApprovalSignature; caller: string },
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
