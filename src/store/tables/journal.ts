import { type Statements, withoutNull } from '../database/prepared-statements.ts';
import type { ChangeState, DoneChange, JournaledChange, Op } from '../../domain/change.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { storedJson } from '../../domain/stored-json.ts';
import {
  inStretch,
  most,
  type RecordName,
  stretchesOf,
  type Stretch,
} from '../database/key-range.ts';
import type { Meta } from '../database/meta-table.ts';

/** The reason stored with an acknowledged change that was so before anything was sent. */
export const alreadyThere = 'already there';

/** The reason of a stale change that a creation replaced: it is neither counted nor listed. */
export const plannedAgain = 'planned again after the creation';

interface Move {
  at: number;
  reason?: string | undefined;
  fix?: string | undefined;
}

interface PlanPart {
  run: string;
  kind: RecordTypeName;
  phase: number;
}

export interface ChangeTally {
  kind: RecordTypeName;
  op: Op;
  state: ChangeState;
  n: number;
}

export interface JournalTally extends ChangeTally {
  /** How many of them opt in a person that the same run created. */
  further: number;
}

const columns =
  'seq, run, kind, key, op, part, target, body, phase, guard, before, state, sent_at "sentAt"';

const carried = 'kind, key, op, part, target, body, phase, guard, why, before, approved';

/** Selects the changes with an outcome that does not wait for the audit log. */
const isOver = `state not in ('sent', 'unknown')
  and seq not in (select change from unaudited where change is not null)`;

export function chunksOfRun(db: Statements) {
  return stretchesOf<{ run: string }>(db, 'from change indexed by change_by_run where run = @run');
}

const isOther = 'run not in (select value from json_each(?))';

/**
 * The journal: every change from plan to outcome.
 *
 *   planned → sent → acked | rejected | stale | unknown
 *
 * `sent` is on disk before the request is sent. If the process is killed, or cannot store the
 * response, the next run marks the change as unknown. Reading the record on the platform resolves
 * `unknown`; a change that certainly did not happen returns to planned.
 */
export function changesIn(db: Statements) {
  const planned = `from change indexed by change_by_run
    where run = @run and kind = @kind and phase = @phase and state = 'planned'`;
  const plannedNext = db.all<PlanPart & { after: Key; count: number }, JournaledChange>(
    `select ${columns} ${planned} and key > @after and key <= (
       select max(key) from (
         select distinct key ${planned} and key > @after order by key limit @count))
     order by key, seq`,
    withoutNull,
  );
  const isDone = db.has<Record<string, string | number | undefined>>(
    `select 1 from change indexed by change_by_run
     where run = @run and phase = @phase and kind = @kind and key <> @key and op = @op
       and part = @part and target = @target and state = 'acked' limit 1`,
  );
  const sent = db.run<[at: number, seq: number]>(
    `update change set state = 'sent', sent_at = ? where seq = ?`,
  );
  const move = db.run<Required<Move> & { seq: number; to: ChangeState }>(
    `update change set state = @to, ended_at = iif(@to in ('planned', 'unknown'), null, @at),
       reason = @reason, fix = @fix where seq = @seq`,
  );
  const leftPlanned = `from change indexed by change_planned
    where state = 'planned' and kind = ? and ${isOther} limit`;
  const abandon = db.run<[at: number, RecordTypeName, but: readonly string[]]>(
    `update change set state = 'stale', ended_at = ?
     where seq in (select seq ${leftPlanned} ${most})`,
  );
  const chunks = chunksOfRun(db);
  const tally = db.all<Stretch & { run: string }, JournalTally>(
    `select kind, op, state, count(*) n, total(state = 'acked' and op = 'opt_in' and exists (
       select 1 from change c indexed by change_by_run where c.run = @run
         and c.phase = change.phase and c.kind = change.kind and c.key = change.key
         and c.op = 'create' and c.state = 'acked')) further
     from change indexed by change_by_run
     where run = @run and reason is not '${plannedAgain}' and ${inStretch}
     group by kind, op, state`,
  );
  // The changes with the lowest numbers are the oldest.
  const prune = db.run<[before: number]>(
    `delete from change where seq in (
       select seq from change where planned_at < ? and ${isOver}
       order by seq limit ${most})`,
  );
  return {
    /** Adds a chunk of the staged plan, without what guards withhold. Returns what it added. */
    adopt: db.all<Stretch & { run: string; at: number }, { kind: RecordTypeName; op: Op }>(
      `insert into change (run, ${carried}, state, planned_at, ${orderColumn})
       select @run, ${carried}, 'planned', @at, ${approvalsGiven}
       from temp.planned indexed by planned_in_order
       where held = 0 and ${inStretch} order by phase, kind, key, seq
       returning kind, op`,
    ),
    planned: db.all<PlanPart & { key: Key }, JournaledChange>(
      `select ${columns} ${planned} and key = @key order by seq`,
      withoutNull,
    ),
    /** By key, for the next `count` keys after `after` that have any. */
    plannedNext: (part: PlanPart & { after: Key; count: number }) =>
      Map.groupBy(plannedNext(part), ({ key }) => key),
    isPlanned: db.has<[RecordTypeName, Key]>(
      `select 1 from change indexed by change_by_key
       where kind = ? and key = ? and state = 'planned' limit 1`,
    ),
    /** Returns whether this run had the same change acknowledged under another key. */
    isDone: ({ run, phase, kind, key, op, part, target = '' }: JournaledChange) =>
      isDone({ run, phase, kind, key, op, part, target }),
    isDoneSince: db.has<[RecordTypeName, Key, at: number]>(
      `select 1 from change indexed by change_by_key
       where kind = ? and key = ? and state = 'acked' and ended_at >= ? limit 1`,
    ),
    holds: db.has<[run: string]>(
      'select 1 from change indexed by change_by_run where run = ? limit 1',
    ),
    move(seq: number, to: ChangeState, { at, reason, fix }: Move): void {
      if (to === 'sent') sent(at, seq);
      else move({ seq, to, at, reason, fix });
    },
    /** Returns the sent and unknown changes of all runs, oldest first. */
    open: db.all<[RecordTypeName], JournaledChange>(
      `select ${columns} from change indexed by change_open
       where state in ('sent', 'unknown') and kind = ? order by seq`,
      withoutNull,
    ),
    /** Marks sent changes as unknown, except those of the runs in `but`, which are in progress. */
    doubt: db.run<[RecordTypeName, but: readonly string[]]>(
      `update change indexed by change_open set state = 'unknown'
       where state in ('sent', 'unknown') and state = 'sent' and kind = ? and ${isOther}`,
    ),
    hasLeft: db.has<[RecordTypeName, but: readonly string[]]>(`select 1 ${leftPlanned} 1`),
    /** Marks some planned changes of other runs as stale. Returns whether more may remain. */
    abandon: (kind: RecordTypeName, at: number, but: readonly string[]) =>
      abandon(at, kind, but) === most,
    /**
     * Counts the changes of a run without those that a creation replaced, chunk by chunk, so the
     * same combination may occur several times.
     */
    *tally(run: string): Generator<JournalTally[]> {
      for (const stretch of chunks({ run })) yield tally({ run, ...stretch });
    },
    /** Deletes some changes that are not open and old. Returns whether more may remain. */
    prune: (before: number) => prune(before) === most,
  };
}

