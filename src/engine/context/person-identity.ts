/** What a record goes by: in the do-not-contact list, and where no address may stand. */
import { createHmac } from 'node:crypto';
import type { Entry, Identity, ListChanges } from '../../domain/do-not-contact.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { Meta } from '../../snapshot/database/meta-table.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { Mirror } from './mirror-context.ts';

/**
 * What a person is called where no address may stand: a short keyed hash (#9cc428f416d4), the same
 * in every run of one mirror. The key is made with the snapshot.
 */
export function shortHash({ get }: Pick<Meta, 'get'>, key: Key): string {
  const secret = get('name-key') ?? '';
  return `#${createHmac('sha256', secret).update(key).digest('hex').slice(0, 12)}`;
}

interface Standing {
  recorded: RecordedRow | undefined;
  entries: readonly Entry[];
}

/** What a problem of a record goes by: of whom it was asked to forget it holds no address. */
export function displayNameOf(meta: Meta, name: Key, { recorded, entries }: Standing): Key {
  const isErased = !recorded && entries.some(({ cause }) => cause === 'erasure');
  return isErased ? shortHash(meta, name) : name;
}

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
