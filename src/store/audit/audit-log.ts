/**
 * The audit log: what was sent to the platform, why, and who allowed it, for years. It is a file of
 * its own beside the snapshot, so that it outlives the snapshot and has its own time of keeping.
 *
 * Its entries form a chain of hashes (audit-entry.ts). A checkpoint is the signed hash of an entry.
 * Only one process appends: the one that has the mirror's lease. Below the log are its reading, its
 * signing and the removal of old entries, and last the file: `<snapshot>-audit`.
 */
import type Database from 'better-sqlite3';
import { Busy, Invalid } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { type BackupPart, copyOf } from '../database/database-backup.ts';
import { type Wait, openToLook, waiterFor } from '../database/database-access.ts';
import { type Statements, statementsOf } from '../database/prepared-statements.ts';
import {
  type AuditEntry,
  encodeEntry,
  entryIn,
  firstHash,
  hashOf,
  type StoredEntry,
} from './audit-entry.ts';
import {
  fingerprintFor,
  type Person,
  type PersonMarks,
  personMarksIn,
  personTable,
} from './person-marks.ts';
import type { SigningKey } from './signing-key.ts';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { openToWrite } from '../database/open-to-write.ts';

/** An entry to append. */
export interface Appended {
  entry: AuditEntry;
  /** The address of the person it concerns; undefined if it concerns nobody. */
  person?: Key | undefined;
  /** The CRM records that a write followed; their keyed fingerprint goes into the entry. */
  records?: string | undefined;
  /** The id of the run that a write belongs to; the number of its entry goes into the entry. */
  run?: string | undefined;
}