/** A run that changed a record later, and which run it undid, if it did. */
interface LaterRun {
  run: string;
  undoes: string | null;
}
const laterRuns = storedJson<readonly LaterRun[]>('the history of a record');

/** Reads back what a run changed, for `undo`. */
export function runChangesIn(db: Statements) {
  // A later change to the whole record, or to the same part, comes from another run.
  const done = db.all<
    RecordName & { run: string; by: string },
    Omit<DoneChange, 'later' | 'isUndone' | 'wasThere'> & { wasThere: 0 | 1; later: string }
  >(
    `select op, part, target, body, before, reason is '${alreadyThere}' wasThere, (
       select json_group_array(json_object('run', l.run, 'undoes', r.asked ->> '$.undoes')
         order by l.seq desc)
       from change l indexed by change_by_key left join run r on r.id = l.run
       where l.kind = c.kind and l.key = c.key and l.run not in (c.run, @by) and l.seq > c.seq
         and l.state = 'acked' and (l.part in (c.part, '') or c.part = '')) later
     from change c indexed by change_by_key
     where run = @run and kind = @kind and state = 'acked' and key = @key
     order by seq`,
    withoutNull,
  );
  return {
    chunks: chunksOfRun(db),
    /** Makes the records of a chunk that the run has changed candidates for a decision. */
    select: db.run<Stretch & { run: string; of: RecordTypeName }>(
      `insert or ignore into temp.candidate (kind, key)
       select kind, key from change indexed by change_by_run
       where run = @run and kind = @of and state = 'acked' and ${inStretch}`,
    ),
    /**
     * Returns the changes that a run made to a record, oldest first. Those of the run `by`, which
     * asks, do not count as later ones.
     */
    of: (part: RecordName & { run: string; by: string }): DoneChange[] =>
      done(part).map(({ later, wasThere, ...row }) => {
        const { run, undoes } = standing(laterRuns.decode(later), part.run) ?? {};
        return { ...row, later: run, isUndone: undoes === part.run, wasThere: wasThere === 1 };
      }),
    /** When the newest change of any run to a record was acknowledged, by our clock. */
    lastAt: db.value<[RecordTypeName, Key], number>(
      `select max(ended_at) from change indexed by change_by_key
       where kind = ? and key = ? and state = 'acked'`,
    ),
  };
}

/**
 * Returns the newest of the later runs that counts; they are in that order. A run and its undo
 * cancel each other, unless the run itself is the undo of the one that is to be undone.
 */
function standing(later: readonly LaterRun[], run: string): LaterRun | undefined {
  const cancelled = new Set<string>();
  for (const one of later) {
    if (cancelled.has(one.run)) continue;
    const undone = later.find((other) => other.run === one.undoes);
    if (!undone || undone.undoes === run) return one;
    cancelled.add(undone.run);
  }
  return undefined;
}

// Tells which changes were journaled after an approval was given. Times cannot tell, because a
// clock can be set back, and approvers sign by clocks of their own. Therefore the snapshot counts
// the approvals and signatures, and each change stores how many there were when it was journaled.

/** Where this order is stored: on changes, approvals and signatures. */
export const orderColumn = 'approvals_given';

const name = 'approvals-given';

const approvalsGiven = `coalesce(
  (select cast(m.value as integer) from meta m where m.name = '${name}'), 0)`;

/** Returns how many approvals and signatures have been given. */
export function countApprovals(meta: Meta): number {
  return Number(meta.get(name) ?? 0);
}

/** Returns a function that counts one more, and returns its number. */
export function approvalCounterIn(db: Statements): () => number {
  return db.number<[]>(
    `insert into meta (name, value) values ('${name}', '1')
     on conflict (name) do update set value = cast(cast(value as integer) + 1 as text)
     returning cast(value as integer)`,
  );
}
