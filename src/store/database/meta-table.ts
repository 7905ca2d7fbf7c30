/** Stores single facts about the snapshot, each under a name. */
import { storedJson } from '../../domain/stored-json.ts';
import type { Statements } from './prepared-statements.ts';

/**
 * A fact that is stored as JSON under a name. `what` names it in the error of a damaged one, which
 * is Invalid.
 */
export function storedFact<Value>(name: string, what: string) {
  const { encode, decode } = storedJson<Value>(what);
  return {
    read(meta: Meta): Value | undefined {
      const text = meta.get(name);
      return text === undefined ? undefined : decode(text);
    },
    /**
     * Undefined drops the fact; the same value as before is not written again. Must be called
     * within a transaction.
     */
    write(meta: Meta, value: Value | undefined): void {
      const before = meta.get(name);
      const text = value === undefined ? undefined : encode(value);
      if (text === before) return;
      if (text === undefined) meta.drop(name);
      else meta.set(name, text);
    },
  };
}

/** Reads, writes and deletes the facts of a database by name. */
export function metaIn(db: Statements) {
  return {
    get: db.value<[name: string], string>('select value from meta where name = ?'),
    set: db.run<[name: string, value: string]>(
      'insert or replace into meta (name, value) values (?, ?)',
    ),
    drop: db.run<[name: string]>('delete from meta where name = ?'),
  };
}

export type Meta = ReturnType<typeof metaIn>;

/** Names the time of a backup, in the backup itself. */
export const copiedKey = 'copied-at';

/** When the backup was made; undefined if none was restored, or a full run has updated it since. */
export function copiedAt(meta: Meta): number | undefined {
  const text = meta.get(copiedKey);
  return text === undefined ? undefined : Number(text);
}
