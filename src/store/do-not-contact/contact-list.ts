/**
 * The do-not-contact list (the ledger): the facts to remember about people whose record is gone, in
 * a separate file that outlives the snapshot. It stores keyed hashes of addresses and of CRM ids,
 * never an address or an id. Ended entries are kept, with the time and the reason, and no longer
 * count.
 *
 * The list counts how often it was written. If a snapshot knows of more writes than the list has,
 * the list is an older copy in which some opt-outs are missing.
 */
import type { Database } from 'better-sqlite3';
import type { Cause, Entry, Identity, ListRemark } from '../../domain/do-not-contact.ts';
import { hasher } from './list-key.ts';
import { type Hashes, noteName, taking } from './write-remarks.ts';
import { type BackupPart, copyOf } from '../database/database-backup.ts';
import type { Key } from '../../domain/record.ts';
import type { Wait } from '../database/database-access.ts';
import { type Statements, statementsOf } from '../database/prepared-statements.ts';

/** An open list. All methods throw Busy if another process locks the file for too long. */
export interface DoNotContactList {
  /** Identifies this list; the snapshot stores it. */
  readonly id: string;
  /**
   * Returns the entries that concern a person: those found by the address and, except for bounces,
   * those found by the CRM ids.
   */
  concerning(who: Identity): Entry[];
  /**
   * Stores all remarks or none; they are on disk when this returns. Storing an existing entry
   * changes nothing. `at` is the time in milliseconds since the epoch. Throws Busy as the
   * snapshot's transaction does.
   */
  write(remarks: Iterable<ListRemark>, at: number): void;
  /** Returns how often the list has been written. */
  reached(): number;
  /** Returns the number of the newest entry; later entries have greater numbers. */
  newest(): number;
  /** Returns the number of entries, ended ones included. */
  size(): number;
  /** After every later write, once it is on disk, calls `told` with the number of writes. */
  follow(told: (reached: number) => void): void;
  /**
   * Returns the same list with a separate follower, for another run of this process, because a
   * follower's work belongs to the transaction of the run that writes. It is closed together with
   * this one.
   */
  sibling(): DoNotContactList;
  /** Writes a complete and verified copy to `file`. Throws Invalid, and the signal's reason. */
  copy(file: string, signal: AbortSignal): Promise<BackupPart>;
  /**
   * Returns a function that returns whether an address was forgotten on request, or undefined if
   * none was.
   */
  erased(): ((key: Key) => boolean) | undefined;
  close(): void;
}

/** The SQL that creates the tables of an empty list. */
export const ledgerTables = `
  create table meta (name text primary key, value text not null) without rowid;
  insert into meta values ('reached', '0');
  create table entry (
    seq integer primary key,
    address text not null, part text not null, cause text not null,
    contact text not null, made_after integer, made_by integer not null,
    ended_at integer, ended text
  );
  create unique index entry_standing on entry (address, part, cause, contact)
    where ended_at is null;
  create table bearer (
    id text not null, entry integer not null references entry (seq), primary key (id, entry)
  ) without rowid;`;

interface Stored {
  seq: number;
  part: string;
  cause: Cause;
  contact: string;
  after: number | null;
  by: number;
  note: string | null;
}

const columns = `e.seq, e.part, e.cause, e.contact, e.made_after "after", e.made_by "by",
  (select value from meta where name = '${noteName}' || e.seq) note`;

