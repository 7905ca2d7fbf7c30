/** Stores single facts about the snapshot, each under a name. */
import type { z } from 'zod';
import type { Statements } from './prepared-statements.ts';

/** Reads, writes and deletes the facts by name. */
export interface Meta {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
  drop(name: string): void;
}

/**
 * Returns the value of a stored JSON document, or undefined if there is none. Throws if its form
 * differs from the schema.
 */
export function metaValue<Value>(
  meta: Meta,
  name: string,
  schema: z.ZodType<Value>,
): Value | undefined {
  const text = meta.get(name);
  return text === undefined ? undefined : schema.parse(JSON.parse(text));
}

/** Prepares the access to the facts of a database. */
export function metaIn(db: Statements): Meta {
  const get = db.prepare<[string], { value: string }>('select value from meta where name = ?');
  const set = db.prepare('insert or replace into meta (name, value) values (?, ?)');
  const drop = db.prepare('delete from meta where name = ?');
  return {
    get: (name) => get.get(name)?.value,
    set: (name, value) => void set.run(name, value),
    drop: (name) => void drop.run(name),
  };
}
