import type { Statements } from '../database/prepared-statements.ts';
import { Busy } from '../../domain/errors.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

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
    db.run<[kind: string, key: string]>(`delete from ${table} where kind = ? and key = ?`);
  const recorded = from('recorded');
  const origins = from('origin');
  const duplicates = from('twin');
  const problems = from('problem');
  const changes = from('change');
  const absences = from('absence');
  const held = from('held');
  const standing = from('standing');
  const returned = from('returned');
  const unaudited = db.run<[key: string]>('delete from unaudited where key = ?');
  const stated = db.run<{ kind: string; key: string; ids: string }>(
    `delete from stated where kind = @kind
       and (key = @key or id in (
         select value from json_each(@ids)
         union select id from stated where kind = @kind and key = @key and id <> ''))`,
  );
  const dropEmpty = db.run<[]>('delete from held_plan where batch not in (select batch from held)');
  const dropMentions = db.run<{ kind: string; key: string }>(withoutFormer);
  const checkpoint = db.one<[], { busy: number }>('pragma wal_checkpoint(truncate)');
  return {
    /** Deletes every row about the record; `ids` are its ids in the source. */
    rows(kind: RecordTypeName, key: Key, ids: readonly string[]): Purged {
      // The problem of an invalid record without a key is stored under the record's id instead.
      const names = [key, ...ids.map((id) => `id ${id}`)];
      dropMentions({ kind, key });
      duplicates(kind, key);
      unaudited(key);
      stated({ kind, key, ids: JSON.stringify(ids) });
      const dropped = {
        recorded: recorded(kind, key),
        origins: origins(kind, key),
        problems: names.reduce((sum, name) => sum + problems(kind, name), 0),
        changes: changes(kind, key),
        absences: absences(kind, key),
        // The changes that the newest plan shows as withheld are in both tables and are counted
        // once.
        held: Math.max(held(kind, key), standing(kind, key)),
        returned: returned(kind, key),
      };
      dropEmpty();
      return dropped;
    },
    /**
     * Rewrites the file, so that it contains no bytes of deleted rows. Call it outside
     * transactions. Throws Busy while another process reads the snapshot.
     */
    scrub(): void {
      db.exec('vacuum');
      if (checkpoint()?.busy === 0) return;
      throw new Busy('another process reads the snapshot, so it is not rewritten', {
        fix: 'run it again',
      });
    },
  };
}
