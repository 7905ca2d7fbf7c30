/** Whom the ledger is asked about, and told of. */
import type { RecordType } from '../../records/record-type.ts';
import type { ListChanges, Identity } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { Mirror } from './mirror-context.ts';

export const noListChanges: ListChanges = { adds: [], ends: [] };

/** A record by its name, and by every id the source gives it now, or gave it while it was ours. */
export function identityOf(
  { snapshot }: Pick<Mirror, 'snapshot'>,
  { name }: Pick<RecordType, 'name'>,
  key: Key,
): Identity {
  return identityWith({ snapshot }, { name }, { key, ids: snapshot.staging.idsOf(name, key) });
}

/** The same where the ids that the source gives it now are known. */
export function identityWith(
  { snapshot }: Pick<Mirror, 'snapshot'>,
  { name }: Pick<RecordType, 'name'>,
  { key, ids }: Identity,
): Identity {
  return { key, ids: [...new Set([...ids, ...snapshot.recorded.originsOf(name, key)])] };
}
