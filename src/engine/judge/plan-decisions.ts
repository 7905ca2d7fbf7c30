/**
 * Approves, signs or rejects what awaits approval under a plan, or the part of it that a filter
 * selects.
 *
 *   a change           when approved        when rejected    in a run
 *   awaits approval    is approved          is rejected      is not sent, and is reported
 *   is approved        stays approved       is rejected, but is sent once, and is done then
 *                                           only by the hash
 *                                           of the approval
 *   is rejected        is approved, but     stays rejected   is not sent, and is not reported
 *                      only by the hash of
 *                      the rejection
 *   is done, or is     stays as it is       stays as it is   is judged anew if it is wanted again
 *   wanted no longer
 *
 * A rejected change awaits approval again after 30 days. A stated opt-out is never rejected. A
 * decision is about changes that await approval when it is made, so that it never covers a change
 * that nobody has seen. The later of two decisions counts.
 *
 * Several approvers may have to sign, each with an own key (`policy.approvers`).
 * A signature is about one part of a plan: exactly the changes that it contains, for one mirror and
 * account. It counts for seven days if the key that the configuration now has for this name made
 * it. The snapshot stores signatures, but only this verification, in each run, makes them count.
 * Approvals and signatures from before a restored backup count no more: since then, they may have
 * been used, or a later decision may have replaced them.
 *
 *   valid signatures   stored decision      the part
 *   fewer than needed  pending              awaits approval, as "1 of 2 approvals"
 *   fewer than needed  approved             awaits approval: a key was removed, a signature is too
 *                                           old, the changes were altered, or nobody has signed
 *   as many as needed  approved             is approved
 *   as many as needed  pending, or ended    awaits approval until the next signature
 *
 * The end of an approval, and a rejection, drop the signatures. Rejecting needs none, because it
 * releases nothing. Without `policy.approvers`, the stored approval alone counts.
 */
import { createHash, hash, type KeyObject, sign } from 'node:crypto';
import { toleratedMs } from '../../domain/clock.ts';
import { Invalid, type Problem } from '../../domain/errors.ts';
import { byGuard, guardNames, type GuardClass, timedGuards } from '../../domain/guard-classes.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { isSignedBy } from '../../domain/values/ed25519-key.ts';
import type {
  ApprovalSignature,
  Decider,
  HeldChange,
  ListedChange,
} from '../../store/holds/holds.ts';
import { addDecision } from '../../store/memory/audit-trail.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { boundTo } from '../account/account-binding.ts';
import type { Approvers } from '../context/mirror-context.ts';
import type { OnlyPeople } from '../context/people-selection.ts';
import { copiedAt } from '../../store/database/meta-table.ts';
import { weekMs } from '../../domain/guards/guard-limits.ts';
import { notRejectable, sayPending, signing, undoNotRejectable } from '../report/guard-text.ts';

