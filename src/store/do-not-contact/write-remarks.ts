/** Writes remarks to the do-not-contact list. */
import type { Database } from 'better-sqlite3';
import type { Identity, ListRemark, RememberedOptOut } from '../../domain/do-not-contact.ts';
import type { Wait } from '../database/database-access.ts';
import { type Statements, statementsOf } from '../database/prepared-statements.ts';

/** The note on an entry is stored under this name and the number of the entry. */
export const noteName = 'note ';

/** The hashes by which the list knows a person. */
export interface Hashes {
  address: string;
  ids: readonly string[];
}

interface Writing {
  hashes: (who: Identity) => Hashes;
  /** Counts the write, and returns the number of writes. */
  raise: () => number;
  patiently: Wait;
}

/**
 * Returns a function that stores remarks, all or none, and returns the number of writes; undefined
 * if there are no remarks.
 */
export function taking(db: Database, { hashes, raise, patiently }: Writing) {
  const write = writing(statementsOf(db));
  return (remarks: Iterable<ListRemark>, at: number): number | undefined => {
    const rest = remarks[Symbol.iterator]();
    let step = rest.next();
    let erases = false;
    if (step.done) return undefined;
    const all = db.transaction(() => {
      for (; !step.done; step = rest.next()) {
        erases ||= step.value.adds.some(({ cause }) => cause === 'erasure');
        write({ ...step.value, ...hashes(step.value) }, at);
      }
      return raise();
    });
    const reached = patiently(() => all.immediate());
    // The log may still contain what the erasure deleted. While another process reads the list, the
    // log keeps that until the list is closed.
    if (erases) patiently(() => void db.pragma('wal_checkpoint(truncate)'));
    return reached;
  };
}

type Hashed = Omit<ListRemark, keyof Identity> & Hashes;

/** Prepares the write of one remark. The caller provides the transaction. */
function writing({ prepare }: Statements): (remark: Hashed, at: number) => void {
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
  return ({ address, ids, adds, ends, frees = [] }, at) => {
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
