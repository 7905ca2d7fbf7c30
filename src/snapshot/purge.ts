import type { Database } from 'better-sqlite3';
import { Busy } from '../model/errors.ts';
import type { Key, KindName } from '../model/record.ts';

/** Takes a record out of the snapshot without a trace. */
export interface Purge {
  /** Every row that names it; `ids` are those of the source. */
  rows(kind: KindName, key: Key, ids: readonly string[]): Purged;
  /**
   * Writes the file anew, so that nothing stays in it of what was dropped; in no transaction.
   * Throws Busy while another process reads the snapshot.
   */
  scrub(): void;
  /** Every key of a kind that some row names, in their order. */
  keys(kind: KindName): string[];
}

/** How many rows there were. */
export interface Purged {
  recorded: number;
  origins: number;
  problems: number;
  changes: number;
}

export function purgeIn(db: Database): Purge {
  const recorded = db.prepare('delete from recorded where kind = ? and key = ?');
  const origins = db.prepare('delete from origin where kind = ? and key = ?');
  const problems = db.prepare('delete from problem where kind = ? and key = ?');
  const changes = db.prepare('delete from change where kind = ? and key = ?');
  const keys = db.prepare<{ kind: string }, { key: string }>(
    `select key from recorded where kind = @kind union select key from problem where kind = @kind
     union select key from change where kind = @kind order by key`,
  );
  return {
    rows(kind, key, ids) {
      // What cannot be used and names nobody is listed by its id.
      const names = [key, ...ids.map((id) => `id ${id}`)];
      return {
        recorded: recorded.run(kind, key).changes,
        origins: origins.run(kind, key).changes,
        problems: names.reduce((sum, name) => sum + problems.run(kind, name).changes, 0),
        changes: changes.run(kind, key).changes,
      };
    },
    scrub() {
      db.exec('vacuum');
      const [done] = db.prepare<[], { busy: number }>('pragma wal_checkpoint(truncate)').all();
      if (done?.busy === 0) return;
      throw new Busy('another process reads the snapshot, so it is not rewritten → run it again');
    },
    keys: (kind) => keys.all({ kind }).map(({ key }) => key),
  };
}
