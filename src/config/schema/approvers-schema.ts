/** Defines the schema of `policy.approvers`: who signs approvals, and how many have to. */
import { z } from 'zod';
import { fault, issueOf, says } from '../../domain/schema-fault.ts';
import { isPrivateKey, publicKeyIn } from '../../domain/values/ed25519-key.ts';
import { number, whole } from './field-types.ts';

const publicKey = z
  .string()
  .transform((text, context) => {
    const key = publicKeyIn(text);
    if (key !== undefined) return key;
    const mistake = isPrivateKey(text)
      ? fault(
          'is a private key, which only its owner may have',
          'make a new key with `crm-mirror approve --new-key FILE`, and write the public key here',
        )
      : fault(
          'is no public Ed25519 key (base64 or PEM)',
          'write what `crm-mirror approve --new-key FILE` prints',
        );
    context.addIssue(issueOf(mistake));
    return z.NEVER;
  })
  .describe('Public key of an approver: Ed25519, base64 (SPKI) or PEM');

const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}$/,
    says('is no name of an approver', 'use 1 to 40 letters, digits, spaces, dots, - and _'),
  );

/** The schema of `policy.approvers`. In its output, all keys are base64. */
export const approvers = z
  .strictObject({
    need: number(whole(1, 20), 'How many of them have to sign the same changes'),
    keys: z.record(name, publicKey).describe('The public key of each approver, by name'),
  })
  .superRefine(({ need, keys }, context) => {
    const wrong = (path: string[], mistake: ReturnType<typeof fault>) =>
      context.addIssue(issueOf(mistake, path));
    const all = Object.entries(keys);
    if (need > all.length)
      wrong(['need'], fault('is more than there are keys', 'lower it, or add keys'));
    for (const [at, [own, key]] of all.entries()) {
      const other = all.slice(0, at).find(([, one]) => one === key)?.[0];
      if (other === undefined) continue;
      wrong(['keys', own], fault(`is also the key of ${other}`, 'give each approver an own key'));
    }
  })
  .describe('Who signs approvals');
