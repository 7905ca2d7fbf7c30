/**
 * Finds, creates and refuses the do-not-contact list. The snapshot knows the list's id; the list's
 * key is in a separate file. A writer creates the key, the list and then the snapshot's reference
 * to it, in this order, so that a crash in between leaves a list that the next start takes over.
 *
 * The snapshot also knows how often the list was written, and learns of a write only once it is on
 * disk. Therefore:
 *
 *   the list was written      when                                        result
 *   more often than it knows  after a crash, or with a restored snapshot  the list is used
 *   as often                  otherwise                                   the list is used
 *   less often                an older copy was put back, or the last     Invalid: later opt-outs
 *                             writes were lost                            are missing
 */
import { chmodSync, existsSync } from 'node:fs';
import { Invalid } from '../../domain/errors.ts';
import { moveAside } from '../database/snapshot-folder.ts';
import { check, isDamage } from '../damage-check.ts';
import {
  onDisk,
  openToLook,
  patienceMs,
  refuseNoFile,
  type Wait,
  waiterFor,
} from '../database/database-access.ts';
import { counting, type DoNotContactList, ledgerIn, ledgerTables } from './contact-list.ts';
import { hasher, type LedgerPlace, readKey, writeKey } from './list-key.ts';
import { statementsOf } from '../database/prepared-statements.ts';
import Database from 'better-sqlite3';
import { counted } from '../../domain/values/counted.ts';

/** What a snapshot knows about its list. */
export interface KnownLedger {
  id: string;
  /** The minimum number of times that it was written. */
  reached: number;
}

/** The options for opening a list for writing. */
export interface Opening {
  /** Undefined if the snapshot does not know a list yet. */
  known: KnownLedger | undefined;
  /** Whether an unusable list is replaced with a new one. */
  acceptLost: boolean;
  /** Returns random bytes as hexadecimal digits. */
  randomHex(bytes: number): string;
}

const version = 1;

/**
 * Opens the list that a snapshot knows. Creates the list and its key (0600) if neither the snapshot
 * nor the disk has one, and takes over a valid list that the snapshot does not know.
 *
 * Throws Invalid, immediately or later, if the list or its key is missing, damaged, or older than
 * the snapshot knows. With `acceptLost`, an unusable list is moved aside instead and a new one is
 * created; an older list continues under another id, so that it is not mistaken for the lost one
 * later. Throws Busy.
 */
