/**
 * Signs an approval with the key of an approver. The key stays in this process: a worker that has
 * the mirror receives only the signature.
 */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Invalid } from '../../domain/errors.ts';
import { readSmallFile } from '../../domain/values/config-file.ts';
import { createKeyFile, privateKeyIn, publicKeyOf } from '../../domain/values/ed25519-key.ts';
import { toSign } from '../../engine/guard/signed-decisions.ts';
import { signPart } from '../../engine/guard/signed-approvals.ts';
import { unknownPlan } from '../../engine/report/decision-errors.ts';
import type { ApprovalSignature } from '../../store/guards/plan-approvals.ts';
import { lookInto } from '../../store/snapshot.ts';
import type { Wanted } from './decision-options.ts';

/** Makes a key file for an approver. Returns the public key. Throws Invalid if there is a file. */
export function newKey(file: string): string {
  if (existsSync(file)) {
    const fix = 'name a new file: a key is never overwritten';
    throw new Invalid(`--new-key ${file}: there is a file already`, { fix });
  }
  try {
    return publicKeyOf(createKeyFile(file));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const why = `it cannot be written (${String(error.code)})`;
    throw new Invalid(`--new-key ${file}: ${why}`, { fix: 'name another file' });
  }
}

/**
 * Signs what awaits approval, and changes nothing. Throws Invalid if the key belongs to no approver
 * of the configuration, or if nothing awaits approval under the hash.
 */
export function signatureWith(
  file: string,
  config: Config,
  { plan, only, reason }: Wanted,
): ApprovalSignature | undefined {
  const { approvers } = config;
  if (!approvers) {
    throw new Invalid('--sign: the configuration names no approvers', {
      fix: 'add policy.approvers, or approve without --sign',
    });
  }
  let bytes: Buffer;
  try {
    bytes = readSmallFile(file);
  } catch {
    const fix = 'name a file of this user';
    throw new Invalid(`--sign ${file}: the file cannot be read`, { fix });
  }
  const key = privateKeyIn(bytes);
  if (!key) {
    const fix = 'name the file that `crm-mirror approve --new-key FILE` has written';
    const what = 'this is no private Ed25519 key (PEM, without a passphrase)';
    throw new Invalid(`--sign ${file}: ${what}`, { fix });
  }
  const own = publicKeyOf(key);
  const name = Object.keys(approvers.keys).find((one) => approvers.keys[one] === own);
  if (name === undefined) {
    throw new Invalid(`--sign ${file}: this key belongs to no approver of the configuration`, {
      fix: `add it to policy.approvers.keys (${own}), or name another file`,
    });
  }
  const snapshot = lookInto(config.snapshot);
  if (!snapshot) {
    throw new Invalid(`there is no snapshot at ${config.snapshot}, so nothing can be signed`, {
      fix: 'sign on a machine that has it, or can read it',
    });
  }
  try {
    if (!snapshot.awaitingApproval.get(plan))
      throw unknownPlan(snapshot.awaitingApproval.current(), plan);
    const at = Date.now();
    const { made, whole, part, changes } = toSign(snapshot, { plan, only }, { approvers, now: at });
    if (made.length === 0) return undefined;
    return signPart(
      snapshot,
      { whole, part, changes },
      { approvers, key, name, at, reason: reason ?? null },
    );
  } finally {
    snapshot.close();
  }
}

const token = z.strictObject({
  name: z.string(),
  at: z.number().int(),
  reason: z.string().nullable(),
  signature: z.string(),
});

/** Returns a signature as one word of a command line. */
export function encodeSignature(signature: ApprovalSignature): string {
  return Buffer.from(JSON.stringify(signature)).toString('base64url');
}

/** Reads what encodeSignature returns. Throws Invalid for anything else. */
export function decodeSignature(text: string): ApprovalSignature {
  try {
    return token.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    throw new Invalid('--signature: this is none', { fix: 'sign with --sign KEYFILE' });
  }
}
