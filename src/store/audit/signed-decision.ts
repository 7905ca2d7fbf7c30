/** Tells whether a decision in the audit log is signed by the key that it names. */
import { isSignedBy } from '../../domain/values/ed25519-key.ts';
import type { DecisionEntry } from './audit-entry.ts';

const form = /^ed25519 ([\w+/=]+)$/;

/** Returns whether the signature fits; undefined for a decision that nobody has signed. */
export function isSignedDecision({
  evidence,
  statement,
  signer,
}: Pick<DecisionEntry, 'evidence' | 'statement' | 'signer'>): boolean | undefined {
  if (statement === null || signer === null) return undefined;
  const [, signature = ''] = form.exec(evidence ?? '') ?? [];
  return isSignedBy(signer, statement, signature);
}
