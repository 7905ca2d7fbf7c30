/**
 * The ledger: what must be remembered of people after their record is gone, in a file of its own
 * that outlives the snapshot. It holds keyed hashes of addresses and of the source's ids, and
 * nobody's address or id. What has ended stays, with when and why, and says nothing any more.
 */
import type { Database } from 'better-sqlite3';
import type { Cause, Entry, Memory, Remark, Who } from '../model/ledger.ts';
import { keyedHash, secretOf } from './ledger-key.ts';
import type { Wait } from './patience.ts';
import { statementsOf, type Statements } from './statements.ts';

export interface Ledger {
  /** Names this ledger; the snapshot knows it. */
  readonly id: string;
  /** What stands against somebody: by address, and all but a bounce also by the source's ids. */
  concerning(who: Who): Entry[];
  /**
   * Takes all of it in, or nothing; on disk when it returns. Saying what it knows changes nothing.
   * `at` is when, in milliseconds since the epoch. Throws Busy as the snapshot's transaction does.
   */
  write(remarks: Iterable<Remark>, at: number): void;
  close(): void;
}

export const ledgerTables = `
  create table meta (name text primary key, value text not null) without rowid;
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
}

const columns = 'e.seq, e.part, e.cause, e.contact, e.made_after "after", e.made_by "by"';

/** The ledger in an open database that has its tables. */
export function ledgerIn(
  db: Database,
  { id, key, patiently }: { id: string; key: string; patiently: Wait },
): Ledger {
  const statements = statementsOf(db);
  const { prepare } = statements;
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
  const hashes = hashing(key);

  function concerning(who: Who): Entry[] {
    const { address, ids } = hashes(who);
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
  }

  const write = writing(statements);
  return {
    id,
    concerning: (who) => patiently(() => concerning(who)),
    write(remarks, at) {
      const rest = remarks[Symbol.iterator]();
      let step = rest.next();
      if (step.done) return;
      const take = db.transaction(() => {
        for (; !step.done; step = rest.next()) {
          write({ ...step.value, ...hashes(step.value) }, at);
        }
      });
      patiently(() => take.immediate());
    },
    close: () => db.close(),
  };
}

/** What stands for somebody. */
function hashing(key: string): (who: Who) => Omit<Hashed, 'adds' | 'ends'> {
  const secret = secretOf(key);
  return ({ key: address, ids }) => ({
    address: keyedHash(secret, 'address', address),
    ids: [...new Set(ids)].map((one) => keyedHash(secret, 'id', one)),
  });
}

type Hashed = Pick<Remark, 'adds' | 'ends'> & { address: string; ids: readonly string[] };

/** One remark; the transaction is the caller's. */
function writing({ prepare }: Statements): (remark: Hashed, at: number) => void {
  const add = prepare<
    Omit<Memory, 'contact'> & { address: string; contact: string },
    { seq: number }
  >(
    `insert into entry (address, part, cause, contact, made_after, made_by)
     values (@address, @part, @cause, @contact, @after, @by)
     on conflict (address, part, cause, contact) where ended_at is null
     do update set made_by = max(made_by, excluded.made_by) returning seq`,
  );
  const bear = prepare<[string, number]>('insert or ignore into bearer (id, entry) values (?, ?)');
  const end = prepare<[number, string, number]>(
    'update entry set ended_at = ?, ended = ? where seq = ? and ended_at is null',
  );
  return ({ address, ids, adds, ends }, at) => {
    for (const { seq, why } of ends) end.run(at, why, seq);
    for (const { part, cause, contact, after, by } of adds) {
      const seq = add.get({ address, part, cause, contact: contact ?? '', after, by })?.seq;
      // A bounce belongs to the address alone.
      if (seq === undefined || cause === 'bounce') continue;
      for (const id of ids) bear.run(id, seq);
    }
  };
}
