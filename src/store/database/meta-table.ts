/** Stores single facts about the snapshot, each under a name. */
import type { z } from 'zod';
import type { Statements } from './prepared-statements.ts';

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

/** The facts of a database. */
export type Meta = ReturnType<typeof metaIn>;
