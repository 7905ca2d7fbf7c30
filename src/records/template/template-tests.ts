/**
 * Sends a test of a changed template to the addresses of `templates.canary.to`: before the template
 * is published, or after it was changed if it was published before. The same content is sent to an
 * address once.
 */
import { isExpected, Rejected, Unavailable } from '../../domain/errors.ts';
import { canonicalJson, fingerprint, type Key } from '../../domain/record.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Platform } from '../../platform/api-client.ts';
import type { SendOutcome } from '../record-type.ts';
import type { SendContext } from '../send-context.ts';
import { outcomeOf } from '../send-outcome.ts';
import type { SomeFields, TemplateChange } from './template-state.ts';

/** The client, and the addresses that get a test. */
export interface TestSending {
  platform: Pick<Platform['templates'], 'test'>;
  to: readonly string[];
}

/** The fields that an email shows. */
const sendable = [
  'subject',
  'fromEmail',
  'replyTo',
  'previewText',
  'content',
  'variables',
] as const;

/** Returns whether a change alters what an email shows. */
export function isSendable(fields: SomeFields): boolean {
  return sendable.some((name) => fields[name] !== undefined);
}

/** Sends the tests. Returns undefined if all were sent, otherwise why one was not. */
export async function sendTests(
  { platform, to }: TestSending,
  { key, target, value: { wanted } }: TemplateChange,
  { claims, signal, abort }: SendContext,
): Promise<Exclude<SendOutcome, { is: 'acked' | 'unknown' }> | undefined> {
  const shown = Object.fromEntries(sendable.map((name) => [name, wanted[name]]));
  const content = fingerprint(canonicalJson(shown));
  for (const address of to) {
    const claim = { key, content, to: address };
    if (claims?.claim(claim) === false) continue;
    try {
      await platform.test(target ?? '', { to: address }, { signal, abort });
    } catch (error) {
      if (!isExpected(error)) throw error;
      // Without an answer, the email may have been sent, and it is never sent twice.
      if (error instanceof Unavailable && error.acted === 'maybe') continue;
      claims?.release(claim);
      return whyNot(error);
    }
  }
  return undefined;
}

function whyNot(error: unknown): Exclude<SendOutcome, { is: 'acked' | 'unknown' }> {
  const outcome = outcomeOf(error);
  if (outcome.is === 'acked' || outcome.is === 'unknown')
    return { is: 'unsent', why: 'no test could be sent' };
  if (outcome.is !== 'rejected' || !(error instanceof Rejected)) return outcome;
  const fix = outcome.fix === '' ? '' : `${outcome.fix}; then `;
  return {
    ...outcome,
    reason: `the test was refused: ${outcome.reason}`,
    fix: `${fix}correct the template or templates.canary.to, and \`crm-mirror retry\``,
  };
}

/** Returns the problem of a template that was changed, and of which no test could be sent. */
export function untested(key: Key, why: string): RecordProblem {
  return {
    kind: 'template',
    key,
    class: 'rejected',
    part: '',
    cause: 'template-untested',
    about: 'was changed, and no test could be sent',
    reason: `was changed, and no test could be sent: ${why}`,
    fix: 'send one by `crm-mirror template test`, and change the template again if it is wrong',
  };
}
