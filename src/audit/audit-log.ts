/**
 * The audit log: what was sent to the platform, why, and who allowed it, for years. It is a file of
 * its own beside the snapshot, so that it outlives the snapshot and has its own time of keeping.
 *
 * Its entries form a chain of hashes (hash-chain.ts). A checkpoint is the signed hash of an entry.
 * Only one process appends: the one that has the mirror's lease.
 */
import type Database from 'better-sqlite3';
import type { Key } from '../domain/record.ts';
import type { Wait } from '../snapshot/database/database-access.ts';
import { type Statements, statementsOf } from '../snapshot/database/prepared-statements.ts';
import { type AuditEntry, encodeEntry } from './audit-entry.ts';
import { firstHash, hashOf, type StoredEntry } from './hash-chain.ts';
import {
  fingerprintFor,
  type Person,
  type PersonMarks,
  personMarksIn,
  personTable,
} from './person-marks.ts';
import type { SigningKey } from './signing-key.ts';

/** An entry to append. */
export interface Appended {
  entry: AuditEntry;
  /** The address of the person it concerns; undefined if it concerns nobody. */
  person?: Key | undefined;
  /** The text of the CRM record that a write followed; its fingerprint goes into the entry. */
  record?: string | undefined;
}

/** A signed hash. */
export interface Checkpoint {
  seq: number;
  /** The hash of the entry with this number. */
  hash: Buffer;
  at: number;
  /** The public key that belongs to the signature, in PEM form. */
  publicKey: string;
  signature: Buffer;
}

/** Returns the text that a checkpoint signs. */
export function checkpointText(log: string, { seq, hash, at }: Signed): string {
  return `crm-mirror audit log ${log}\n${seq}\n${hash.toString('hex')}\n${at}\n`;
}

type Signed = Pick<Checkpoint, 'seq' | 'hash' | 'at'>;

/** An open audit log. */
export interface AuditLog {
  /** Identifies this log; its checkpoints sign it. */
  readonly id: string;
  people: PersonMarks;
  /**
   * Appends entries in one transaction. `from` names where they come from, and how far that origin
   * has been read with them, in the same transaction: a caller that is killed before it notes this
   * itself does not append them twice. Throws Busy.
   */
  append(entries: readonly Appended[], from?: { origin: string; reached: number }): void;
  /** Returns how far an origin has been read; 0 if nothing came from it. */
  reached(origin: string): number;
  /** Signs the last entry, unless it is signed. */
  checkpoint(key: SigningKey, at: number): void;
  /** Returns the number and the hash of the last entry. */
  head(): Head;
  /** Returns the entries with greater numbers, in order. */
  entries(after?: number): IterableIterator<StoredEntry>;
  /** Returns the entries about a person, in order. */
  about(person: Person): StoredEntry[];
  checkpoints(): Checkpoint[];
  /**
   * Removes the entries before `before`, and appends an entry that says so. Returns how many were
   * removed.
   */
  prune(before: number, at: number): number;
  /** Erases a person: drops the key, and appends an entry that says so. */
  erase(person: Key, said: { at: number; reason: string }): void;
  close(): void;
}

/** The end of a chain. */
export type Head = Pick<StoredEntry, 'seq' | 'hash'>;

/** The SQL that creates the tables of an empty log. */
export const auditTables = `
  create table meta (name text primary key, value text not null) without rowid;
  create table entry (
    seq integer primary key, person integer, body text not null, hash blob not null
  );
  create index entry_by_person on entry (person) where person is not null;
  create table origin (name text primary key, reached integer not null) without rowid;
  create table checkpoint (
    seq integer primary key, hash blob not null, at integer not null,
    public_key text not null, signature blob not null
  );${personTable}`;

