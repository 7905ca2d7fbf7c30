/**
 * Approvals that several approvers sign with their own keys (`policy.approvers`).
 *
 * A signature is about one part of a plan: exactly the changes that it contains, for one mirror and
 * account. It counts for seven days if the key that the configuration now has for this name made
 * it. The snapshot stores signatures, but only this verification, in each run, makes them count.
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
import { createHash, type KeyObject, sign } from 'node:crypto';
import { addDecision } from '../../store/memory/audit-trail.ts';
import { Invalid, type Problem } from '../../domain/errors.ts';
import { isSignedBy } from '../../domain/values/ed25519-key.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { ApprovalSignature, ListedChange } from '../../store/holds/holds.ts';
import { boundTo } from '../account/account-binding.ts';
import type { Approvers } from '../context/mirror-context.ts';
import { weekMs } from '../report/guard-rules.ts';
import { sayPending, signing } from '../report/guard-text.ts';

/** The tolerated difference between the clocks of two machines. */
const aheadMs = 300_000;

/** Who has to sign (undefined: nobody), and the time in milliseconds since the epoch. */
export interface Verified {
  approvers: Approvers | undefined;
  now: number;
}

/** What a signature is about. */
export interface SignedPart {
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

/** Returns the approvals in force, oldest first. */
export function approvalsInForce(snapshot: Snapshot, { approvers, now }: Verified) {
  const stored = snapshot.holds.approvals(now - weekMs);
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
    .filter((part) => !inForce.includes(part) && holds.isOpen(part))
    .map((part) => ({
      plan: holds.wholeOf(part),
      part,
      by: validSignatures(snapshot, part, { approvers, now }).map(({ name }) => name),
      need: approvers.need,
    }))
    .filter(({ by }) => by.length > 0);
}

/** Returns a note for each stored approval that releases nothing because it lacks signatures. */
export function sayUnsigned(snapshot: Snapshot, { approvers, now }: Verified): Problem[] {
  if (!approvers) return [];
  const inForce = approvalIds(snapshot, { approvers, now });
  const stored = snapshot.holds.approvals(now - weekMs);
  return stored
    .filter(({ id }) => !inForce.includes(id))
    .map(({ id }) => {
      const by = validSignatures(snapshot, id, { approvers, now }).map(({ name }) => name);
      const pending = sayPending({ by, need: approvers.need });
      const reason = `the approval of ${id} lacks valid signatures and releases nothing: ${pending}`;
      return { code: 'note', reason, fix: `sign it: \`crm-mirror ${signing(id)}\`` };
    });
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

/**
 * Stores a signature of a stored part, and writes it to the audit log. The part is approved once
 * enough approvers have signed it. A valid signature by the same approver stays, so that signing
 * again changes nothing. Returns who has signed. Throws Invalid if the signature is not valid now.
 * Call it within a transaction.
 */
export function addSignature(
  snapshot: Snapshot,
  { part, signature, caller }: { part: string; signature: ApprovalSignature; caller: string },
  { approvers, now }: Verified & { approvers: Approvers },
): { by: string[]; isNew: boolean } {
  const { holds } = snapshot;
  const { name, at, reason } = signature;
  if (!validity(snapshot, part, { approvers, now })(signature)) {
    throw new Invalid(`the signature of ${name} is not valid for what awaits approval now`, {
      fix: `sign again: \`crm-mirror ${signing(part)}\``,
    });
  }
  const valid = () => validSignatures(snapshot, part, { approvers, now });
  const isNew = !valid().some((one) => one.name === name);
  if (isNew) holds.sign(part, signature);
  const signed = valid();
  const by = signed.map((one) => one.name);
  if (by.length >= approvers.need) {
    const number = Math.min(...signed.map((one) => one.number));
    const decision = { plan: holds.wholeOf(part), verdict: 'approved', at: now, reason } as const;
    holds.decide({ id: part, ...decision, by: by.join(', '), number });
  }
  if (!isNew) return { by, isNew };
  const evidence = `ed25519 ${signature.signature}`;
  const about = storedPart(snapshot, part);
  const statement = statementOf(snapshot, about, { approvers, name, at, reason });
  const proof = { evidence, statement, signer: approvers.keys[name] ?? null };
  const decision = { at, what: 'approve', name, reason, about: part, as: caller };
  addDecision(snapshot, { ...decision, ...proof });
  return { by, isNew };
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

/** Returns a function that tells whether a signature of a stored part counts now. */
function validity(
  snapshot: Snapshot,
  part: string,
  { approvers, now }: { approvers: Approvers; now: number },
) {
  const about = storedPart(snapshot, part);
  return ({ signature, ...told }: ApprovalSignature): boolean => {
    const key = Object.hasOwn(approvers.keys, told.name) ? approvers.keys[told.name] : undefined;
    if (key === undefined || told.at <= now - weekMs || told.at > now + aheadMs) return false;
    return isSignedBy(key, statementOf(snapshot, about, { approvers, ...told }), signature);
  };
}

function storedPart({ holds }: Snapshot, part: string): SignedPart {
  return { whole: holds.wholeOf(part), part, changes: holds.toSign(part) };
}

/** Returns what a hash or a signature of changes is about, of one of them. */
export function contentOf(change: ListedChange): readonly string[] {
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
