/**
 * The memory of a mirror: what outlives its snapshot, in one file beside it, `<snapshot>-memory`.
 * It holds the do-not-contact list, the audit log and the request log; its key is in a file of its
 * own. The snapshot knows the memory's id. A writer creates the key, the memory and then the
 * snapshot's reference to it, in this order, so that a crash in between leaves a memory that the
 * next start takes over. Only the process that has the mirror's lease writes.
 *
 * The snapshot also knows how often the do-not-contact list was written, and learns of a write only
 * once it is on disk. Therefore:
 *
 *   the list was written      when                                        result
 *   more often than it knows  after a crash, or with a restored snapshot  the memory is used
 *   as often                  otherwise                                   the memory is used
 *   less often                an older copy was put back, or the last     Invalid: later opt-outs
 *                             writes were lost                            are missing
 */
import { createHmac } from 'node:crypto';
import { existsSync, renameSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Busy, Invalid } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { counted } from '../../domain/values/counted.ts';
import { check, isDamage } from '../damage-check.ts';
import {
  openToLook,
  openToWrite,
  refuseNoFile,
  setPragmas,
  type Wait,
  waiterFor,
} from '../database/database-access.ts';
import { type BackupPart, copyOf } from '../database/database-backup.ts';
import { metaIn } from '../database/meta-table.ts';
import { statementsOf, transactionsOf } from '../database/prepared-statements.ts';
import { hasHeader, headerOf, moveAside } from '../database/snapshot-folder.ts';
import { auditLogIn, auditTables } from './audit-log.ts';
import { doNotContactIn, doNotContactTables, writesIn } from './do-not-contact.ts';
import {
  createMemoryKey,
  keyFor,
  type MemoryKey,
  newMemoryKey,
  readMemoryKey,
} from './memory-key.ts';
import { tablesOf } from './memory-tables.ts';
import { requestsIn, requestTable } from './requests.ts';

export interface MemoryPlace {
  path: string;
  /** The file of its key, created on first use. */
  keyFile: string;
  /** How long a lock is waited for, in milliseconds; by default five seconds. */
  timeoutMs?: number | undefined;
}

/** What a snapshot knows about its memory. */
export interface KnownMemory {
  id: string;
  /** How often the do-not-contact list was written at least. */
  reached: number;
}

export interface Opening {
  /** Undefined if the snapshot does not know a memory yet. */
  known: KnownMemory | undefined;
  /** Whether an unusable memory is replaced with a new one. */
  acceptLost: boolean;
  /** Returns random bytes as hexadecimal digits. */
  randomHex(bytes: number): string;
}

/** Everything that reads or writes it throws Busy, and Invalid if it is damaged. */
export type Memory = ReturnType<typeof memoryIn>;

const version = 1;
const waiting = { what: 'memory' };

/**
 * Opens the memory that a snapshot knows. Creates it and its key (0600) if neither the snapshot nor
 * the disk has one, and takes over a valid memory that the snapshot does not know.
 *
 * Throws Invalid, immediately or later, if the memory or its key is missing, damaged, or older than
 * the snapshot knows. With `acceptLost`, an unusable memory is moved aside instead and a new one is
 * created; an older one continues under another id, so that it is not mistaken for the lost one
 * later. Throws Busy.
 */
