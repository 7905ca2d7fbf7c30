import type { Statements } from '../database/prepared-statements.ts';
import type { JournaledChange } from '../../domain/change.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/** The outcome of a change. */
export interface ChangeOutcome {
  /** In milliseconds since the epoch. */
  at: number;
  outcome: string;
  /** The status of the platform's answer; undefined if there was none. */
  status: number | undefined;
  /** The platform's id of the request. */
  request: string | undefined;
}

/** One remembered outcome, with its change, or one entry. */
export interface UnauditedRow {
  id: number;
  /** Identifies the connection that wrote it, since ids of a restored copy may occur twice. */
  writer: string;
  at: number;
  /** The entry as JSON text; null for the outcome of a change. */
  entry: string | null;
  key: Key | null;
  outcome: string | null;
  status: number | null;
  request: string | null;
  run: string | null;
  kind: JournaledChange['kind'] | null;
  op: JournaledChange['op'] | null;
  part: string | null;
  /** The reason of the change as JSON text (ChangeReason). */
  why: string | null;
  approved: string | null;
}

/**
 * What the audit log does not contain yet. It is written in the transaction that records the
 * outcome or the decision, so nothing is lost if the process dies, and dropped once the log has it.
 */
export function unauditedIn(db: Statements) {
  const writer = db.one<[], { name: string }>('select lower(hex(randomblob(6))) name')()?.name;
  const outcome = db.run<object>(
    `insert into unaudited (writer, at, change, outcome, status, request, key)
     select @writer, @at, seq, @outcome, @status, @request, key from change
     where seq = @seq and sent_at is not null`,
  );
  const unanswered = db.run<object>(
    `insert into unaudited (writer, at, change, outcome, key)
     select @writer, @at, seq, 'unknown', key from change indexed by change_open
     where state in ('sent', 'unknown') and state = 'sent' and kind = @kind
       and run not in (select value from json_each(@but))`,
  );
  const entry = db.prepare<object>(
    'insert into unaudited (writer, at, key, entry) values (@writer, @at, @key, @entry)',
  );
  const replace = db.run<[entry: string, id: number]>(
    'update unaudited set entry = ? where id = ?',
  );
  const remove = db.run<[id: number]>('delete from unaudited where id = ?');
  const newest = db.all<[count: number], { entry: string }>(
    'select entry from unaudited where entry is not null order by id desc limit ?',
  );
  return {
    /** Remembers the outcome of a change that was sent. A change that never left is no write. */
    addOutcome: (seq: number, { status, request, ...told }: ChangeOutcome) =>
      outcome({ ...told, status: status ?? null, request: request ?? null, seq, writer }),
    /**
     * Remembers that the changes of a record type that are marked as sent have no answer, except
     * those of the runs in `but`. The processes of other runs have ended. `at`: epoch milliseconds.
     */
    addUnanswered: (kind: RecordTypeName, at: number, but: readonly string[]) =>
      unanswered({ writer, at, kind, but: JSON.stringify(but) }),
    /** Remembers an entry, as JSON text, and whom it is about; null for nobody. Returns its id. */
    addEntry: (text: string, { key, at }: { key: Key | null; at: number }) =>
      Number(entry.run({ writer, at, key, entry: text }).lastInsertRowid),
    /** Replaces an entry that the log does not have yet; null drops it. */
    replaceEntry: (id: number, text: string | null) =>
      text === null ? remove(id) : replace(text, id),
    /** Returns the oldest, in order. */
    next: db.all<[count: number], UnauditedRow>(
      `select u.id, u.writer, u.at, u.entry, u.key, u.outcome, u.status, u.request,
         c.run, c.kind, c.op, c.part, c.why, c.approved
       from unaudited u left join change c on c.seq = u.change order by u.id limit ?`,
    ),
    /** Returns the newest entries that were remembered as JSON text, the newest first. */
    newestEntries: (count: number) => newest(count).map(({ entry: text }) => text),
    /** Drops everything up to an id. */
    drop: db.run<[upTo: number]>('delete from unaudited where id <= ?'),
    /** Drops what is older than `before` (epoch milliseconds), because no log wanted it. */
    prune: db.run<[before: number]>('delete from unaudited where at < ?'),
  };
}
