import type { Problem } from '../../domain/problem.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { shortHash } from '../../engine/context/person-identity.ts';

/** Names a record for people: by its address only if that is wanted. */
/** Returns the name of a record. */
export type Names = (record: Pick<Problem, 'kind' | 'key'>) => string;

/**
 * Returns how to name records. Without `addresses` a person is named by a short keyed hash
 * (#4f1c…), the same in every run of a mirror, because the key lies in the snapshot. A plan before
 * the first run has names of its own.
 */
export function namesOf(snapshot: Snapshot, addresses: boolean): Names {
  return ({ kind, key }) => {
    if (addresses || kind !== 'contact' || !key.includes('@')) return key;
    return shortHash(snapshot.meta, key);
  };
}
