/**
 * Names people in the audit log by marks that prove nothing without a key. Each person has a random
 * key; the mark is the keyed hash of the address. The key is found by another hash, keyed with that
 * of the do-not-contact list. An erasure drops the person's key: the entries and their proof stay,
 * and nobody can tell any more whom they concern.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { Statements } from '../snapshot/database/prepared-statements.ts';
import type { Key } from '../domain/record.ts';

const markBytes = 16;

/** The people of an audit log. */
export interface PersonMarks {
  /** Returns the mark of a person, and remembers a new person. */
  markOf(key: Key): Buffer;
  /** Returns the mark of a person whom the log knows, or undefined. */
  find(key: Key): Buffer | undefined;
  /** Returns a fingerprint of a text about a person: 16 hexadecimal digits, keyed. */
  fingerprint(key: Key, text: string): string;
  /** Drops the person's key. Returns the mark that is proof of nobody from now on. */
  drop(key: Key): Buffer | undefined;
}

/** The SQL that creates the table. */
export const personTable = `
  create table person (lookup blob primary key, key blob not null) without rowid;`;

/** Returns the people in an open log. `secret` is the key of the do-not-contact list. */
export function personMarksIn(db: Statements, secret: Buffer): PersonMarks {
  const get = db.prepare<[Buffer], { key: Buffer }>('select key from person where lookup = ?');
  const put = db.prepare<[Buffer, Buffer]>('insert into person (lookup, key) values (?, ?)');
  const remove = db.prepare<[Buffer]>('delete from person where lookup = ?');
  const lookupOf = (key: Key) => keyedHash(secret, `audit ${key}`);
  const mark = (own: Buffer, key: Key) => keyedHash(own, key);
  const ownKey = (key: Key): Buffer => {
    const lookup = lookupOf(key);
    const found = get.get(lookup)?.key;
    if (found) return found;
    const made = randomBytes(markBytes);
    put.run(lookup, made);
    return made;
  };
  const find = (key: Key): Buffer | undefined => {
    const own = get.get(lookupOf(key))?.key;
    return own && mark(own, key);
  };
  return {
    markOf: (key) => mark(ownKey(key), key),
    find,
    fingerprint: (key, text) => keyedHash(ownKey(key), `record ${text}`).toString('hex', 0, 8),
    drop(key) {
      const found = find(key);
      if (found) remove.run(lookupOf(key));
      return found;
    },
  };
}

function keyedHash(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest().subarray(0, markBytes);
}
