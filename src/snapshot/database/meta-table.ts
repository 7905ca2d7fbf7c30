import type { Statements } from './prepared-statements.ts';

/** Single facts about the snapshot itself. */
export interface Meta {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
  drop(name: string): void;
}

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
