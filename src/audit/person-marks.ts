/**
 * Names people in the audit log by marks, which say nothing without a key. Each person has a random
 * key; the mark is the keyed hash of the address. The person's row is found by another hash, keyed
 * with that of the do-not-contact list. An erasure drops the key and the way to the row: the
 * entries and their proof stay, and nobody can tell any more whom they concern.
 */
import { createHmac, createSecretKey, hash, randomFillSync } from 'node:crypto';
import type { Statements } from '../snapshot/database/prepared-statements.ts';
import type { Key } from '../domain/record.ts';

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

/** The people of an audit log. The methods that write need a transaction of the caller. */
export interface PersonMarks {
  /** Returns the person with this address, and adds a new one. */
  of(key: Key): Person & { key: Buffer };
  /** Returns the person with this address, or undefined if the log knows none. */
  find(key: Key): Person | undefined;
  /** Drops the person's key. Returns the person who is nobody from now on. */
  drop(key: Key): Person | undefined;
}

/** The SQL that creates the table. */
export const personTable = `
  create table person (id integer primary key, mark blob not null, lookup blob, key blob);
  create unique index person_by_lookup on person (lookup) where lookup is not null;`;

/** Returns the people in an open log. `secret` is the key of the do-not-contact list. */
export function personMarksIn({ prepare }: Statements, secret: Buffer): PersonMarks {
  const get = prepare<[Buffer], Person & { key: Buffer }>(
    'select id, mark, key from person where lookup = ?',
  );
  const put = prepare<[Buffer, Buffer, Buffer]>(
    'insert into person (mark, lookup, key) values (?, ?, ?)',
  );
  const forget = prepare<[number]>('update person set lookup = null, key = null where id = ?');
  const hidden = createSecretKey(secret);
  const lookupOf = (address: Key, attempt: number) => {
    const text = `audit ${attempt} ${address}`;
    return createHmac('sha256', hidden).update(text).digest().subarray(0, lookupBytes);
  };
  /** Follows the lookups of an address until one is free or belongs to this very person. */
  const search = (address: Key) => {
    for (let attempt = 0; ; attempt += 1) {
      const lookup = lookupOf(address, attempt);
      const found = get.get(lookup);
      if (!found || markOf(found.key, address).equals(found.mark)) return { lookup, found };
    }
  };
  return {
    of(address) {
      const { lookup, found } = search(address);
      if (found) return found;
      const key = randomKey();
      const mark = markOf(key, address);
      return { id: Number(put.run(mark, lookup, key).lastInsertRowid), mark, key };
    },
    find: (address) => search(address).found,
    drop(address) {
      const { found } = search(address);
      if (found) forget.run(found.id);
      return found;
    },
  };
}

/** Returns the fingerprint of a text about a person: 16 hexadecimal digits. */
export function fingerprintFor({ key }: { key: Buffer }, text: string): string {
  return keyedHash(key, `record ${text}`).toString('hex', 0, 8);
}

function markOf(key: Buffer, address: Key): Buffer {
  return keyedHash(key, `mark ${address}`).subarray(0, keyBytes);
}

/** Commits to a text with a key of fixed length that is used for one person only. */
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
