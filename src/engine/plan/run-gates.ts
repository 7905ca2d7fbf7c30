/**
 * What a run keeps back of the changes that were decided, whatever they are for. The gates are
 * asked in this order, after the rules and gates of the record type (docs/consent.md).
 */
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';

/** What the gates are asked about besides the change. */
export interface RunGateFacts {
  /** Changes of the same record whose outcome is not known. */
  open: readonly JournaledChange[];
  /** Changes of the same record that the platform refused, and that are not tried again yet. */
  refused: readonly Change[];
  /** Whether the mirror is quarantined. */
  isQuarantined: boolean;
}

export interface RunGate {
  id: string;
  /** When the gate keeps the change back, in words. */
  asks: string;
  holds(change: Change, facts: RunGateFacts): boolean;
}

export const runGates: readonly RunGate[] = [
  {
    id: 'outcome-open',
    asks: 'an earlier request for this record has no known outcome, so only stated opt-outs are sent',
    holds: (change, { open }) =>
      open.length > 0 && (!isStatedOptOut(change) || isOpen(change, open)),
  },
  {
    id: 'refused-before',
    asks: 'the platform refused the change, or the creation that it depends on: opt-outs are retried later, other changes after the record changes or `retry` is called',
    holds: (change, { refused }) =>
      refused.includes(change) || (change.target === undefined && refused.some(isCreation)),
  },
  {
    id: 'quarantined',
    asks: 'the mirror is quarantined, so only stated opt-outs are sent',
    holds: (change, { isQuarantined }) => isQuarantined && !isStatedOptOut(change),
  },
];

/** Returns the gate that keeps the change back; undefined: none does. */
export function keptBackBy(change: Change, facts: RunGateFacts): RunGate | undefined {
  return runGates.find(({ holds }) => holds(change, facts));
}

/** Whether the same opt-out is one of the changes without an outcome. */
function isOpen({ part, target }: Change, open: readonly JournaledChange[]): boolean {
  return open.some((one) => one.op === 'opt_out' && one.part === part && one.target === target);
}

/** A refused creation also keeps back what builds on it. */
function isCreation({ op }: Change): boolean {
  return op === 'create';
}
