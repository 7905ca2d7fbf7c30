import type { Problem } from '../../domain/problem.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { shortHash } from '../../engine/context/person-identity.ts';

/** How a record is named to people: an address only where that is wanted. */
export type Names = (record: Pick<Problem, 'kind' | 'key'>) => string;

/**
 * Names people by a short keyed hash (#4f1c…), the same in every run of one mirror: the key is made
 * with the snapshot. A plan before the first run has a snapshot, and so names, of its own.
 */
export function namesOf(snapshot: Snapshot, addresses: boolean): Names {
  return ({ kind, key }) => {
    if (addresses || kind !== 'contact' || !key.includes('@')) return key;
    return shortHash(snapshot.meta, key);
  };
}