/** Returns the log in an open database that has its tables. `secret` finds the people's keys. */
export function auditLogIn(
  db: Database.Database,
  { id, secret, patiently }: { id: string; secret: Buffer; patiently: Wait },
): AuditLog {
  const statements = statementsOf(db);
  const people = personMarksIn(statements, secret);
  const reading = readingIn(statements);
  const { last, add } = appendingIn(statements);
  const appendAll = (all: readonly Appended[]): void => {
    let before = last();
    for (const { entry, person: address, record } of all) {
      const person = address === undefined ? null : people.of(address);
      const isKnown = person && record !== undefined && entry.type === 'write';
      const told = isKnown ? { ...entry, record: fingerprintFor(person, record) } : entry;
      before = add(before, { entry: told, person });
    }
  };
  const within = <T>(work: () => T): T => patiently(() => db.transaction(work).immediate());
  return {
    id,
    people,
    ...reading,
    head: last,
    append(entries, from) {
      within(() => {
        appendAll(entries);
        if (from) reading.setReached(from);
      });
    },
    checkpoint: (key, at) => within(() => signIn(statements, { id, key, at, head: last() })),
    prune: (before, at) => within(() => pruneIn(statements, { before, at, append: appendAll })),
    erase: (person, { at, reason }) =>
      within(() => {
        const dropped = people.drop(person);
        if (dropped) add(last(), { entry: { type: 'erasure', at, reason }, person: dropped });
      }),
    close: () => void db.close(),
  };
}

function appendingIn({ prepare }: Statements) {
  const last = prepare<[], Head>('select seq, hash from entry order by seq desc limit 1');
  const put = prepare<[number, number | null, string, Buffer]>(
    'insert into entry (seq, person, body, hash) values (?, ?, ?, ?)',
  );
  return {
    last: (): Head => last.get() ?? { seq: 0, hash: firstHash },
    add(before: Head, { entry, person }: { entry: AuditEntry; person: Person | null }): Head {
      const seq = before.seq + 1;
      const body = encodeEntry(entry);
      const hash = hashOf(before.hash, { seq, person: person?.mark ?? null, body });
      put.run(seq, person?.id ?? null, body, hash);
      return { seq, hash };
    },
  };
}

function readingIn({ prepare }: Statements) {
  const columns =
    'select seq, mark person, body, hash from entry left join person on person.id = entry.person';
  const entries = prepare<[number], StoredEntry>(`${columns} where seq > ? order by seq`);
  const about = prepare<[number], StoredEntry>(`${columns} where entry.person = ? order by seq`);
  const signed = prepare<[], Checkpoint>(
    'select seq, hash, at, public_key publicKey, signature from checkpoint order by seq',
  );
  const reached = prepare<[string], { reached: number }>(
    'select reached from origin where name = ?',
  );
  const setReached = prepare<[string, number]>('insert or replace into origin values (?, ?)');
  return {
    entries: (after = 0) => entries.iterate(after),
    about: ({ id }: Person) => about.all(id),
    checkpoints: () => signed.all(),
    reached: (origin: string) => reached.get(origin)?.reached ?? 0,
    setReached: ({ origin, reached }: { origin: string; reached: number }) =>
      void setReached.run(origin, reached),
  };
}

interface Signing {
  id: string;
  key: SigningKey;
  at: number;
  head: Head;
}

function signIn({ prepare }: Statements, { id, key, at, head }: Signing): void {
  const { seq, hash } = head;
  if (seq === 0) return;
  const put = prepare<[number, Buffer, number, string, Buffer]>(
    `insert or ignore into checkpoint (seq, hash, at, public_key, signature)
     values (?, ?, ?, ?, ?)`,
  );
  const signature = key.sign(checkpointText(id, { seq, hash, at }));
  put.run(seq, hash, at, key.publicKey, signature);
}

interface Pruning {
  before: number;
  at: number;
  append(entries: readonly Appended[]): void;
}

/** The last entry always stays, because the next one follows its hash. */
function pruneIn({ prepare }: Statements, { before, at, append }: Pruning): number {
  const upTo = prepare<[number], Head>(
    `select seq, hash from entry
     where seq < (select min(seq) from entry where body ->> 1 >= ?)
       and seq < (select max(seq) from entry) order by seq desc limit 1`,
  ).get(before);
  if (!upTo) return 0;
  append([{ entry: { type: 'pruning', at, upTo: upTo.seq, hash: upTo.hash.toString('hex') } }]);
  prepare<[number]>('delete from checkpoint where seq <= ?').run(upTo.seq);
  return prepare<[number]>('delete from entry where seq <= ?').run(upTo.seq).changes;
}
