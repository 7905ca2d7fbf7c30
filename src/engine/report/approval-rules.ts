/** How long a rejection lasts, and how signatures of approvals are asked for and counted. */
import { Invalid } from '../../domain/errors.ts';

/** The time after which a rejected change awaits approval again, in milliseconds. */
export const rejectedForMs = 30 * 86_400_000;

/** Returns the command with which an approver signs. */
export function signing(plan: string): string {
  return `approve ${plan} --sign KEYFILE`;
}

/** Formats how far an approval is: "1 of 2 approvals (ada), needs one more" */
export function sayPending({ by, need }: { by: readonly string[]; need: number }): string {
  const more = need - by.length;
  const who = by.length === 0 ? '' : ` (${by.join(', ')})`;
  return `${by.length} of ${need} approvals${who}, needs ${more === 1 ? 'one' : more} more`;
}

/** Returns the error for an approval without a signature. */
export function needsSignature({ need }: { need: number }, plan: string): Invalid {
  const many = need === 1 ? 'a signature' : `${need} signatures`;
  return new Invalid(`an approval needs ${many} (policy.approvers)`, {
    fix: `sign it: \`crm-mirror ${signing(plan)}\``,
  });
}