export function openDoNotContactList(
  place: LedgerPlace,
  { known, acceptLost, randomHex }: Opening,
): DoNotContactList {
  const found = find(place);
  const fault = faultOf(place, found, known);
  const isLost = fault !== undefined && !found.isSound;
  if (fault !== undefined && !acceptLost) {
    found.db?.close();
    throw fault;
  }
  if (found.db && !isLost) {
    return opened(place, isBehind(found, known) ? { ...found, renamed: randomHex(8) } : found);
  }
  found.db?.close();
  if (isLost) {
    setAside(place.path);
    if (found.key === undefined) setAside(place.keyFile);
  }
  const key = found.key ?? randomHex(32);
  if (found.key === undefined) writeKey(place.keyFile, key);
  const made = { key, id: randomHex(8) };
  const db = open(place.path);
  try {
    chmodSync(place.path, 0o600);
    const patiently = soundly(db, place.path);
    patiently(() => {
      settle(db);
      begin(db, made);
    });
    return ledgerIn(db, { ...made, patiently });
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Opens the list for reading and creates nothing; returns an empty list if there is none. Throws
 * like `openDoNotContactList`.
 */
export function readDoNotContactList(
  place: LedgerPlace,
  known: KnownLedger | undefined,
): DoNotContactList {
  const found = find(place, { readonly: true });
  const fault = faultOf(place, found, known);
  if (fault !== undefined) {
    found.db?.close();
    throw fault;
  }
  return found.db ? opened(place, found) : ledgerInMemory();
}

/** Returns an empty list in memory; its contents are lost when it is closed. */
export function ledgerInMemory(): DoNotContactList {
  const db = new Database(':memory:');
  const made = { id: '', key: '00' };
  begin(db, made);
  return ledgerIn(db, { ...made, patiently: (work) => work() });
}

/** The files found on disk. `isSound`: the list and its key belong together. */
interface Found {
  db: Database.Database | undefined;
  key: string | undefined;
  id: string;
  reached: number;
  isSound: boolean;
  unreadable: boolean;
  /** The id that the list gets from now on. */
  renamed?: string;
}

function find({ path, keyFile, timeoutMs }: LedgerPlace, { readonly = false } = {}): Found {
  refuseNoFile(path, 'the do-not-contact list');
  refuseNoFile(keyFile, 'the key of the do-not-contact list');
  const key = readKey(keyFile);
  const none = { db: undefined, key, id: '', reached: 0, isSound: false, unreadable: false };
  if (!existsSync(path)) return none;
  const waiting = { what: 'do-not-contact list', timeoutMs };
  const db = readonly ? openToLook(path, waiting) : open(path);
  const patiently = waiterFor(db, path, waiting);
  try {
    return patiently(() => {
      const at = Number(db.pragma('user_version', { simple: true }));
      if (at > version) {
        const reason = `${path}: this do-not-contact list was written by a newer version of crm-mirror`;
        throw new Invalid(reason, { fix: 'run that version' });
      }
      if (at === 0) {
        // Its creation was interrupted, so it never contained anything.
        db.close();
        return none;
      }
      // The list is small compared with the snapshot, and damage that is not found here is never
      // found.
      if (!readonly) check(db);
      const id = metaOf(db, 'id');
      const isSound = key !== undefined && metaOf(db, 'proof') === proofOf(key, id);
      return { ...none, db, id, isSound, reached: counting(statementsOf(db)).reached() };
    });
  } catch (error) {
    db.close();
    if (!isDamage(error)) throw error;
    return { ...none, unreadable: true };
  }
}

function faultOf(
  { path, keyFile }: LedgerPlace,
  found: Found,
  known: KnownLedger | undefined,
): Invalid | undefined {
  const { db, key, id, isSound, unreadable } = found;
  if (unreadable) return damageOf(path);
  if (!db && known) return lost(`${path}: the do-not-contact list of this snapshot is missing`);
  if (db && !existsSync(keyFile))
    return lost(`${keyFile}: the key of the do-not-contact list is missing`);
  if (existsSync(keyFile) && key === undefined) {
    return lost(`${keyFile}: this is no key of a do-not-contact list (64 hexadecimal characters)`);
  }
  if (!db) return undefined;
  if (!isSound) return lost(`${keyFile}: this is not the key of the do-not-contact list ${path}`);
  if (isBehind(found, known)) {
    return new Invalid(
      `${path}: this do-not-contact list is older than its snapshot, which knows of ${counted(known?.reached ?? 0, 'write')} ` +
        `to it where this one has ${found.reached}; people who opted out since may be written to again`,
      {
        fix:
          'put the newest one back, or go on with this one, and with what the snapshot still knows, ' +
          'by --accept-lost-ledger',
      },
    );
  }
  if (known === undefined || known.id === id) return undefined;
  return lost(`${path}: this is another do-not-contact list than the one of the snapshot`);
}

function isBehind({ id, reached }: Found, known: KnownLedger | undefined): boolean {
  return known?.id === id && reached < known.reached;
}

function damageOf(path: string): Invalid {
  return lost(`${path}: this do-not-contact list is damaged, it is not a readable database`);
}

function lost(fault: string): Invalid {
  return new Invalid(`${fault}; without it people who opted out may be written to again`, {
    fix: 'restore it, or give up what it knew with --accept-lost-ledger',
  });
}

function opened({ path }: LedgerPlace, { db, key, id, renamed }: Found): DoNotContactList {
  if (!db || key === undefined)
    throw new TypeError('a do-not-contact list without its key is refused before');
  const patiently = soundly(db, path);
  try {
    return patiently(() => {
      if (!db.readonly) settle(db);
      if (renamed !== undefined) db.transaction(() => name(db, renamed, key)).immediate();
      return ledgerIn(db, { id: renamed ?? id, key, patiently });
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Returns a wait that turns damage of the list into Invalid, so that it is not taken for damage of
 * the snapshot.
 */
function soundly(db: Database.Database, path: string): Wait {
  const patiently = waiterFor(db, path, { what: 'do-not-contact list' });
  return (work) => {
    try {
      return patiently(work);
    } catch (error) {
      throw isDamage(error) ? damageOf(path) : error;
    }
  };
}

function open(path: string): Database.Database {
  return onDisk(path, () => new Database(path, { timeout: patienceMs }));
}

function settle(db: Database.Database): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma('secure_delete = ON'); // What an erasure deletes must not stay in free pages.
}

/** Creates the tables, the id and the proof of the key in an empty database. */
function begin(db: Database.Database, { id, key }: { id: string; key: string }): void {
  const create = (): void => {
    db.exec(ledgerTables);
    name(db, id, key);
    db.pragma(`user_version = ${version}`);
  };
  db.transaction(create).exclusive();
}

function name(db: Database.Database, id: string, key: string): void {
  const set = db.prepare('insert or replace into meta (name, value) values (?, ?)');
  set.run('id', id);
  set.run('proof', proofOf(key, id));
}

function proofOf(key: string, id: string): string {
  return hasher(key)('ledger', id);
}

function metaOf(db: Database.Database, name: string): string {
  const get = db.prepare<[string], { value: string }>('select value from meta where name = ?');
  return get.get(name)?.value ?? '';
}

function setAside(path: string): void {
  moveAside(path, (count) => `${path}-lost-${count}`);
}
