import type { Statements } from '../database/prepared-statements.ts';
import type { JournaledChange } from '../../domain/change.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/**
 * What the audit log does not contain yet. It is written in the transaction that records the
 * outcome or the decision, so nothing is lost if the process dies, and dropped once the log has it.
 */
export interface Unaudited {
  /** Remembers the outcome of a change that was sent. A change that never left is no write. */
  addOutcome(seq: number, outcome: ChangeOutcome): void;
  /**
   * Remembers that the changes of a record type that are marked as sent have no answer, except
   * those of the runs in `but`. The processes of other runs have ended. `at`: epoch milliseconds.
   */
  addUnanswered(kind: RecordTypeName, at: number, but: readonly string[]): void;
  /** Remembers an entry, as JSON text, and whom it is about; null for nobody. Returns its id. */
  addEntry(entry: string, about: { key: Key | null; at: number }): number;
  /** Replaces an entry that the log does not have yet; null drops it. */
  replaceEntry(id: number, entry: string | null): void;
  /** Returns the oldest, in order. */
  next(count: number): UnauditedRow[];
  /** Returns the newest entries that were remembered as JSON text, the newest first. */
  newestEntries(count: number): string[];
  /** Drops everything up to an id. */
  drop(upTo: number): void;
  /** Drops what is older than `before` (epoch milliseconds), because no log wanted it. */
  prune(before: number): void;
}

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

/** Prepares the statements about what is not in the audit log yet. */
export function unauditedIn(db: Statements): Unaudited {
  const [writer = ''] = db
    .prepare<[], { name: string }>('select lower(hex(randomblob(6))) name')
    .all()
    .map(({ name }) => name);
  const outcome = db.prepare(
    `insert into unaudited (writer, at, change, outcome, status, request, key)
     select @writer, @at, seq, @outcome, @status, @request, key from change
     where seq = @seq and sent_at is not null`,
  );
  const unanswered = db.prepare(
    `insert into unaudited (writer, at, change, outcome, key)
     select @writer, @at, seq, 'unknown', key from change indexed by change_open
     where state in ('sent', 'unknown') and state = 'sent' and kind = @kind
       and run not in (select value from json_each(@but))`,
  );
  const entry = db.prepare(
    'insert into unaudited (writer, at, key, entry) values (@writer, @at, @key, @entry)',
  );
  const replace = db.prepare('update unaudited set entry = ? where id = ?');
  const remove = db.prepare('delete from unaudited where id = ?');
  const next = db.prepare<[number], UnauditedRow>(
    `select u.id, u.writer, u.at, u.entry, u.key, u.outcome, u.status, u.request,
       c.run, c.kind, c.op, c.part, c.why, c.approved
     from unaudited u left join change c on c.seq = u.change order by u.id limit ?`,
  );
  const newest = db.prepare<[number], { entry: string }>(
    'select entry from unaudited where entry is not null order by id desc limit ?',
  );
  const drop = db.prepare('delete from unaudited where id <= ?');
  const prune = db.prepare('delete from unaudited where at < ?');
  return {
    addOutcome: (seq, { status = null, request = null, ...told }) =>
      void outcome.run({ ...told, status, request, seq, writer }),
    addUnanswered: (kind, at, but) =>
      void unanswered.run({ writer, at, kind, but: JSON.stringify(but) }),
    addEntry: (text, { key, at }) =>
      Number(entry.run({ writer, at, key, entry: text }).lastInsertRowid),
    replaceEntry: (id, text) => void (text === null ? remove.run(id) : replace.run(text, id)),
    next: (count) => next.all(count),
    newestEntries: (count) => newest.all(count).map(({ entry: text }) => text),
    drop: (upTo) => void drop.run(upTo),
    prune: (before) => void prune.run(before),
  };
}
