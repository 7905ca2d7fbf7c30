/** Shows how many records a guard withholds, and what was decided about them. */
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { CurrentStatus } from './status-document.ts';
import type { Section } from '../sections.ts';
import { heldReason } from '../lookup/standing-problems.ts';

/** What a guard withholds. */
export interface HeldRecords {
  guard: GuardClass;
  /** The records about which nobody has decided, and those that are approved and wait for a run. */
  open: number;
  approved: number;
  /** From when on held opt-outs are applied without approval; null for other changes. */
  until: string | null;
}

export function heldRecords({ held }: CurrentStatus): HeldRecords[] {
  return guardNames.flatMap((guard) => {
    const open = Math.max(0, ...held.map(({ undecided }) => undecided[guard]));
    const approved = Math.max(0, ...held.map(({ ready }) => ready[guard]));
    const ends = held.flatMap(({ optOutsUntil }) => optOutsUntil ?? []).toSorted();
    const until = timedGuards.has(guard) ? (ends[0] ?? null) : null;
    return open + approved === 0 ? [] : [{ guard, open, approved, until }];
  });
}

export function heldSections(snapshot: Snapshot, held: readonly HeldRecords[]): Section[] {
  return held.map(({ guard, open, approved, until }) => {
    const { recordType, words } = guardRows[guard];
    const parts = [
      ...(open === 0 ? [] : [`${countWords(recordType, open)} awaiting a decision`]),
      ...(approved === 0
        ? []
        : [`${countWords(recordType, approved)} approved, waiting for a run`]),
    ];
    const why = open === 0 ? undefined : heldReason(snapshot, guard);
    const passes = `From ${until} on, what the CRM still states is applied without approval.`;
    return {
      id: 'held',
      title: `${words.heading} · ${parts.join(', ')}`,
      lines: [...(why ? [why.reason] : []), ...(until === null ? [] : [passes])],
      none: '',
    };
  });
}