/** How far what one writer left has been appended. */
export interface Reached {
  writer: string;
  id: number;
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
export function checkpointText(
  log: string,
  { seq, hash, at }: { seq: number; hash: Buffer; at: number },
): string {
  return `crm-mirror audit log ${log}\n${seq}\n${hash.toString('hex')}\n${at}\n`;
}

/** An open audit log. */
export interface AuditLog {
  /** Identifies this log; its checkpoints sign it. */
  readonly id: string;
  people: PersonMarks;
  /**
   * Appends entries in one transaction. `reached` states how far each writer's rows are appended
   * with them, in the same transaction: a caller that is killed before it notes this itself does
   * not append them twice. Throws Busy.
   */
  append(entries: readonly Appended[], reached?: readonly Reached[]): void;
  /** Returns how far a writer's rows have been appended; 0 if none were. */
  reached(writer: string): number;
  /** Returns whether the log has the entry of a run. */
  knowsRun(run: string): boolean;
  /** Signs the last entry, unless it is signed. An entry names the key if it is a new one. */
  checkpoint(key: SigningKey, at: number): void;
  /** Returns the number and the hash of the last entry. */
  head(): Head;
  /** Returns the hash of an entry, or the one before the first; undefined if it was removed. */
  hashAt(seq: number): Buffer | undefined;
  /** Returns the entries with greater numbers, in order. */
  entries(after?: number): IterableIterator<StoredEntry>;
  /** Returns the last entries before a number, the newest first. */
  newest(count: number, before?: number): StoredEntry[];
  /** Returns the entries about a person, in order. */
  about(person: Person): StoredEntry[];
  /** Returns the entries about a template, in order. */
  aboutTemplate(key: Key): StoredEntry[];
  /** Returns the entries of the decisions about a plan, and of the writes that these approved. */
  aboutPlan(hash: string): StoredEntry[];
  /** Returns the entries of decisions, in order. */
  decisions(): StoredEntry[];
  /** Returns the entries from a time on, in milliseconds since the epoch. */
  entriesSince(at: number): IterableIterator<StoredEntry>;
  checkpoints(): Checkpoint[];
  /**
   * Removes the entries before `before` that are old by the time that the checkpoints tell, too,
   * and appends an entry that says so. Returns how many were removed.
   */
  prune(before: number, at: number): number;
  /**
   * Erases a person: drops the key, and appends an entry that says so. Does nothing for a person
   * that the log does not know.
   */
  erase(person: Key, said: { at: number; by: string }): void;
  /** Writes a complete and verified copy to `file`. Throws Invalid, and the signal's reason. */
  copy(file: string, signal: AbortSignal): Promise<BackupPart>;
  close(): void;
}

/** The end of a chain. */
export type Head = Pick<StoredEntry, 'seq' | 'hash'>;

const auditTables = `
  create table meta (name text primary key, value text not null) without rowid;
  create table entry (
    seq integer primary key, person integer, body text not null, hash blob not null
  );
  create table reached (writer text primary key, id integer not null) without rowid;
  create table run (id text primary key, seq integer not null) without rowid;
  create table checkpoint (
    seq integer primary key, hash blob not null, at integer not null,
    public_key text not null, signature blob not null
  );
  create index entry_by_person on entry (person) where person is not null;
  create index entry_of_decision on entry (seq) where body like '["decision"%';${personTable}`;

/** Returns the log in an open database that has its tables. `secret` finds the people's keys. */
function auditLogIn(
  db: Database.Database,
  { id, secret, patiently }: { id: string; secret: Buffer; patiently: Wait },
): AuditLog {
  const statements = statementsOf(db);
  const people = personMarksIn(statements, secret);
  const reading = readingIn(statements);
  const lastEntry = statements.prepare<[], Head>(
    'select seq, hash from entry order by seq desc limit 1',
  );
  const put = statements.prepare<[number, number | null, string, Buffer]>(
    'insert into entry (seq, person, body, hash) values (?, ?, ?, ?)',
  );
  const last = (): Head => lastEntry.get() ?? { seq: 0, hash: firstHash };
  const add = (before: Head, entry: AuditEntry, person: Person | null): Head => {
    const seq = before.seq + 1;
    const body = encodeEntry(entry);
    const hash = hashOf(before.hash, { seq, person: person?.mark ?? null, body });
    put.run(seq, person?.id ?? null, body, hash);
    return { seq, hash };
  };
  const appendAll = (all: readonly Appended[]): void => {
    let before = last();
    // Only the log knows the person's key, and the number of the run's entry. Most people have
    // several changes in a row.
    const known = new Map<Key, ReturnType<PersonMarks['of']>>();
    for (const one of all) {
      const { person: address } = one;
      const person = address === undefined ? null : (known.get(address) ?? people.of(address));
      if (person && address !== undefined) known.set(address, person);
      let { entry } = one;
      if (entry.type === 'write') {
        const { records, run } = one;
        const isKnown = person !== null && records !== undefined;
        const record = isKnown ? fingerprintFor(person, records) : entry.record;
        entry = { ...entry, record, run: run === undefined ? entry.run : reading.runNumber(run) };
      }
      before = add(before, entry, person);
      if (entry.type === 'run') reading.addRun(entry.id, before.seq);
    }
  };
  const within = <T>(work: () => T): T => patiently(() => db.transaction(work).immediate());
  return {
    id,
    people,
    ...reading,
    head: last,
    append(entries, reached = []) {
      within(() => {
        appendAll(entries);
        reached.forEach(reading.setReached);
      });
    },
    checkpoint: (key, at) =>
      within(() => {
        const before = reading.lastKey();
        const { publicKey } = key;
        if (before !== undefined && before !== publicKey) {
          appendAll([{ entry: { type: 'key', at, id: key.id, publicKey } }]);
        }
        signIn(statements, id, key, { ...last(), at });
      }),
    prune: (before, at) =>
      within(() =>
        pruneIn(statements, { before, at }, (removed) =>
          appendAll([{ entry: { type: 'pruning', ...removed } }]),
        ),
      ),
    erase(person, { at, by }) {
      within(() => {
        const dropped = people.drop(person);
        // Without the person: with the do-not-contact list, its time would tell who it was.
        if (dropped) add(last(), { type: 'erasure', at, by }, null);
      });
      // What was overwritten must not stay in the write-ahead log.
      if (statements.prepare<[], { busy: number }>(checkpointSql).get()?.busy === 0) return;
      throw new Busy('another process reads the audit log, so it still has the key', {
        fix: 'run it again',
      });
    },
    copy: async (file, signal) => copyOf(db, file, { signal }),
    close: () => void db.close(),
  };
}

const checkpointSql = 'pragma wal_checkpoint(truncate)';

function readingIn({ prepare }: Statements) {
  const columns =
    'select seq, mark person, body, hash from entry left join person on person.id = entry.person';
  const entries = prepare<[number], StoredEntry>(`${columns} where seq > ? order by seq`);
  const hashAt = prepare<[number], { hash: Buffer }>('select hash from entry where seq = ?');
  const newest = prepare<[number, number], StoredEntry>(
    `${columns} where seq < ? order by seq desc limit ?`,
  );
  const about = prepare<[number], StoredEntry>(`${columns} where entry.person = ? order by seq`);
  const since = prepare<[number], StoredEntry>(
    `${columns} where entry.seq >= (select min(seq) from entry where body ->> 1 >= ?) order by seq`,
  );
  const ofTemplate = prepare<[string, string], StoredEntry>(
    `${columns} where instr(body, ?) and body ->> '$[#-1]' = ? order by seq`,
  );
  const mentioning = prepare<[string], StoredEntry>(`${columns} where instr(body, ?) order by seq`);
  const decided = prepare<[], StoredEntry>(
    `${columns} where body like '["decision"%' order by seq`,
  );
  const signed = prepare<[], Checkpoint>(
    'select seq, hash, at, public_key publicKey, signature from checkpoint order by seq',
  );
  const lastKey = prepare<[], { key: string }>(
    'select public_key key from checkpoint order by seq desc limit 1',
  );
  const reached = prepare<[string], { id: number }>('select id from reached where writer = ?');
  const setReached = prepare<Reached>('insert or replace into reached values (@writer, @id)');
  const run = prepare<[string], { seq: number }>('select seq from run where id = ?');
  const addRun = prepare<[string, number]>('insert or replace into run values (?, ?)');
  return {
    hashAt: (seq: number) => (seq === 0 ? firstHash : hashAt.get(seq)?.hash),
    entries: (after = 0) => entries.iterate(after),
    newest: (count: number, before = Number.MAX_SAFE_INTEGER) => newest.all(before, count),
    about: ({ id }: Person) => about.all(id),
    aboutTemplate: (key: Key) => ofTemplate.all(JSON.stringify(key), key),
    aboutPlan: (hash: string) =>
      mentioning.all(JSON.stringify(hash)).filter((row) => isAbout(row, hash)),
    decisions: () => decided.all(),
    entriesSince: (at: number) => since.iterate(at),
    checkpoints: () => signed.all(),
    lastKey: () => lastKey.get()?.key,
    reached: (writer: string) => reached.get(writer)?.id ?? 0,
    setReached: (one: Reached) => void setReached.run(one),
    runNumber: (id: string) => run.get(id)?.seq ?? 0,
    knowsRun: (id: string) => run.get(id) !== undefined,
    addRun: (id: string, seq: number) => void addRun.run(id, seq),
  };
}

function isAbout({ body }: StoredEntry, plan: string): boolean {
  const entry = entryIn(body);
  if (entry?.type === 'write') return entry.approval === plan;
  return entry?.type === 'decision' && entry.about === plan;
}

/** Signs the last entry of the log with this id, unless it is signed. */
function signIn(
  { prepare }: Statements,
  id: string,
  key: SigningKey,
  signed: Head & { at: number },
) {
  const { seq, hash, at } = signed;
  if (seq === 0) return;
  const put = prepare<[number, Buffer, number, string, Buffer]>(
    `insert or ignore into checkpoint (seq, hash, at, public_key, signature)
     values (?, ?, ?, ?, ?)`,
  );
  const signature = key.sign(checkpointText(id, { seq, hash, at }));
  put.run(seq, hash, at, key.publicKey, signature);
}

/** The most time that counts between two checkpoints. */
const mostBetweenMs = 31 * 86_400_000;

/**
 * Removes the entries before `before`, as far as the checkpoints show that this much time has
 * passed. Returns how many. The last entry always stays, because the next one follows its hash.
 *
 * The clock alone does not decide what is old: if it jumps ahead by years, the whole log would go.
 * The log counts time by its own checkpoints, of which each run that writes makes one: between two
 * of them, at most 31 days count. So a jump ages the log by 31 days, however far it goes. After a
 * pause of more than 31 days, entries stay longer. Times are in milliseconds since the epoch.
 * `note` appends the entry that names the last one that is removed.
 */
function pruneIn(
  { prepare }: Statements,
  { before, at }: { before: number; at: number },
  note: (removed: { at: number; upTo: number; hash: string }) => void,
): number {
  const signed = prepare<[], { seq: number; at: number }>(
    'select seq, at from checkpoint order by seq desc',
  );
  // The last entry that is old enough by the time that counts.
  let lastAged = 0;
  let age = 0;
  let later = at;
  for (const { seq, at: earlier } of signed.iterate()) {
    age += Math.min(Math.max(later - earlier, 0), mostBetweenMs);
    if (age >= at - before) {
      lastAged = seq;
      break;
    }
    later = earlier;
  }
  const upTo = prepare<[number, number], Head>(
    `select seq, hash from entry
     where seq < ifnull((select min(seq) from entry where body ->> 1 >= ?), seq + 1)
       and seq < (select max(seq) from entry) and seq <= ? order by seq desc limit 1`,
  ).get(before, lastAged);
  if (!upTo) return 0;
  note({ at, upTo: upTo.seq, hash: upTo.hash.toString('hex') });
  prepare<[number]>('delete from checkpoint where seq <= ?').run(upTo.seq);
  prepare<[number]>('delete from run where seq <= ?').run(upTo.seq);
  return prepare<[number]>('delete from entry where seq <= ?').run(upTo.seq).changes;
}

const version = 1;

/** What a log needs besides its file. */
export interface AuditOpening {
  path: string;
  /** The secret that finds the people, 32 bytes; it comes from the do-not-contact list's key. */
  secret: Buffer;
  randomHex(bytes: number): string;
}

/**
 * Opens the log in the file `<snapshot>-audit`, beside the snapshot, for appending; creates it
 * (0600) if there is none. Throws Invalid and Busy.
 */
export function openAuditLog({ path, secret, randomHex }: AuditOpening): AuditLog {
  if (!existsSync(path)) {
    // A new log is made whole or not at all: a full disk leaves nothing of it.
    const part = `${path}.part`;
    rmSync(part, { force: true });
    const made = openToWrite(part, 'the audit log');
    try {
      begin(made, part, randomHex);
    } finally {
      made.close();
    }
    // Those of a log that is gone do not belong to this one.
    for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
    renameSync(part, path);
  }
  const db = openToWrite(path, 'the audit log');
  const patiently = waiterFor(db, path, { what: 'audit log' });
  try {
    const id = patiently(() => {
      db.pragma('journal_mode = WAL');
      db.pragma('synchronous = FULL');
      // A dropped key must not stay in a free page.
      db.pragma('secure_delete = ON');
      return begin(db, path, randomHex);
    });
    return auditLogIn(db, { id, secret, patiently });
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens the log for reading; undefined if there is none. Throws Invalid. */
export function readAuditLog({
  path,
  secret,
}: {
  path: string;
  secret: Buffer;
}): AuditLog | undefined {
  if (!existsSync(path)) return undefined;
  const db = openToLook(path, { what: 'audit log' });
  try {
    if (versionOf(db, path) === 0) {
      db.close();
      return undefined;
    }
    const patiently = waiterFor(db, path, { what: 'audit log' });
    return auditLogIn(db, { id: idOf(db), secret, patiently });
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Creates the tables of an empty file. Returns the id of the log. */
function begin(db: Database.Database, path: string, randomHex: AuditOpening['randomHex']): string {
  const create = db.transaction(() => {
    if (versionOf(db, path) > 0) return;
    db.exec(auditTables);
    db.prepare(`insert into meta values ('id', ?)`).run(randomHex(8));
    db.pragma(`user_version = ${version}`);
  });
  if (versionOf(db, path) === 0) create.exclusive();
  return idOf(db);
}

function versionOf(db: Database.Database, path: string): number {
  const found = Number(db.pragma('user_version', { simple: true }));
  if (found <= version) return found;
  throw new Invalid(`${path}: this audit log was written by a newer version of crm-mirror`, {
    fix: 'run that version',
  });
}

function idOf(db: Database.Database): string {
  const get = db.prepare<[], { value: string }>(`select value from meta where name = 'id'`);
  return get.get()?.value ?? '';
}
