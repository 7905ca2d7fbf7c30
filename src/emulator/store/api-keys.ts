import type { Ids } from '../shared/seeded-random.ts';
import type { Shelf } from './storage.ts';
import type { KeyRow } from '../shared/row-types.ts';

/** A key to add; what is omitted is generated. It is enabled, with all permissions. */
export interface NewKey {
  id?: string | undefined;
  secret?: string | undefined;
  name?: string | undefined;
  enabled?: boolean | undefined;
  revoked?: boolean | undefined;
  permissions?: string | undefined;
  createdAt?: number | undefined;
}

const PREFIX = 'key_live';

export function createKeys(ids: Ids, shelf: Shelf<KeyRow>, createdBy: KeyRow['createdBy']) {
  const byId = new Map<string, KeyRow>();
  const bySecret = new Map<string, KeyRow>();

  function put(row: KeyRow): void {
    byId.set(row.id, row);
    bySecret.set(row.secret, row);
  }

  return {
    add({ id = ids('key'), secret = ids(PREFIX), ...key }: NewKey, now: number): KeyRow {
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
    byId: (id: string) => byId.get(id),
    /** Finds a key by its secret, even if it is disabled or revoked. */
    bySecret: (secret: string) => bySecret.get(secret),
    count(row: KeyRow): void {
      row.requestCount += 1;
      shelf.keep(row);
    },
    change(row: KeyRow, fields: { enabled?: boolean; revoked?: boolean }, now: number): void {
      Object.assign(row, fields, { updatedAt: now });
      shelf.keep(row);
    },
    /** Generates a new secret for the key. The old secret becomes unknown immediately. */
    rotate(row: KeyRow, now: number): void {
      bySecret.delete(row.secret);
      row.secret = ids(PREFIX);
      row.updatedAt = now;
      put(row);
      shelf.keep(row);
    },
    rows: () => byId.values(),
    clear(): void {
      byId.clear();
      bySecret.clear();
    },
  };
}

export type Keys = ReturnType<typeof createKeys>;
