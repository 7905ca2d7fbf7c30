/**
 * Gates that withhold decided changes in a run, whatever their purpose. They are applied in this
 * order, after the rules and gates of the record type (docs/consent.md).
 */
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';

export interface RunGateFacts {
  /** Changes to the same record whose outcome is unknown. */
  open: readonly JournaledChange[];
  /** Changes to the same record that the platform refused and that are not retried yet. */
  refused: readonly Change[];
  isQuarantined: boolean;
}

export interface RunGate {
  id: string;
  /** States in words when the gate withholds a change. */
  asks: string;
  holds(change: Change, facts: RunGateFacts): boolean;
}

export const runGates: readonly RunGate[] = [
  {
    id: 'outcome-open',
    asks: 'an earlier request for this record has no known outcome, so only stated opt-outs are sent',
    holds: (change, { open }) =>
      open.length > 0 &&
      (!isStatedOptOut(change) ||
        // Is one of the changes with an unknown outcome the same opt-out?
        open.some(
          ({ op, part, target }) =>
            op === 'opt_out' && part === change.part && target === change.target,
        )),
  },
  {
    id: 'refused-before',
    asks: 'the platform refused the change, or the creation that it depends on: opt-outs are retried later, other changes after the record changes or `retry` is called',
    holds: (change, { refused }) =>
      refused.includes(change) ||
      (change.target === undefined && refused.some(({ op }) => op === 'create')),
  },
  {
    id: 'quarantined',
    asks: 'the mirror is quarantined, so only stated opt-outs are sent',
    holds: (change, { isQuarantined }) => isQuarantined && !isStatedOptOut(change),
  },
];

/** Returns the gate that withholds the change, or undefined if none does. */
export function keptBackBy(change: Change, facts: RunGateFacts): RunGate | undefined {
  return runGates.find(({ holds }) => holds(change, facts));
}
