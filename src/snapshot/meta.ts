import type { Database } from 'better-sqlite3';

/** Single facts about the snapshot itself. */
export interface Meta {
  get(name: string): string | undefined;
}

export function metaIn(db: Database): Meta {
  const get = db.prepare<[string], { value: string }>('select value from meta where name = ?');
  return { get: (name) => get.get(name)?.value };
}
