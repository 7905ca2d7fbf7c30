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
import type {
  Cause,
  Entry,
  Identity,
  ListChanges,
  ListRemark,
  RememberedOptOut,
} from '../../domain/do-not-contact.ts';
import { hasher } from './list-key.ts';
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

interface Hashes {
  address: string;
  ids: readonly string[];
}

interface Stored {
  seq: number;
  part: string;
  cause: Cause;
  contact: string;
  after: number | null;
  by: number;
  note: string | null;
}

/** The note on an entry is stored under this name and the number of the entry. */
const noteName = 'note ';

const columns = `e.seq, e.part, e.cause, e.contact, e.made_after "after", e.made_by "by",
  (select value from meta where name = '${noteName}' || e.seq) note`;

/** Returns the list in an open database that has its tables. */
export function ledgerIn(
  db: Database,
  { id, key, patiently }: { id: string; key: string; patiently: Wait },
): DoNotContactList {
  const statements = statementsOf(db);
  const concerning = prepareQuery(statements);
  const { reached, raise } = counting(statements);
  const hash = hasher(key);
  const hashes = ({ key: address, ids }: Identity) => ({
    address: hash('address', address),
    ids: [...new Set(ids)].map((one) => hash('id', one)),
  });
  const last = statements.prepare<[], { seq: number }>(
    'select coalesce(max(seq), 0) seq from entry',
  );
  const newest = () => last.get()?.seq ?? 0;
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
  const writeOne = prepareWrite(statements);
  /** Stores remarks, all or none. Returns the number of writes; undefined if there are none. */
  const writeAll = (remarks: Iterable<ListRemark>, at: number): number | undefined => {
    const rest = remarks[Symbol.iterator]();
    let step = rest.next();
    let erases = false;
    if (step.done) return undefined;
    const all = db.transaction(() => {
      for (; !step.done; step = rest.next()) {
        erases ||= step.value.adds.some(({ cause }) => cause === 'erasure');
        writeOne(hashes(step.value), step.value, at);
      }
      return raise();
    });
    const now = patiently(() => all.immediate());
    // The log may still contain what the erasure deleted. While another process reads the list, the
    // log keeps that until the list is closed.
    if (erases) patiently(() => void db.pragma('wal_checkpoint(truncate)'));
    return now;
  };
  const open = (): DoNotContactList => {
    let tell = (_reached: number): void => undefined;
    return {
      ...shared,
      write(remarks, at) {
        const now = writeAll(remarks, at);
        if (now !== undefined) tell(now);
      },
      follow: (told) => void (tell = told),
      sibling: open,
    };
  };
  return open();
}

function prepareQuery({ prepare }: Statements): (who: Hashes) => Entry[] {
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
      ids
        .flatMap((one) => ofId.all(one, address))
        .map((row): [number, Entry] => {
          const contact = row.contact || null;
          return [row.seq, { ...row, contact, through: 'id', bears: true }];
        }),
    );
    return [...own, ...others.values()];
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

/** Prepares the write of one remark. The caller provides the transaction. */
function prepareWrite({
  prepare,
}: Statements): (who: Hashes, what: ListChanges, at: number) => void {
  const add = prepare<
    Omit<RememberedOptOut, 'contact' | 'note'> & { address: string; contact: string },
    { seq: number }
  >(
    `insert into entry (address, part, cause, contact, made_after, made_by)
     values (@address, @part, @cause, @contact, @after, @by)
     on conflict (address, part, cause, contact) where ended_at is null
     do update set made_by = max(made_by, excluded.made_by) returning seq`,
  );
  const note = prepare<[string, string]>('insert or replace into meta (name, value) values (?, ?)');
  const noteAgain = prepare<[string, string]>(
    'insert or ignore into meta (name, value) select ?, value from meta where name = ?',
  );
  // A note may be about the person, so an erasure leaves none.
  const forgetNotes = prepare<[string]>(
    `delete from meta where name in (
       select '${noteName}' || e.seq from entry e where e.address = ?)`,
  );
  const forgetReasons = prepare<[string]>(
    `update entry set ended = 'erased' where address = ? and ended is not null`,
  );
  const bear = prepare<[string, number]>('insert or ignore into bearer (id, entry) values (?, ?)');
  const end = prepare<[number, string, number]>(
    'update entry set ended_at = ?, ended = ? where seq = ? and ended_at is null',
  );
  const again = prepare<[number], { seq: number }>(
    `insert into entry (address, part, cause, contact, made_after, made_by)
     select address, part, cause, contact, made_after, made_by from entry where seq = ?
     returning seq`,
  );
  const borne = prepare<[number, number, string]>(
    `insert into bearer select id, ? from bearer
     where entry = ? and id not in (select value from json_each(?))`,
  );
  return ({ address, ids }, { adds, ends, frees = [] }, at) => {
    for (const { seq, why } of ends) end.run(at, why, seq);
    for (const seq of frees) {
      if (end.run(at, 'freed from the CRM ids of another address', seq).changes === 0) continue;
      const next = again.get(seq)?.seq ?? seq;
      borne.run(next, seq, JSON.stringify(ids));
      noteAgain.run(`${noteName}${next}`, `${noteName}${seq}`);
    }
    for (const { part, cause, contact, after, by, note: said } of adds) {
      const seq = add.get({ address, part, cause, contact: contact ?? '', after, by })?.seq;
      if (seq !== undefined && said) note.run(`${noteName}${seq}`, said);
      if (cause === 'erasure') forgetNotes.run(address);
      if (cause === 'erasure') forgetReasons.run(address);
      // A bounce belongs to the address only.
      if (seq === undefined || cause === 'bounce') continue;
      for (const id of ids) bear.run(id, seq);
    }
  };
}
