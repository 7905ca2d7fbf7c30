/** From what was decided of a person and a channel to the changes that carry it out. */
import type { z } from 'zod';
import type { Change } from '../../../domain/change.ts';
import type { GuardClass } from '../../../domain/guard-classes.ts';
import type { Problem } from '../../../domain/problem.ts';
import { canonicalJson, type Fault, type Key } from '../../../domain/record.ts';
import type { Decision } from '../../record-type.ts';
import { beyond, conflictOf, severalContacts } from './consent-conflicts.ts';
import type { Verdict } from './consent-rules.ts';
import { fingerprintOf } from '../observe/observed-contact.ts';
import type { enrolmentBody, ObservedContact } from '../observe/contact-state.ts';

/** Phases of a person's changes: opt-outs first, deletes last. */
export const phase = { optOut: 0, optIn: 1, delete: 2 } as const;

/** What an opt-out is for, and which CRM records state it, or stand beside those, if any do. */
export type Why = Pick<z.infer<typeof enrolmentBody>, 'cause' | 'stated' | 'bound'>;

interface About {
  key: Key;
  channel: string;
  contacts: ObservedContact[];
  why: Why;
  /** Whether nobody is known to have left by the opt-out that is recorded. */
  isDoubtful: boolean;
}

export function planChanges(
  decision: Decision,
  verdict: Verdict,
  { key, channel, contacts, why, isDoubtful }: About,
): void {
  const isMoved = verdict.row === beyond.movedAway;
  const change = (op: Change['op'], at: number, target?: string): Change => {
    const body = bodyOf({ isMoved, ...(op === 'opt_out' && why) });
    return { ...changeOf(key, op, guardOf(verdict)), part: channel, target, body, phase: at };
  };
  const conflict = (fault: Fault): void => {
    const urgent = verdict.row === beyond.renamed && { urgent: true as const };
    decision.problems.push({ ...conflictProblem(key, channel, fault), ...urgent });
  };
  const several = contacts.length > 1;
  if (verdict.do === 'conflict') conflict(conflictOf(verdict.row, channel, isDoubtful));
  else if (verdict.do === 'opt_in' && several) conflict(severalContacts(contacts.length, channel));
  else if (verdict.do === 'opt_in') {
    decision.changes.push(change('opt_in', phase.optIn, contacts[0]?.id));
  } else if (verdict.do === 'create') {
    const first = !decision.changes.some(({ op }) => op === 'create');
    decision.changes.push(change(first ? 'create' : 'opt_in', phase.optIn));
  }
  const isOut = isForLeaving(verdict) ? verdict.do !== 'nothing' : verdict.do === 'opt_out';
  // A conflict over a contact that was renamed keeps no other one of the person in.
  const isStated = verdict.row === 6 || verdict.row === 7 || verdict.row === beyond.renamed;
  if (isStated || isOut || isMoved) {
    const subscribed = contacts.filter((contact) => contact.channels[channel] === 'opt_in');
    decision.changes.push(...subscribed.map(({ id }) => change('opt_out', phase.optOut, id)));
  }
}

interface Leaving {
  key: Key;
  contacts: readonly ObservedContact[];
  isMoved: boolean;
  /** Whether what was seen of her now is recorded. */
  isKept: boolean;
}

/** Row 2 concerns the person; opt-outs go first, for a delete may be held or refused. */
export function remove(decision: Decision, { key, contacts, isMoved, isKept }: Leaving): void {
  for (const contact of contacts) {
    const change = changeOf(key, 'delete', 'delete');
    const body = bodyOf({ isMoved, shown: isKept ? undefined : fingerprintOf(contact) });
    decision.changes.push({ ...change, target: contact.id, body, phase: phase.delete });
  }
}

/** Whether the rows about somebody who left the CRM have decided. */
function isForLeaving({ row }: Verdict): boolean {
  return row === 2 || row === 3;
}

/** Nobody stated what happens to an old address, or to somebody who left: the journal tells. */
function bodyOf({ isMoved, ...rest }: Why & { isMoved: boolean; shown?: string | undefined }) {
  return canonicalJson({ ...rest, moved: isMoved || undefined });
}

function changeOf(key: Key, op: Change['op'], guard: GuardClass): Change {
  return { kind: 'contact', key, op, part: '', target: undefined, body: '{}', phase: 0, guard };
}

/** What the CRM states itself counts as that, not as an absence. */
function guardOf(verdict: Verdict): GuardClass {
  if (verdict.do === 'create' || verdict.do === 'opt_in') return 'opt_in';
  return isForLeaving(verdict) || verdict.row === beyond.movedAway ? 'delete' : 'opt_out';
}

export function conflictProblem(key: Key, part: string, fault: Fault): Problem {
  return { kind: 'contact', key, class: 'conflict', part, ...fault };
}