export function openMemory(place: MemoryPlace, { known, acceptLost, randomHex }: Opening): Memory {
  const { path, keyFile } = place;
  const found = find(place);
  const fault = faultOf(place, found, known);
  const isLost = fault !== undefined && !found.isSound;
  if (fault !== undefined && (!acceptLost || isLost)) found.db?.close();
  if (fault !== undefined && !acceptLost) throw fault;
  if (!acceptLost) refuseLost(place);
  if (isLost) {
    // What the snapshot does not know may be the file of another program.
    const strange = [
      found.unreadable && !hasHeader(headerOf(path)) && path,
      found.key === undefined && existsSync(keyFile) && keyFile,
    ].find((file) => file !== false);
    if (known === undefined && strange !== undefined) {
      throw new Invalid(`${strange}: nothing shows that it belongs to a memory`, {
        fix: 'move it away',
      });
    }
    for (const file of [path, ...(found.key === undefined ? [keyFile] : [])])
      moveAside(file, (count) => `${file}-lost-${count}`);
  }
  const isNew = isLost || found.db === undefined;
  const key = isNew || !found.key ? create(place, found.key, randomHex) : found.key;
  const db = isNew || !found.db ? openToWrite(path, 'the memory') : found.db;
  try {
    const patiently = soundly(db, path);
    return patiently(() => {
      setPragmas(db);
      db.pragma('secure_delete = ON'); // What is deleted must not stay in free pages.
      if (isBehind(found, known)) {
        const next = randomHex(8);
        transactionsOf(db).immediate(() => name(db, next, key));
      }
      return memoryIn(db, key, patiently);
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Opens the memory for reading and creates nothing; returns undefined if there is none. Throws like
 * `openMemory`; a caller that passes nothing in `known` accepts every memory that its key fits.
 */
export function readMemory(place: MemoryPlace, known?: KnownMemory): Memory | undefined {
  const found = find(place, { readonly: true });
  const { db, key } = found;
  try {
    const fault = faultOf(place, found, known);
    if (fault !== undefined) throw fault;
    return db && key && memoryIn(db, key, soundly(db, place.path));
  } catch (error) {
    db?.close();
    throw error;
  }
}

/** Throws Invalid if there is no memory although the key was made with one. */
export function refuseLost({ path, keyFile }: MemoryPlace): void {
  // Another process that makes them begins the part, writes the key, and renames the part last.
  if (readMemoryKey(keyFile)?.madeFor !== path) return;
  if (![partOf(path), path].some((file) => existsSync(file)))
    throw lost(`${path}: the memory is missing that ${keyFile} was made for`);
}

/** Calls `read` with the memory, and closes it; returns undefined if there is none. */
export function withMemory<T>(
  place: MemoryPlace,
  read: (memory: Memory) => T,
  known?: KnownMemory,
): T | undefined {
  const memory = readMemory(place, known);
  try {
    return memory && read(memory);
  } finally {
    memory?.close();
  }
}

/** Returns an empty memory without a file; its id is ''. */
export function memoryWithoutFile(): Memory {
  const db = new Database(':memory:');
  const key = newMemoryKey();
  fill(db, key, '');
  return memoryIn(db, key, (work) => work());
}

function memoryIn(db: Database.Database, key: MemoryKey, patiently: Wait) {
  const tables = tablesOf(db, key, patiently);
  const doNotContact = doNotContactIn(tables);
  const log = auditLogIn(tables, key.signing);
  const requests = requestsIn(tables);
  const truncateLog = tables.value<[], number>('pragma wal_checkpoint(truncate)');
  return {
    id: tables.id,
    list: doNotContact.list,
    log,
    requests,
    key,
    /**
     * Removes what the memory has of a person, all of it or nothing: the key in the audit log, the
     * requests, also those about these contacts, and the notes in the do-not-contact list. What
     * protects the person stays. Throws Busy while another process reads what was removed.
     */
    forget(
      { key: person, contacts }: { key: Key; contacts: readonly string[] },
      { at, by }: { at: number; by: string },
    ): void {
      tables.immediately(() => {
        log.erase(person, at, by);
        requests.forget(person, contacts);
        doNotContact.forgetTexts(person);
      });
      // What was overwritten must not stay in the write-ahead log.
      if (truncateLog() === 0) return;
      throw new Busy(`${db.name}: another process reads the memory, so it still has the person`, {
        fix: 'run it again',
      });
    },
    forgetRequests: (): void => {
      if (requests.clear()) truncateLog();
    },
    /** Writes a complete and verified copy to `file`. Throws Invalid, and the signal's reason. */
    copy: async (file: string, signal: AbortSignal): Promise<BackupPart> =>
      copyOf(db, file, { signal }),
    close: () => void db.close(),
  };
}

/** The files found on disk. `isSound`: the memory and its key belong together. */
interface Found {
  db: Database.Database | undefined;
  key: MemoryKey | undefined;
  id: string;
  reached: number;
  isSound: boolean;
  unreadable: boolean;
}

function find({ path, keyFile, timeoutMs }: MemoryPlace, { readonly = false } = {}): Found {
  refuseNoFile(path, 'the memory');
  refuseNoFile(keyFile, 'the key of the memory');
  const key = readMemoryKey(keyFile);
  const none = { db: undefined, key, id: '', reached: 0, isSound: false, unreadable: false };
  if (!existsSync(path)) return none;
  const db = readonly
    ? openToLook(path, { ...waiting, timeoutMs })
    : openToWrite(path, 'the memory');
  try {
    return waiterFor(db, path, { ...waiting, timeoutMs })(() => {
      const at = Number(db.pragma('user_version', { simple: true }));
      if (at > version) {
        const reason = `${path}: this memory was written by a newer version of crm-mirror`;
        throw new Invalid(reason, { fix: 'run that version' });
      }
      if (at === 0) {
        // It is created whole, so this is what a full disk or a broken copy has left.
        db.close();
        return { ...none, unreadable: true };
      }
      // The list is small compared with the snapshot, and damage that is not found here is never
      // found. `audit verify` and each backup prove the rest.
      if (!readonly) for (const table of ['do_not_contact', 'bearer']) check(db, table);
      const meta = metaIn(statementsOf(db));
      const id = meta.get('id') ?? '';
      const isSound = key !== undefined && meta.get('proof') === proofOf(key, id);
      return { ...none, db, id, isSound, reached: writesIn(meta) };
    });
  } catch (error) {
    db.close();
    if (!isDamage(error)) throw error;
    return { ...none, unreadable: true };
  }
}

function faultOf(
  { path, keyFile }: MemoryPlace,
  found: Found,
  known: KnownMemory | undefined,
): Invalid | undefined {
  const { db, key, id, isSound, unreadable } = found;
  if (unreadable) return damageOf(path);
  if (!db && known) return lost(`${path}: the memory of this snapshot is missing`);
  if (db && !existsSync(keyFile)) return lost(`${keyFile}: the key of the memory is missing`);
  if (existsSync(keyFile) && key === undefined)
    return lost(`${keyFile}: this is no key of a memory (Ed25519, PEM)`);
  if (!db) return undefined;
  if (!isSound) return lost(`${keyFile}: this is not the key of the memory ${path}`);
  if (isBehind(found, known)) {
    const writes = counted(known?.reached ?? 0, 'write');
    return new Invalid(
      `${path}: this memory is older than its snapshot, which knows of ${writes} to its ` +
        `do-not-contact list where this one has ${found.reached}; people who opted out since may be ` +
        'written to again',
      {
        fix:
          'put the newest one back, or go on with this one, and with what the snapshot still knows, ' +
          'by --accept-lost-ledger',
      },
    );
  }
  if (known === undefined || known.id === id) return undefined;
  return lost(`${path}: this is another memory than the one of the snapshot`);
}

function isBehind({ id, reached }: Found, known: KnownMemory | undefined): boolean {
  // What is not a number any more proves nothing.
  return known?.id === id && !(reached >= known.reached);
}

function damageOf(path: string): Invalid {
  return lost(`${path}: this memory is damaged, it is not a readable database`);
}

function lost(fault: string): Invalid {
  return new Invalid(`${fault}; without it people who opted out may be written to again`, {
    fix: 'restore it, or give up what it knew with --accept-lost-ledger',
  });
}

/** Turns damage of the memory into Invalid, so that it is not taken for damage of the snapshot. */
function soundly(db: Database.Database, path: string): Wait {
  const patiently = waiterFor(db, path, waiting);
  return (work) => {
    try {
      return patiently(work);
    } catch (error) {
      throw isDamage(error) ? damageOf(path) : error;
    }
  };
}

/**
 * Creates an empty memory, and its key if there is none, whole or not at all: a full disk leaves
 * nothing of it. Until the memory has its name, the part of it shows that the key was never used.
 */
function create(
  { path, keyFile }: MemoryPlace,
  found: MemoryKey | undefined,
  randomHex: Opening['randomHex'],
): MemoryKey {
  const part = partOf(path);
  const ends = ['', '-journal', '-wal', '-shm'];
  const removeAll = (file: string): void =>
    ends.forEach((end) => rmSync(`${file}${end}`, { force: true }));
  removeAll(part);
  try {
    let key = found;
    const db = openToWrite(part, 'the memory');
    try {
      key ??= createMemoryKey(keyFile, path);
      fill(db, key, randomHex(8));
    } finally {
      db.close();
    }
    // What lies beside a file that is gone does not belong to this one.
    removeAll(path);
    renameSync(part, path);
    return key;
  } catch (error) {
    if (!found) rmSync(keyFile, { force: true });
    throw error;
  } finally {
    removeAll(part);
  }
}

const partOf = (path: string): string => `${path}.part`;

function fill(db: Database.Database, key: MemoryKey, id: string): void {
  transactionsOf(db).immediate(() => {
    db.exec('create table meta (name text primary key, value text not null) without rowid');
    db.exec(doNotContactTables + auditTables + requestTable);
    name(db, id, key);
    metaIn(statementsOf(db)).set('log', id);
    db.pragma(`user_version = ${version}`);
  });
}

/** Gives the memory an id, and proves with it that the key belongs to it. */
function name(db: Database.Database, id: string, key: MemoryKey): void {
  const { set } = metaIn(statementsOf(db));
  set('id', id);
  set('proof', proofOf(key, id));
}

function proofOf({ secret }: MemoryKey, id: string): string {
  return createHmac('sha256', keyFor('crm-mirror memory 1', secret)).update(id).digest('hex');
}
