/** Reads the keys of all tables that name records. */
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { Statements } from '../database/prepared-statements.ts';

const keysAtOnce = 1_000;

/** Merges the tables, each read by its index: one statement about all would sort all keys first. */
export function keysIn(db: Statements): (kind: RecordTypeName) => IterableIterator<Key> {
  const cursorOn = (from: string) => {
    const next = db.prepare<{ kind: string; after: Key; batch: string }, { key: Key }>(
      `select distinct key from ${from} kind = @kind and key > @after
       order by key limit ${keysAtOnce}`,
    );
    return (kind: RecordTypeName, batch = ''): Cursor => {
      let rows = next.all({ kind, after: '', batch });
      let at = 0;
      return {
        head: rows[0]?.key,
        advance() {
          at += 1;
          if (at === keysAtOnce) {
            rows = next.all({ kind, after: this.head ?? '', batch });
            at = 0;
          }
          this.head = rows[at]?.key;
        },
      };
    };
  };
  const tables = ['recorded', 'origin', 'problem', 'change', 'stated'].map((name) =>
    cursorOn(`${name} where`),
  );
  const held = cursorOn('held where batch = @batch and');
  const batches = db.prepare<[], { batch: string }>('select distinct batch from held_plan');
  return function* (kind) {
    const all = tables.map((cursor) => cursor(kind));
    for (const { batch } of batches.all()) all.push(held(kind, batch));
    for (;;) {
      let key: Key | undefined;
      for (const { head } of all) {
        if (head !== undefined && (key === undefined || head < key)) key = head;
      }
      if (key === undefined) return;
      for (const cursor of all) if (cursor.head === key) cursor.advance();
      yield key;
    }
  };
}

/** A place in the keys of one table; `head` is undefined at the end. */
interface Cursor {
  head: Key | undefined;
  advance(): void;
}
