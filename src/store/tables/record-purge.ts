import type { Statements } from '../database/prepared-statements.ts';
import { Busy } from '../../domain/errors.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { RecordName } from '../database/key-range.ts';

/** The number of deleted rows, by table. */
export interface Purged {
  recorded: number;
  origins: number;
  problems: number;
  changes: number;
  absences: number;
  held: number;
  returned: number;
}

/**
 * Removes the key from the bodies of other changes, which may list it among the former keys of
 * their record (`former`).
 */
const withoutFormer = `
  update change set body = json_set(body, '$.former', json((
    select json_group_array(json(f.value)) from json_each(change.body, '$.former') f
    where f.value ->> 'key' <> @key)))
  where kind = @kind and exists (
    select 1 from json_each(change.body, '$.former') f where f.value ->> 'key' = @key)`;

/** Removes all traces of a record from the snapshot. */
export function purgeIn(db: Statements) {
  const from = (table: string) =>
    db.run<[RecordTypeName, key: string]>(`delete from ${table} where kind = ? and key = ?`);
  const drop = {
    recorded: from('recorded'),
    origins: from('origin'),
    duplicates: from('twin'),
    problems: from('problem'),
    changes: from('change'),
    absences: from('absence'),
    listed: db.run<[RecordTypeName, Key]>(
      'delete from listed where hold in (select id from hold where kind = ? and key = ?)',
    ),
    held: from('hold'),
    returned: from('returned'),
    unaudited: db.run<[Key]>('delete from unaudited where key = ?'),
    stated: db.run<RecordName & { ids: readonly string[] }>(
      `delete from stated where kind = @kind
         and (key = @key or id in (
           select value from json_each(@ids)
           union select id from stated where kind = @kind and key = @key and id <> ''))`,
    ),
    emptyPlans: db.run<[]>('delete from held_plan where plan not in (select list from listed)'),
    mentions: db.run<RecordName>(withoutFormer),
  };
  const isBusy = db.number<[]>('pragma wal_checkpoint(truncate)');
  return {
    /** Deletes every row about the record, and adds their numbers to `before`. */
    rows(kind: RecordTypeName, key: Key, ids: readonly string[], before?: Purged): Purged {
      // The problem of an invalid record without a key is stored under the record's id instead.
      const names = [key, ...ids.map((id) => `id ${id}`)];
      drop.mentions({ kind, key });
      drop.duplicates(kind, key);
      drop.unaudited(key);
      drop.stated({ kind, key, ids });
      drop.listed(kind, key);
      const sum = (of: keyof Purged, these = [key]): number =>
        these.reduce((n, name) => n + drop[of](kind, name), before?.[of] ?? 0);
      const purged = {
        recorded: sum('recorded'),
        origins: sum('origins'),
        problems: sum('problems', names),
        changes: sum('changes'),
        absences: sum('absences'),
        held: sum('held'),
        returned: sum('returned'),
      };
      drop.emptyPlans();
      return purged;
    },
    /**
     * Rewrites the file, so that it contains no bytes of deleted rows. Call it outside
     * transactions. Throws Busy while another process reads the snapshot.
     */
    scrub(): void {
      db.exec('vacuum');
      if (isBusy() === 0) return;
      throw new Busy('another process reads the snapshot, so it is not rewritten', {
        fix: 'run it again',
      });
    },
  };
}
