/** Says why a person is not wanted any more without having opted out. */
import type { Key } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';

const kind = 'contact';

/** Returns the other addresses under which a CRM record of the person is recorded now. */
export function successorsOf({ recorded, absences }: Snapshot, key: Key): Key[] {
  const others = recorded
    .originsOf(kind, key)
    .flatMap((id) => recorded.keysOfOrigin(kind, id))
    .filter((other) => other !== key && recorded.get(kind, other) && !absences.get(kind, other));
  return [...new Set(others)];
}

/**
 * Returns the reason. `absence`: how long full runs have not found the person; undefined if the
 * last one has.
 */
export function whyGone({ absence }: { absence: unknown }, movedTo: readonly string[]): string {
  if (movedTo.length > 0)
    return `the CRM has another address for the person: ${movedTo.join(', ')}`;
  return absence ? 'the person is missing from the CRM' : 'the CRM marks the person as deleted';
}
