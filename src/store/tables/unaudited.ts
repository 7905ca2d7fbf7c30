import type { Statements } from '../database/prepared-statements.ts';
import type { JournaledChange } from '../../domain/change.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/**
 * What became of a change that was sent.
 *
 *   acked      the platform did it
 *   found      read afterwards: the platform shows it, and perhaps did before
 *   undone     read afterwards: the person took it back since
 *   rejected   the platform refused it
 *   stale      read afterwards: it did not happen, or no longer applied
 *   unknown    no answer; another entry follows when the outcome is known
 */
export const writeOutcomes = ['acked', 'found', 'undone', 'rejected', 'stale', 'unknown'] as const;
export type WriteOutcome = (typeof writeOutcomes)[number];

/** The outcome of a change; `at` is in milliseconds since the epoch, here and below. */
interface ChangeOutcome {
  at: number;
  outcome: WriteOutcome;
  /** The status of the platform's answer; undefined if there was none. */
  status: number | undefined;
  request: string | undefined;
}

/** Except those of the runs in progress (`but`). */
interface Unanswered {
  kind: RecordTypeName;
  at: number;
  but: readonly string[];
}

/** An entry as JSON text, and the person that it is about; null for nobody. */
interface NewEntry {
  entry: string;
  key: Key | null;
  at: number;
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
  outcome: WriteOutcome | null;
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
  const writer = db.value<[], string>('select lower(hex(randomblob(6)))')();
  const addOutcome = db.run<ChangeOutcome & { seq: number; writer: string | undefined }>(
    `insert into unaudited (writer, at, change, outcome, status, request, key)
     select @writer, @at, seq, @outcome, @status, @request, key from change
     where seq = @seq and sent_at is not null`,
  );
  const addUnanswered = db.run<Unanswered & { writer: string | undefined }>(
    `insert into unaudited (writer, at, change, outcome, key)
     select @writer, @at, seq, 'unknown', key from change indexed by change_open
     where state in ('sent', 'unknown') and state = 'sent' and kind = @kind
       and run not in (select value from json_each(@but))`,
  );
  const addEntry = db.number<NewEntry & { writer: string | undefined }>(
    `insert into unaudited (writer, at, key, entry) values (@writer, @at, @key, @entry)
     returning id`,
  );
  return {
    /** Remembers the outcome of a change that was sent. A change that never left is no write. */
    addOutcome: (seq: number, outcome: ChangeOutcome) => addOutcome({ ...outcome, seq, writer }),
    addUnanswered: (these: Unanswered) => addUnanswered({ ...these, writer }),
    addEntry: (entry: NewEntry) => addEntry({ ...entry, writer }),
    replaceEntry: db.run<[entry: string, id: number]>(
      'update unaudited set entry = ? where id = ?',
    ),
    dropEntry: db.run<[id: number]>('delete from unaudited where id = ?'),
    next: db.all<[count: number], UnauditedRow>(
      `select u.id, u.writer, u.at, u.entry, u.key, u.outcome, u.status, u.request,
         c.run, c.kind, c.op, c.part, c.why, c.approved
       from unaudited u left join change c on c.seq = u.change order by u.id limit ?`,
    ),
    count: db.number<[]>('select count(*) from unaudited'),
    newestEntries: db.values<[count: number], string>(
      'select entry from unaudited where entry is not null order by id desc limit ?',
    ),
    drop: db.run<[upTo: number]>('delete from unaudited where id <= ?'),
    /** Drops what no log wanted. */
    prune: db.run<[before: number]>('delete from unaudited where at < ?'),
  };
}
