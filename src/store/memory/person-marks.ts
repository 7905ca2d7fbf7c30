/**
 * Names people in the audit log by marks, which say nothing without two keys: one from the key file
 * and a random one of each person, which is in the memory. An erasure drops the person's key and
 * the way to their row: the entries and their proof stay, and nobody can tell any more who they are
 * about.
 */
import { hash, randomFillSync } from 'node:crypto';
import type { Key } from '../../domain/record.ts';
import type { MemoryTables } from './memory-tables.ts';

const keyBytes = 16;
/** Few bytes, because each is stored twice. Two people may have the same ones. */
const lookupBytes = 6;

/** A person of the log. */
export interface Person {
  /** The number of the person's row. */
  id: number;
  /** 16 bytes. */
  mark: Buffer;
}

/** The SQL that creates the table. */
export const personTable = `
  create table person (id integer primary key, mark blob not null, lookup blob, key blob);
  create unique index person_by_lookup on person (lookup) where lookup is not null;`;

/** The people of the log in an open memory. The functions that write need a transaction. */
export function personMarksIn({ one, value, run, keyFor }: MemoryTables) {
  const secret = keyFor('audit 1');
  const get = one<[lookup: Buffer], Person & { key: Buffer }>(
    'select id, mark, key from person where lookup = ?',
  );
  const put = value<[mark: Buffer, lookup: Buffer, key: Buffer], number>(
    'insert into person (mark, lookup, key) values (?, ?, ?) returning id',
  );
  const forget = run<[id: number]>('update person set lookup = null, key = null where id = ?');
  /** The keyed hash of an address: without the secret, nobody can tell who a row is about. */
  const nameOf = (address: Key): Buffer =>
    keyedHash(secret, keyedHash(secret, `person ${address}`).toString('hex'));
  /** Follows the places of a name until one is free or belongs to this very person. */
  const search = (address: Key) => {
    const name = nameOf(address);
    let lookup = name.subarray(0, lookupBytes);
    for (;;) {
      const found = get(lookup);
      if (!found || markOf(found.key, name).equals(found.mark)) return { lookup, found, name };
      lookup = hash('sha256', Buffer.concat([lookup, name]), 'buffer').subarray(0, lookupBytes);
    }
  };
  return {
    /** Returns the person with this address, and adds a new one. */
    of(address: Key): Person & { key: Buffer } {
      const { lookup, found, name } = search(address);
      if (found) return found;
      const key = randomKey();
      const mark = markOf(key, name);
      return { id: put(mark, lookup, key) ?? 0, mark, key };
    },
    /** Returns the person with this address, or undefined if the log knows none. */
    find: (address: Key): Person | undefined => search(address).found,
    /** Returns the person with this mark, erased or not. */
    marked: one<[mark: Buffer], Person>('select id, mark from person where mark = ?'),
    /** Drops the person's key. Returns the person who is nobody from now on. */
    drop(address: Key): Person | undefined {
      const { found } = search(address);
      if (found) forget(found.id);
      return found;
    },
  };
}

/** Returns the fingerprint of a text about a person: 16 hexadecimal digits. */
export function fingerprintFor({ key }: { key: Buffer }, text: string): string {
  return keyedHash(key, `record ${text}`).toString('hex', 0, 8);
}

function markOf(key: Buffer, name: Buffer): Buffer {
  return hash('sha256', Buffer.concat([key, name]), 'buffer').subarray(0, keyBytes);
}

/** Commits to a text with a key of fixed length. */
function keyedHash(key: Buffer, text: string): Buffer {
  return hash('sha256', Buffer.concat([key, Buffer.from(text)]), 'buffer');
}

const pool = Buffer.alloc(256 * keyBytes);
let used = pool.length;

/** Returns a random key. Many are drawn at once, because each call of the system takes time. */
function randomKey(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += keyBytes;
  return Buffer.from(pool.subarray(used - keyBytes, used));
}