/** Returns the list in an open database that has its tables. */
export function ledgerIn(
  db: Database,
  { id, key, patiently }: { id: string; key: string; patiently: Wait },
): DoNotContactList {
  const statements = statementsOf(db);
  const concerning = asking(statements);
  const { reached, raise } = counting(statements);
  const hash = hasher(key);
  const hashes = ({ key: address, ids }: Identity) => ({
    address: hash('address', address),
    ids: [...new Set(ids)].map((one) => hash('id', one)),
  });
  const newest = newestIn(statements);
  const erased = erasuresIn(statements, newest);
  const first = statements.prepare<[], { one: 1 }>('select 1 one from entry limit 1');
  const size = statements.prepare<[], { n: number }>('select count(*) n from entry');
  const isEmpty = (): boolean => first.get() === undefined;
  const shared = {
    id,
    // An empty list is not queried, because a first load queries it for all people.
    concerning: (who: Identity) => patiently(() => (isEmpty() ? [] : concerning(hashes(who)))),
    reached: () => patiently(reached),
    newest: () => patiently(newest),
    size: () => patiently(() => size.get()?.n ?? 0),
    copy: async (file: string, signal: AbortSignal) => copyOf(db, file, { signal }),
    erased: () => {
      const isErased = patiently(erased);
      return isErased && ((address: Key) => isErased(hash('address', address)));
    },
    close: () => void db.close(),
  };
  const take = taking(db, { hashes, raise, patiently });
  const open = (): DoNotContactList => {
    let tell = (_reached: number): void => undefined;
    return {
      ...shared,
      write(remarks, at) {
        const now = take(remarks, at);
        if (now !== undefined) tell(now);
      },
      follow: (told) => void (tell = told),
      sibling: open,
    };
  };
  return open();
}

/** Prepares the query for the entries that concern a person. */
function asking({ prepare }: Statements): (who: Hashes) => Entry[] {
  const ofAddress = prepare<[string], Stored>(
    `select ${columns} from entry e indexed by entry_standing
     where e.address = ? and e.ended_at is null order by e.seq`,
  );
  const ofId = prepare<[string, string], Stored>(
    `select ${columns} from bearer b join entry e on e.seq = b.entry
     where b.id = ? and e.ended_at is null and e.address <> ? order by e.seq`,
  );
  const isBorne = prepare<[string, number], { one: 1 }>(
    'select 1 one from bearer where id = ? and entry = ?',
  );
  return ({ address, ids }) => {
    const own = ofAddress.all(address).map((row): Entry => {
      const bears = row.cause === 'bounce' || ids.every((one) => isBorne.get(one, row.seq));
      return { ...row, contact: row.contact || null, through: 'address', bears };
    });
    const others = new Map(
      ids.flatMap((one) => ofId.all(one, address)).map((row) => [row.seq, row]),
    );
    return [
      ...own,
      ...[...others.values()].map((row): Entry => ({
        ...row,
        contact: row.contact || null,
        through: 'id',
        bears: true,
      })),
    ];
  };
}

/** Prepares the query for erasures by the hash of the address. */
function erasuresIn({ prepare }: Statements, newest: () => number) {
  const standing = `cause = 'erasure' and ended_at is null`;
  const any = prepare<[number], { one: 1 }>(
    `select 1 one from entry where seq > ? and ${standing} limit 1`,
  );
  const of = prepare<[string], { one: 1 }>(
    `select 1 one from entry indexed by entry_standing where address = ? and ${standing}`,
  );
  // The newest entry up to which no erasure exists. It is cached, because the list is queried for
  // all people and may be very long.
  let none = 0;
  return (): ((address: string) => boolean) | undefined => {
    const upTo = newest();
    // A smaller number means that another file has replaced the list.
    if (upTo < none) none = 0;
    if (any.get(none)) return (address) => of.get(address) !== undefined;
    none = upTo;
    return undefined;
  };
}

function newestIn({ prepare }: Statements): () => number {
  const newest = prepare<[], { seq: number }>('select coalesce(max(seq), 0) seq from entry');
  return () => newest.get()?.seq ?? 0;
}

/**
 * Reads and counts how often the list was written. Call `raise` within the transaction that writes.
 */
export function counting({ prepare }: Statements): { reached(): number; raise(): number } {
  const get = prepare<[], { value: string }>(`select value from meta where name = 'reached'`);
  const set = prepare<[string]>(`insert or replace into meta (name, value) values ('reached', ?)`);
  const reached = (): number => Number(get.get()?.value ?? 0);
  return {
    reached,
    raise() {
      const next = reached() + 1;
      set.run(String(next));
      return next;
    },
  };
}
