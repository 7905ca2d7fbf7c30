import type { Ids } from '../shared/seeded-random.ts';
import type { Shelf } from './storage.ts';
import type { KeyRow } from '../shared/row-types.ts';

/** A key to add. What is left out is drawn; the key is enabled and may do everything. */
export interface NewKey {
  id?: string | undefined;
  secret?: string | undefined;
  name?: string | undefined;
  enabled?: boolean | undefined;
  revoked?: boolean | undefined;
  permissions?: string | undefined;
  createdAt?: number | undefined;
}

/** The API keys of one organization. */
export interface Keys {
  add(key: NewKey, now: number): KeyRow;
  put(row: KeyRow): void;
  byId(id: string): KeyRow | undefined;
  /** Finds a key by its secret, also a disabled or revoked one. */
  bySecret(secret: string): KeyRow | undefined;
  /** Counts one more request with this key. */
  count(row: KeyRow): void;
  change(row: KeyRow, fields: { enabled?: boolean; revoked?: boolean }, now: number): void;
  /** Draws a new secret for the key; the old one is unknown at once. */
  rotate(row: KeyRow, now: number): void;
  rows(): IterableIterator<KeyRow>;
  clear(): void;
}

/** Every drawn key begins with this. */
const PREFIX = 'key_live';

/** Creates the keys of an organization. */
export function createKeys(ids: Ids, shelf: Shelf<KeyRow>, createdBy: KeyRow['createdBy']): Keys {
  const byId = new Map<string, KeyRow>();
  const bySecret = new Map<string, KeyRow>();

  function put(row: KeyRow): void {
    byId.set(row.id, row);
    bySecret.set(row.secret, row);
  }

  return {
    add({ id = ids('key'), secret = ids(PREFIX), ...key }, now) {
      const createdAt = key.createdAt ?? now;
      const row: KeyRow = {
        id,
        secret,
        name: key.name ?? 'API key',
        enabled: key.enabled ?? true,
        revoked: key.revoked ?? false,
        requestCount: 0,
        permissions: key.permissions ?? 'read,write',
        createdBy,
        createdAt,
        updatedAt: createdAt,
      };
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    byId: (id) => byId.get(id),
    bySecret: (secret) => bySecret.get(secret),
    count(row) {
      row.requestCount += 1;
      shelf.keep(row);
    },
    change(row, fields, now) {
      Object.assign(row, fields, { updatedAt: now });
      shelf.keep(row);
    },
    rotate(row, now) {
      bySecret.delete(row.secret);
      row.secret = ids(PREFIX);
      row.updatedAt = now;
      put(row);
      shelf.keep(row);
    },
    rows: () => byId.values(),
    clear() {
      byId.clear();
      bySecret.clear();
    },
  };
}
