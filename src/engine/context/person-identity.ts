/** Identifies a record for the do-not-contact list, and in texts without an address. */
import { createHmac, hash } from 'node:crypto';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Entry, Identity, ListChanges } from '../../domain/do-not-contact.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { Meta } from '../../store/database/meta-table.ts';

/** Returns a short keyed hash (#9cc428f416d4) of an address, the same in every run of a mirror. */
export function shortHash({ get }: { get: Meta['get'] }, key: Key): string {
  const secret = get('name-key') ?? '';
  return `#${createHmac('sha256', secret).update(key).digest('hex').slice(0, 12)}`;
}

const block = 64;

/** Names addresses as `shortHash` does, in half the time: two calls of `hash` are an HMAC. */
export function shortHasher({ get }: { get: Meta['get'] }): (key: Key) => string {
  const secret = Buffer.alloc(block);
  secret.write(get('name-key') ?? '');
  const inner = Buffer.concat([secret.map((byte) => byte ^ 0x36), Buffer.alloc(4096)]);
  const outer = Buffer.concat([secret.map((byte) => byte ^ 0x5c), Buffer.alloc(32)]);
  return (key) => {
    const length = Buffer.byteLength(key);
    if (length > 4096) return shortHash({ get }, key);
    inner.write(key, block);
    // A digest as text of single bytes is faster than a buffer.
    outer.write(hash('sha256', inner.subarray(0, block + length), 'binary'), block, 'binary');
    return `#${hash('sha256', outer, 'hex').slice(0, 12)}`;
  };
}

/** Returns the record's name for problems: the key, or its hash if the person was erased. */
export function displayNameOf(
  meta: Meta,
  name: Key,
  { recorded, entries }: { recorded: RecordedRow | undefined; entries: readonly Entry[] },
): Key {
  const isErased = !recorded && entries.some(({ cause }) => cause === 'erasure');
  return isErased ? shortHash(meta, name) : name;
}

export const noListChanges: ListChanges = { adds: [], ends: [] };

/** Builds the identity for the do-not-contact list: key, present ids, and those while ours. */
export function identityOf({ snapshot }: { snapshot: Snapshot }, key: Key): Identity {
  return identityWith({ snapshot }, { key, ids: snapshot.staging.idsOf('contact', key) });
}

/** Like `identityOf`, for callers that have already read the record's current CRM ids. */
export function identityWith(
  { snapshot }: { snapshot: Snapshot },
  { key, ids: currentIds }: Identity,
): Identity {
  const formerIds = snapshot.recorded.originsOf('contact', key);
  return { key, ids: [...new Set([...currentIds, ...formerIds])] };
}
