/** Whom the ledger is asked about, and told of. */
import type { Kind } from '../../records/record-type.ts';
import type { News, Who } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { Mirror } from './mirror-context.ts';

export const nothing: News = { adds: [], ends: [] };

/** A record by its name, and by every id the source gives it now, or gave it while it was ours. */
export function whoOf(
  { snapshot }: Pick<Mirror, 'snapshot'>,
  { name }: Pick<Kind, 'name'>,
  key: Key,
): Who {
  return whoWith({ snapshot }, { name }, { key, ids: snapshot.staging.idsOf(name, key) });
}

/** The same where the ids that the source gives it now are known. */
export function whoWith(
  { snapshot }: Pick<Mirror, 'snapshot'>,
  { name }: Pick<Kind, 'name'>,
  { key, ids }: Who,
): Who {
  return { key, ids: [...new Set([...ids, ...snapshot.recorded.originsOf(name, key)])] };
}
