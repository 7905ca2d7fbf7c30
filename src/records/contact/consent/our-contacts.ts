/** Decides which contacts are ours, and which of them the policy deletes. */
import type { AbsenceDue, RecordedRow } from '../../../domain/record.ts';
import type { States } from '../../record-type.ts';

export interface AbsenceRules extends AbsenceDue {
  /** The contacts that may be deleted: none, those we created, or also those we adopted. */
  deletes: 'off' | 'created' | 'owned';
  /** Milliseconds from the opt-out to the delete; without an opt-out, from becoming due. */
  deleteAfterMs: number;
}

/** Returns whether the policy deletes the contact and this run may delete. */
export function mayDelete(states: States, rules: AbsenceRules): boolean {
  return policyDeletes(states.recorded, rules) && states.mayDelete && states.certified;
}

/** Returns whether the policy deletes contacts with this ownership. */
export function policyDeletes(row: RecordedRow | undefined, { deletes }: AbsenceRules): boolean {
  const allowed = deletes === 'owned' ? ['created', 'adopted'] : ['created'];
  return deletes !== 'off' && row !== undefined && allowed.includes(row.ownership);
}

/** Returns the contact that is recorded as ours, if it is among `contacts`. */
export function oursOf<T extends { id: string }>(
  contacts: readonly T[],
  row: RecordedRow | undefined,
): T[] {
  if (!row || row.ownership === 'noted') return [];
  return contacts.filter(({ id }) => id === row.id);
}

/** Returns the contacts that are not recorded as ours. */
export function notOursOf<T extends { id: string }>(
  contacts: readonly T[],
  row: RecordedRow | undefined,
): T[] {
  const ours = oursOf(contacts, row);
  return contacts.filter((contact) => !ours.includes(contact));
}
