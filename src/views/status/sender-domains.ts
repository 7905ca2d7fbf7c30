/** Checks whether the platform knows the domains from which templates are sent. */
import { decodeTemplate } from '../../records/template/template-state.ts';
import { Interrupted, isExpected, renderProblem } from '../../domain/errors.ts';
import type { DesiredRow } from '../../domain/record.ts';
import type { Domain } from '../../platform/answer-schemas.ts';
import type { Platform } from '../../platform/platform.ts';
import { cell } from '../../compose/output/visible-text.ts';

/** A finding. It never stops a mirror, so it is never a failure. */
export interface SenderFinding {
  what: string;
  good: boolean;
  found: string;
}

/** Sender domains, with the number of templates that use each. */
export type Senders = Map<string, number>;

/** Counts the sender of a template, if it states one. */
export function countSender(senders: Senders, row: DesiredRow): void {
  if (row.kind !== 'template' || row.invalid) return;
  const { fromEmail = '' } = decodeTemplate.desired(row).value;
  // The sender may have the form Name <address>.
  const [, domain] = /@([^@\s<>]+)>?\s*$/.exec(fromEmail) ?? [];
  if (domain === undefined) return;
  const name = domain.toLowerCase();
  senders.set(name, (senders.get(name) ?? 0) + 1);
}

/**
 * Returns a finding for each sender domain. If the platform cannot be reached, that is a finding
 * too. Throws Interrupted, and rethrows bugs.
 */
export async function lookAtSenders(
  senders: Senders,
  domains: Pick<Platform['domains'], 'all'>,
  signal: AbortSignal,
): Promise<SenderFinding[]> {
  if (senders.size === 0) return [];
  const known = new Map<string, Domain>();
  try {
    for await (const domain of domains.all({}, { signal })) {
      known.set(domain.domain.toLowerCase(), domain);
    }
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    const found = `the platform's domains cannot be read: ${error.message}`;
    return [{ what: 'sender domains', good: false, found }];
  }
  return [...senders]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, templates]) => {
      const used = `sends ${templates} ${templates === 1 ? 'template' : 'templates'}`;
      const { good, found } = stateOf(name, known.get(name));
      return { what: `sender domain ${name}`, good, found: `${used}; ${found}` };
    });
}

function stateOf(name: string, domain: Domain | undefined): { good: boolean; found: string } {
  if (!domain) {
    return bad('the platform does not know it', `crm-mirror domains create ${name}`);
  }
  const { status, isSendingEmailEnabled, verificationFailedReason: why } = domain;
  if (isSendingEmailEnabled === false) {
    return bad('its sending is switched off', 'switch it on on the platform');
  }
  if (status === 'active') return { good: true, found: 'verified (active)' };
  if (status === 'verifying') {
    return { good: false, found: 'not verified yet: the platform is looking at its DNS records' };
  }
  const reason = why ? ` (${cell(why)})` : '';
  const then = `make its DNS records, then crm-mirror domains verify ${name}`;
  return bad(`not verified: ${cell(status)}${reason}`, then);
}

function bad(reason: string, fix: string): { good: boolean; found: string } {
  return { good: false, found: renderProblem({ reason, fix }) };
}
