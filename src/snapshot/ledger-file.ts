/**
 * How a ledger is found, made and refused. Its id stands in the snapshot; its key in a file of its
 * own. Whoever writes makes the key, the ledger and then the snapshot's note of it, in this order,
 * so that a crash between them leaves a ledger that the next start takes over.
 */
import { chmodSync, existsSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Invalid } from '../model/errors.ts';
import { moveAside } from './aside.ts';
import { check, isDamage } from './damage.ts';
import { ledgerIn, ledgerTables, type Ledger } from './ledger.ts';
import { keyedHash, readKey, secretOf, writeKey } from './ledger-key.ts';
import { patienceMs, waiterFor, type Wait } from './patience.ts';

export interface LedgerPlace {
  path: string;
  /** The file of its key; made at first use. */
  keyFile: string;
}

export interface Opening {
  named: string | undefined;
  acceptLost: boolean;
  /** So many bytes that nobody can guess, as hexadecimal digits. */
  randomHex(bytes: number): string;
}

const version = 1;

/**
 * Opens the ledger of a snapshot that names `named` (undefined: none yet), making it and its key
 * (0600) where neither snapshot nor disk knows of one; a good one beside a snapshot that names none
 * is taken over. Throws Invalid where what the snapshot names is not there, or its key is not, or
 * it is damaged; what turns out to be so only later is Invalid then. With
 * `acceptLost` what cannot be used is set aside then, and a new one made. Throws Busy.
 */
export function openLedger(place: LedgerPlace, { named, acceptLost, randomHex }: Opening): Ledger {
  const found = find(place);
  const fault = faultOf(place, found, named);
  const isLost = fault !== undefined && !found.isSound;
  if (fault !== undefined && !acceptLost) {
    found.db?.close();
    throw lost(fault);
  }
  if (found.db && !isLost) return opened(place, found);
  found.db?.close();
  if (isLost) {
    setAside(place.path);
    if (found.key === undefined) setAside(place.keyFile);
  }
  const key = found.key ?? randomHex(32);
  if (found.key === undefined) writeKey(place.keyFile, key);
  return make(place.path, { key, id: randomHex(8) });
}

/** The same for looking: makes nothing; where there is none yet, an empty one stands in. */
export function lookIntoLedger(place: LedgerPlace, named: string | undefined): Ledger {
  const found = find(place, { readonly: true });
  const fault = faultOf(place, found, named);
  if (fault !== undefined) {
    found.db?.close();
    throw lost(fault);
  }
  return found.db ? opened(place, found) : ledgerInMemory();
}

/** Leaves nothing behind. */
export function ledgerInMemory(): Ledger {
  const db = new Database(':memory:');
  const made = { id: '', key: '00' };
  begin(db, made);
  return ledgerIn(db, { ...made, patiently: (work) => work() });
}

/** What is there. `isSound`: the ledger and its key belong together. */
interface Found {
  db: Database.Database | undefined;
  key: string | undefined;
  id: string;
  isSound: boolean;
  unreadable: boolean;
}

function find({ path, keyFile }: LedgerPlace, { readonly = false } = {}): Found {
  refuseFolder(path, 'the ledger');
  refuseFolder(keyFile, 'the key of the ledger');
  const key = readKey(keyFile);
  const none = { db: undefined, key, id: '', isSound: false, unreadable: false };
  if (!existsSync(path)) return none;
  const db = new Database(path, { readonly, timeout: patienceMs });
  const patiently = waiterFor(db, path, 'ledger');
  try {
    return patiently(() => {
      const at = Number(db.pragma('user_version', { simple: true }));
      if (at > version) throw newer(path);
      if (at === 0) {
        // Its making was cut off: nothing was ever in it.
        db.close();
        return none;
      }
      // It is small beside the snapshot; and what is broken is given up here, or never.
      if (!readonly) check(db);
      const id = metaOf(db, 'id');
      const isSound = key !== undefined && metaOf(db, 'proof') === proofOf(key, id);
      return { ...none, db, id, isSound };
    });
  } catch (error) {
    db.close();
    if (!isDamage(error)) throw error;
    return { ...none, unreadable: true };
  }
}

function faultOf(
  { path, keyFile }: LedgerPlace,
  { db, key, id, isSound, unreadable }: Found,
  named: string | undefined,
): string | undefined {
  if (unreadable) return damageOf(path);
  if (!db && named !== undefined) return `${path}: the ledger of this snapshot is missing`;
  if (db && !existsSync(keyFile)) return `${keyFile}: the key of the ledger is missing`;
  if (existsSync(keyFile) && key === undefined) {
    return `${keyFile}: this is no key of a ledger (64 hexadecimal characters)`;
  }
  if (!db) return undefined;
  if (!isSound) return `${keyFile}: this is not the key of the ledger ${path}`;
  if (named === undefined || named === id) return undefined;
  return `${path}: this ledger is another than the one the snapshot knows`;
}

function damageOf(path: string): string {
  return `${path}: this ledger is damaged, it is not a readable database`;
}

function refuseFolder(path: string, what: string): void {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new Invalid(`${path}: this is a folder, and ${what} is a file → move the folder away`);
}

function lost(fault: string): Invalid {
  return new Invalid(
    `${fault}; without it people who left may be written to again → restore it, ` +
      'or give up what it knew with --accept-lost-ledger',
  );
}

function newer(path: string): Invalid {
  return new Invalid(
    `${path}: this ledger was written by a newer version of crm-mirror → run that version`,
  );
}

function opened({ path }: LedgerPlace, { db, key, id }: Found): Ledger {
  if (!db || key === undefined) throw new TypeError('a ledger without its key is refused before');
  const patiently = soundly(db, path);
  try {
    return patiently(() => {
      if (!db.readonly) settle(db);
      return ledgerIn(db, { id, key, patiently });
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Its damage is Invalid, lest it be taken for that of the snapshot. */
function soundly(db: Database.Database, path: string): Wait {
  const patiently = waiterFor(db, path, 'ledger');
  return (work) => {
    try {
      return patiently(work);
    } catch (error) {
      throw isDamage(error) ? lost(damageOf(path)) : error;
    }
  };
}

function settle(db: Database.Database): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
}

function make(path: string, made: { id: string; key: string }): Ledger {
  const db = new Database(path, { timeout: patienceMs });
  try {
    chmodSync(path, 0o600);
    const patiently = soundly(db, path);
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

/** Gives an empty database its tables and its id, and the proof of its key. */
function begin(db: Database.Database, { id, key }: { id: string; key: string }): void {
  const work = db.transaction(() => {
    db.exec(ledgerTables);
    const set = db.prepare('insert into meta (name, value) values (?, ?)');
    set.run('id', id);
    set.run('proof', proofOf(key, id));
    db.pragma(`user_version = ${version}`);
  });
  work.exclusive();
}

function proofOf(key: string, id: string): string {
  return keyedHash(secretOf(key), 'ledger', id);
}

function metaOf(db: Database.Database, name: string): string {
  const get = db.prepare<[string], { value: string }>('select value from meta where name = ?');
  return get.get(name)?.value ?? '';
}

/** What cannot be used is kept all the same. */
function setAside(path: string): void {
  moveAside(path, (count) => `${path}-lost-${count}`);
}
