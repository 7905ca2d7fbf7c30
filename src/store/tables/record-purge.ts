import type { Statements } from '../database/prepared-statements.ts';
import { Busy } from '../../domain/errors.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/** Removes all traces of a record from the snapshot. */
export interface Purge {
  /** Deletes every row about the record; `ids` are its ids in the source. */
  rows(kind: RecordTypeName, key: Key, ids: readonly string[]): Purged;
  /**
   * Rewrites the file, so that it contains no bytes of deleted rows. Call it outside transactions.
   * Throws Busy while another process reads the snapshot.
   */
  scrub(): void;
}

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

/** Prepares the statements that delete a record. */
export function purgeIn(db: Statements): Purge {
  const recorded = db.prepare('delete from recorded where kind = ? and key = ?');
  const origins = db.prepare('delete from origin where kind = ? and key = ?');
  const duplicates = db.prepare('delete from twin where kind = ? and key = ?');
  const stated = db.prepare<{ kind: string; key: string; ids: string }>(
    `delete from stated where kind = @kind
       and (key = @key or id in (
         select value from json_each(@ids)
         union select id from stated where kind = @kind and key = @key and id <> ''))`,
  );
  const problems = db.prepare('delete from problem where kind = ? and key = ?');
  const changes = db.prepare('delete from change where kind = ? and key = ?');
  const absences = db.prepare('delete from absence where kind = ? and key = ?');
  const unaudited = db.prepare('delete from unaudited where key = ?');
  const held = db.prepare('delete from held where kind = ? and key = ?');
  const standing = db.prepare('delete from standing where kind = ? and key = ?');
  const returned = db.prepare('delete from returned where kind = ? and key = ?');
  const emptied = db.prepare('delete from held_plan where batch not in (select batch from held)');
  const mentions = db.prepare<{ kind: string; key: string }>(withoutFormer);
  return {
    rows(kind, key, ids) {
      // The problem of an invalid record without a key is stored under the record's id instead.
      const names = [key, ...ids.map((id) => `id ${id}`)];
      mentions.run({ kind, key });
      duplicates.run(kind, key);
      unaudited.run(key);
      stated.run({ kind, key, ids: JSON.stringify(ids) });
      const dropped = {
        recorded: recorded.run(kind, key).changes,
        origins: origins.run(kind, key).changes,
        problems: names.reduce((sum, name) => sum + problems.run(kind, name).changes, 0),
        changes: changes.run(kind, key).changes,
        absences: absences.run(kind, key).changes,
        // The changes that the newest plan shows as withheld are in both tables and are counted
        // once.
        held: Math.max(held.run(kind, key).changes, standing.run(kind, key).changes),
        returned: returned.run(kind, key).changes,
      };
      emptied.run();
      return dropped;
    },
    scrub() {
      db.exec('vacuum');
      const [done] = db.prepare<[], { busy: number }>('pragma wal_checkpoint(truncate)').all();
      if (done?.busy === 0) return;
      throw new Busy('another process reads the snapshot, so it is not rewritten', {
        fix: 'run it again',
      });
    },
  };
}
