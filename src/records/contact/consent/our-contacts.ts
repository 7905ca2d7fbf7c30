/** Which contacts are ours, and which of them policy deletes. */
import type { AbsenceDue, RecordedRow } from '../../../domain/record.ts';
import type { States } from '../../record-type.ts';

export interface AbsenceRules extends AbsenceDue {
  /** Who is deleted: nobody, whom we created, or whom we adopted too. */
  deletes: 'off' | 'created' | 'owned';
  /** How long after they were opted out, or were due where they need not be. */
  deleteAfterMs: number;
}

/** Whether policy has somebody deleted, in a run that may. The ledger remembers. */
export function mayDelete(states: States, rules: AbsenceRules): boolean {
  return isDeleted(states.recorded, rules) && states.mayDelete && states.certified;
}

/** Whether policy deletes people whom we have so. */
export function isDeleted(row: RecordedRow | undefined, { deletes }: AbsenceRules): boolean {
  const allowed = deletes === 'owned' ? ['created', 'adopted'] : ['created'];
  return deletes !== 'off' && row !== undefined && allowed.includes(row.ownership);
}

/** The contact that is recorded as ours: nothing is done to another one of somebody who left. */
export function oursOf<T extends { id: string }>(
  contacts: readonly T[],
  row: RecordedRow | undefined,
): T[] {
  if (!row || row.ownership === 'noted') return [];
  return contacts.filter(({ id }) => id === row.id);
}