/** Selects a part of a plan: the changes that match all that is given. */
export interface PartFilter {
  channels?: readonly string[] | undefined;
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

interface ToDecide {
  plan: string;
  only: PartFilter;
  decision: Decider;
  /** The user and the host that gave the command, for the audit log. */
  caller?: string | undefined;
  /** Who has to sign approvals; undefined if nobody has. */
  approvers?: Approvers | undefined;
}

/** Who has to sign (undefined: nobody), and the time in milliseconds since the epoch. */
export interface Verified {
  approvers: Approvers | undefined;
  now: number;
}

/** What a signature is about. */
interface SignedPart {
  /** The plan, the hash of the part, and all of its changes. */
  whole: string;
  part: string;
  changes: readonly ListedChange[];
}

/** A part that some approvers have signed, but too few. */
export interface PendingApproval {
  plan: string;
  part: string;
  /** The approvers with a valid signature. */
  by: string[];
  need: number;
}

/**
 * Returns the time, in milliseconds since the epoch, up to which approvals and signatures do not
 * count: a week ago, or when a restored backup was made.
 */
function endOfOld({ meta }: Snapshot, now: number): number {
  return Math.max(now - weekMs, copiedAt(meta) ?? 0);
}

/** Returns the approvals in force, oldest first. */
export function approvalsInForce(snapshot: Snapshot, { approvers, now }: Verified) {
  const stored = snapshot.holds.approvals(endOfOld(snapshot, now));
  if (!approvers) return stored;
  return stored.flatMap((approval) => {
    const valid = validSignatures(snapshot, approval.id, { approvers, now });
    const [first] = valid;
    if (!first || valid.length < approvers.need) return [];
    const by = valid.map(({ name }) => name).join(', ');
    const reason = valid.findLast((one) => one.reason !== null)?.reason ?? null;
    const number = Math.min(...valid.map((one) => one.number));
    return [{ ...approval, at: first.at, by, reason, number }];
  });
}

/** Returns their ids. */
export function approvalIds(snapshot: Snapshot, verified: Verified): string[] {
  return approvalsInForce(snapshot, verified).map(({ id }) => id);
}

/** Returns the parts that still await approval although somebody has signed them. */
export function pendingApprovals(
  snapshot: Snapshot,
  { approvers, now }: Verified,
): PendingApproval[] {
  if (!approvers) return [];
  const { holds } = snapshot;
  const inForce = approvalIds(snapshot, { approvers, now });
  return holds
    .signed()
    .filter((part) => !inForce.includes(part) && holds.size(part).waiting > 0)
    .map((part) => ({
      plan: holds.wholeOf(part),
      part,
      by: signersOf(snapshot, part, { approvers, now }),
      need: approvers.need,
    }))
    .filter(({ by }) => by.length > 0);
}

/** Returns a note for each stored approval that releases nothing because it lacks signatures. */
export function sayUnsigned(snapshot: Snapshot, { approvers, now }: Verified): Problem[] {
  if (!approvers) return [];
  const inForce = approvalIds(snapshot, { approvers, now });
  const stored = snapshot.holds.approvals(endOfOld(snapshot, now));
  return stored
    .filter(({ id }) => !inForce.includes(id))
    .map(({ id }) => {
      const by = signersOf(snapshot, id, { approvers, now });
      const pending = sayPending({ by, need: approvers.need });
      const reason = `the approval of ${id} lacks valid signatures and releases nothing: ${pending}`;
      return { code: 'note', reason, fix: `sign it: \`crm-mirror ${signing(id)}\`` };
    });
}

/**
 * Ends the approvals and signatures from before a restored backup, if the run `writes`. Returns a
 * note for each of them whose changes still wait.
 */
export function endRestored(
  { holds, meta, transaction }: Snapshot,
  { approvers, now }: Verified,
  { writes }: { writes: boolean },
): Problem[] {
  const before = copiedAt(meta);
  if (before === undefined) return [];
  const ended = holds
    .approvals(now - weekMs)
    .filter(({ id, at }) => at <= before && holds.size(id).waiting > 0);
  if (writes) transaction(() => holds.endApprovals({ at: now, before }));
  return ended.map(({ id }) => {
    const reason = `the approval of ${id} is older than the restored backup, and releases nothing`;
    const command = approvers ? signing(id) : `approve ${id}`;
    return { code: 'note', reason, fix: `if it is still right, \`crm-mirror ${command}\`` };
  });
}

/** Approves what awaits approval under a plan, or a part of it, and nothing else. */
export function approvePlan(
  snapshot: Snapshot,
  { plan, only, decision, caller }: ToDecide,
): Decided {
  const { holds, transaction } = snapshot;
  return transaction(() => {
    const verified = { approvers: undefined, now: decision.at };
    const { made, told } = toApprove(snapshot, { plan, only }, verified);
    if (made.length === 0) return { part: undefined, ...told };
    const whole = holds.wholeOf(plan);
    const { rejected, ended } = holds.size(plan);
    const isAll = isWhole(only) && plan === whole && rejected + ended === 0;
    const id = isAll ? plan : partHash('approved', plan, made);
    holds.decide(
      { id, plan: whole, verdict: 'approved', ...decision },
      made.map(({ id: hold }) => hold),
    );
    noteDecision(snapshot, 'approve', { plan: id, caller, ...decision });
    return { part: isAll ? undefined : id, ...told };
  });
}

/** Returns the hash of a part of a plan, under which it is shown, signed and taken back. */
function partHash(is: 'approved' | 'rejected', plan: string, changes: readonly ListedChange[]) {
  return hash('sha256', JSON.stringify([is, plan, changes.map(contentOf)])).slice(0, 16);
}

/**
 * Chooses what can be approved, and counts it and what is left out: no run could make the opt-ins
 * of new people to a further channel whose creation is neither among the changes nor approved.
 */
function toApprove(
  snapshot: Snapshot,
  { plan, only }: { plan: string; only: PartFilter },
  verified: Verified,
) {
  const inForce = approvalIds(snapshot, verified);
  const { chosen, others, unknown } = choose(snapshot, { plan, only, inForce });
  const created = new Set(chosen.filter(({ op }) => op === 'create').map(({ key }) => key));
  const isCreated = (key: string): boolean =>
    created.has(key) ||
    snapshot.holds
      .of({ kind: 'contact', key, approvals: inForce })
      .some(({ verdict, op }) => verdict === 'approved' && op === 'create');
  const isMade = ({ isFurther, key }: HeldChange): boolean => isFurther === 0 || isCreated(key);
  const made = chosen.filter(isMade);
  const unmade = chosen.filter((change) => !isMade(change));
  const left = [...others, ...unmade].filter(({ verdict }) => verdict !== 'approved');
  const counts = { held: countOf(made), rest: countOf(left), uncreated: peopleIn(unmade) };
  return { made, told: { approved: 0, ...counts, unknown } };
}

/**
 * Rejects what awaits approval under a plan, or a part of it, also what was approved by this very
 * hash. Throws Invalid if an opt-out that the CRM states is among these changes.
 */
export function rejectPlan(
  snapshot: Snapshot,
  { plan, only, decision, caller, approvers }: ToDecide,
): Decided {
  const { holds, transaction } = snapshot;
  const undoes = holds.get(plan)?.undoes ?? null;
  if (undoes !== null) throw undoNotRejectable(undoes);
  return transaction(() => {
    const approvals = approvalIds(snapshot, { approvers, now: decision.at });
    const { chosen: all, others, unknown } = choose(snapshot, { plan, only, inForce: approvals });
    const isElsewhere = (change: HeldChange): boolean =>
      change.verdict === 'approved' && change.decision !== plan;
    const chosen = all.filter((change) => !isElsewhere(change));
    const stated = chosen.filter(({ guard }) => timedGuards.has(guard));
    if (stated.length > 0) throw notRejectable(peopleIn(stated));
    const rest = countOf(others.filter((change) => !isElsewhere(change)));
    const approved = peopleIn(all) - peopleIn(chosen);
    const told = { uncreated: 0, held: countOf(chosen), rest, unknown, approved };
    if (chosen.length === 0) return { part: undefined, ...told };
    const part = partHash('rejected', plan, chosen);
    const ids = chosen.map(({ id }) => id);
    holds.unsign({ holds: ids });
    holds.decide({ id: part, plan: holds.wholeOf(plan), verdict: 'rejected', ...decision }, ids);
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
  }: Decider & { plan: string; caller?: string | null | undefined },
): void {
  const decided = what === 'undo' ? {} : decidedUnder(snapshot.holds, about);
  const decision = { at, what, name: by, reason, about, evidence: null, as: caller };
  addDecision(snapshot, { ...decision, ...decided });
}

/** Returns whether a filter selects the whole plan. */
export function isWhole({ channels, op, guard, people }: PartFilter): boolean {
  return [channels, op, guard, people].every((one) => one === undefined);
}

function choose(
  snapshot: Snapshot,
  { plan, only, inForce }: { plan: string; only: PartFilter; inForce: readonly string[] },
) {
  const waiting = snapshot.holds.rows(plan, inForce);
  const { keys, unknown } = peopleOf(snapshot, waiting, only.people);
  const { channels, op, guard } = only;
  const isChosen = (change: HeldChange): boolean =>
    (channels === undefined || channels.includes(change.part)) &&
    // The further channels of a new person are shown as part of the creation.
    (op === undefined || (change.isFurther === 1 ? 'create' : change.op) === op) &&
    (guard === undefined || change.guard === guard) &&
    (keys === undefined || (change.kind === 'contact' && keys.has(change.key)));
  const chosen = waiting.filter(isChosen);
  return { chosen, others: waiting.filter((change) => !isChosen(change)), unknown };
}

const crmIds = storedJson<readonly string[]>('the ids of a held change');

/** Finds the people of a file among those who wait: by address, otherwise by CRM id. */
function peopleOf(
  { recorded }: Snapshot,
  waiting: readonly HeldChange[],
  people: OnlyPeople | undefined,
): { keys: ReadonlySet<string> | undefined; unknown: number[] } {
  if (!people) return { keys: undefined, unknown: [] };
  const contacts = waiting.filter(({ kind }) => kind === 'contact');
  const there = new Set(contacts.map(({ key }) => key));
  const named = contacts.flatMap(({ key, ids }) => crmIds.decode(ids).map((id) => ({ id, key })));
  const byId = Map.groupBy(named, ({ id }) => id);
  const withId = new Set(named.map(({ key }) => key));
  const keys = new Set<string>();
  const unknown: number[] = [];
  for (const { line, word } of people.entries) {
    const address = contactKey(word);
    // Who is missing from the CRM has the ids of earlier readings. The address of anybody else may
    // have been that of another record then.
    const missing = recorded.keysOfOrigin('contact', word).filter((key) => !withId.has(key));
    const ofId = [...(byId.get(word) ?? []).map(({ key }) => key), ...missing];
    // An id may look like the address of somebody else.
    const found = there.has(address) ? [address] : ofId.filter((key) => there.has(key));
    for (const key of found) keys.add(key);
    if (found.length === 0) unknown.push(line);
  }
  return { keys, unknown };
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
 * same changes. A valid signature by the same approver stays, so that signing again changes
 * nothing. `caller`: the user and the host that gave the command, for the audit log. Throws Invalid
 * if the signature is not valid now.
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
  const { holds, transaction } = snapshot;
  const { approvers, now } = verified;
  const { name, at, reason } = signature;
  return transaction(() => {
    const { whole, part, changes, made, told, next } = toSign(snapshot, { plan, only }, verified);
    if (made.length === 0) return { part: undefined, ...told, by: [], isNew: false, next };
    holds.keepToSign({ id: part, plan: whole, at: now, holds: changes.map(({ id }) => id) });
    if (!validity(snapshot, part, verified)(signature)) {
      throw new Invalid(`the signature of ${name} is not valid for what awaits approval now`, {
        fix: `sign again: \`crm-mirror ${signing(part)}\``,
      });
    }
    const isNew = !signersOf(snapshot, part, verified).includes(name);
    if (isNew) holds.sign(part, signature);
    const signed = validSignatures(snapshot, part, verified);
    const by = signed.map((one) => one.name);
    if (by.length >= approvers.need) {
      const number = Math.min(...signed.map((one) => one.number));
      const decision = { plan: whole, verdict: 'approved', at: now, reason } as const;
      holds.decide({ id: part, ...decision, by: by.join(', '), number });
    }
    if (isNew) {
      const about = storedPart(snapshot, part);
      const statement = statementOf(snapshot, about, { approvers, name, at, reason });
      const evidence = `ed25519 ${signature.signature}`;
      const proof = { evidence, statement, signer: approvers.keys[name] ?? null };
      const decision = { at, what: 'approve', name, reason, about: part, as: caller };
      addDecision(snapshot, { ...decision, ...proof, ...decidedUnder(holds, part) });
    }
    return { part, ...told, by, isNew, next };
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
  const { holds } = snapshot;
  const { made, told } = toApprove(snapshot, { plan, only }, verified);
  const whole = holds.wholeOf(plan);
  const isRejected = holds.rejections().some(({ id }) => id === plan);
  if (whole !== plan && isWhole(only) && !isRejected && holds.size(plan).rejected === 0)
    return { whole, part: plan, changes: holds.toSign(plan), made, told, next: plan };
  const part = partHash('approved', plan, made);
  // A rejection is taken back only under its own hash.
  return { whole, part, changes: made, made, told, next: isRejected ? plan : part };
}

type Statement = Omit<ApprovalSignature, 'signature'> & { approvers: Approvers };

/** Signs a part with the key of an approver. */
export function signPart(
  snapshot: Snapshot,
  about: SignedPart,
  { approvers, key, ...signed }: Statement & { key: KeyObject },
): ApprovalSignature {
  const text = statementOf(snapshot, about, { approvers, ...signed });
  return { ...signed, signature: sign(null, Buffer.from(text), key).toString('base64') };
}

/** Returns the signatures of a part that count now, one for each approver, oldest first. */
function validSignatures(
  snapshot: Snapshot,
  part: string,
  verified: { approvers: Approvers; now: number },
) {
  const found = snapshot.holds.signatures(part);
  return found.length === 0 ? [] : found.filter(validity(snapshot, part, verified));
}

function signersOf(
  snapshot: Snapshot,
  part: string,
  verified: { approvers: Approvers; now: number },
): string[] {
  return validSignatures(snapshot, part, verified).map(({ name }) => name);
}

/** Returns a function that tells whether a signature of a stored part counts now. */
function validity(
  snapshot: Snapshot,
  part: string,
  { approvers, now }: { approvers: Approvers; now: number },
) {
  const about = storedPart(snapshot, part);
  const old = endOfOld(snapshot, now);
  return ({ signature, ...told }: ApprovalSignature): boolean => {
    const key = Object.hasOwn(approvers.keys, told.name) ? approvers.keys[told.name] : undefined;
    if (key === undefined || told.at <= old || told.at > now + toleratedMs) return false;
    return isSignedBy(key, statementOf(snapshot, about, { approvers, ...told }), signature);
  };
}

/** Returns what a decision about a plan, or about a part of one, is about, for the audit log. */
function decidedUnder(holds: Snapshot['holds'], named: string) {
  const whole = holds.wholeOf(named);
  const changes = holds
    .groups({ list: named, approvals: [] })
    .map(({ op, part, n }) => ({ op, part, n }));
  return { plan: whole === named ? null : whole, changes };
}

function storedPart({ holds }: Snapshot, part: string): SignedPart {
  return { whole: holds.wholeOf(part), part, changes: holds.toSign(part) };
}

/** Returns what a hash or a signature of changes is about, of one of them. */
function contentOf(change: ListedChange): readonly string[] {
  const { kind, key, op, part, target, guard, body, ids } = change;
  return [kind, key, op, part, target, guard, body, ids];
}

function statementOf(
  snapshot: Snapshot,
  { whole, part, changes }: SignedPart,
  { approvers, name, at, reason }: Statement,
): string {
  // A hold that began later is another one, even of the same content.
  const rows = changes.map((one) => JSON.stringify([one.id, ...contentOf(one)]));
  const digest = createHash('sha256').update(JSON.stringify(rows.toSorted())).digest('hex');
  const { mirror, platform } = approvers;
  return JSON.stringify({
    statement: 'crm-mirror approval',
    version: 1,
    mirror,
    platform,
    organization: boundTo(snapshot).organization ?? null,
    plan: whole,
    part,
    changes: digest,
    by: name,
    at,
    reason,
  });
}
