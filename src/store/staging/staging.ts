/**
 * Stages what a run has read and decided, until the plan is committed, in temporary tables, so that
 * neither memory use nor the snapshot grows with the readings.
 */
import { type Statements, withoutNull } from '../database/prepared-statements.ts';
import type { Change, Op } from '../../domain/change.ts';
import type { ListRemark } from '../../domain/do-not-contact.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import { storedJson } from '../../domain/stored-json.ts';
import {
  inRange,
  inStretch,
  most,
  type RecordRange,
  type Stretch,
  stretchesOf,
} from '../database/key-range.ts';
import { desiredIn } from './desired-records.ts';
import { stagingNames } from './staging-tables.ts';
import { observedIn } from './observed-records.ts';
import { recordedColumns, recordedValues } from '../tables/recorded-state.ts';
import {
  isNoticedHeard,
  noticedColumns,
  noticedValues,
  problemColumns,
} from '../tables/known-problems.ts';

/** Prepares the statements of the staging tables. */
export function stagingIn(db: Statements) {
  const desired = desiredIn(db);
  const observed = observedIn(db);
  const listed = 'in (select value from json_each(?))';
  const undecide = ['planned', 'noted', 'noticed', 'forgotten', 'judged'].map((name) =>
    db.run<[RecordTypeName, keys: readonly Key[]]>(
      `delete from temp.${name} where kind = ? and key ${listed}
         ${name === 'judged' ? 'and "is" <> \'passed\'' : ''}`,
    ),
  );
  const unremark = db.run<[keys: readonly Key[]]>(
    `delete from temp.remarked where body ->> '$.key' ${listed}`,
  );
  const clear = ['planned', 'noted', 'forgotten', 'remarked'].map((name) =>
    db.run<[]>(`delete from temp.${name}`),
  );
  return {
    ...desired,
    ...observed,
    ...plannedIn(db),
    ...notedIn(db),
    /** Drops the decisions about these records that are not in the snapshot yet. */
    undecide(kind: RecordTypeName, keys: readonly Key[]): void {
      for (const undecideIn of undecide) undecideIn(kind, keys);
      unremark(keys);
    },
    /** Drops the decisions of one round; readings and problems are kept. */
    clearDecisions(): void {
      for (const clearOne of clear) clearOne();
    },
    clear(): void {
      desired.clearForms();
      desired.unchanged.clear();
      for (const name of stagingNames) db.exec(`delete from temp.${name}`);
      // A listing that ended early has not created its indexes.
      for (const sort of observed.sortings) sort();
    },
  };
}

export interface ChangeGroup {
  kind: RecordTypeName;
  /** The changes that complete the creation of a record belong to its `create`. */
  op: Op;
  held: boolean;
  n: number;
  /** The number of changes without those that complete a creation. */
  own: number;
}

const shownOp = `case
  when op = 'complete' then 'create'
  when op = 'opt_in' and exists (
    select 1 from temp.planned c indexed by planned_in_order where c.phase = planned.phase
      and c.kind = planned.kind and c.key = planned.key and c.op = 'create') then 'create'
  else op end`;

function plannedIn(db: Statements) {
  const plan = db.run<Omit<Change, 'why'> & { why: string | undefined }>(
    `insert into temp.planned (kind, key, op, part, target, body, phase, guard, why, before)
     values (@kind, @key, @op, @part, @target, @body, @phase, @guard, @why, @before)`,
  );
  const from = 'from temp.planned indexed by planned_in_order';
  const columns = 'kind, key, op, part, target, body, phase, guard';
  const order = 'order by phase, kind, key, seq';
  const planned = db.each<[], Change & { held: 0 | 1 }>(`select ${columns}, held ${from} ${order}`);
  const chunks = stretchesOf<object>(db, `${from} where true`);
  return {
    addPlanned: ({ target, guard, before, why, ...change }: Change) =>
      plan({ ...change, target, guard, before, why: why && JSON.stringify(why) }),
    /**
     * Yields the plan by phase, record type and key. Nothing else may use the snapshot while it
     * runs.
     */
    *planned(): IterableIterator<Change & { held: boolean }> {
      for (const { held, ...row } of planned()) yield { ...withoutNull(row), held: held === 1 };
    },
    chunks: () => chunks({}),
    plannedIn: db.all<Stretch, Change>(
      `select ${columns} ${from} where ${inStretch} ${order}`,
      withoutNull,
    ),
    groupsIn: db.all<Stretch, ChangeGroup, Omit<ChangeGroup, 'held'> & { held: 0 | 1 }>(
      `select kind, ${shownOp} op, held, count(*) n, total(op = ${shownOp}) own ${from}
       where ${inStretch} group by 1, 2, 3`,
      (row) => ({ ...row, held: row.held === 1 }),
    ),
    /** Returns the changes of a chunk that belong to a group, with the rules that ask for them. */
    groupedIn: db.all<
      Stretch & { of: RecordTypeName; shown: Op; held: boolean },
      Change & { rule: string | undefined }
    >(
      `select ${columns}, why ->> '$.rule' rule ${from} where ${inStretch}
         and kind = @of and held = @held and ${shownOp} = @shown ${order}`,
      withoutNull,
    ),
  };
}

function notedIn(db: Statements) {
  const adopt = `insert or replace into recorded (${recordedColumns})
    select ${recordedColumns} from temp.noted`;
  const alone = `where alone and ${inRange('noted')}`;
  const adoptAlone = db.run<RecordRange>(`${adopt} ${alone}`);
  const forgetAlone = db.run<RecordRange>(`delete from temp.noted ${alone}`);
  const notice = db.run<ReturnType<typeof problemColumns>>(
    `insert or replace into temp.noticed (${noticedColumns}) values (${noticedValues})`,
  );
  return {
    /** Notes a row to record. `alone` means that its decision depended on no other record. */
    addNoted: db.run<RecordedRow & { alone: boolean }>(
      `insert or replace into temp.noted (${recordedColumns}, alone)
       values (${recordedValues}, @alone)`,
    ),
    adoptAlone(range: RecordRange): void {
      adoptAlone(range);
      forgetAlone(range);
    },
    adoptNoted: db.run<[]>(adopt),
    addForgotten: db.run<[RecordTypeName, Key]>(
      'insert or replace into temp.forgotten (kind, key) values (?, ?)',
    ),
    adoptForgotten: db.run<[]>(
      'delete from recorded where (kind, key) in (select kind, key from temp.forgotten)',
    ),
    addNoticed: (problem: RecordProblem) => notice(problemColumns(problem)),
    forgetNoticed: db.run<[RecordTypeName, Key]>(
      'delete from temp.noticed where kind = ? and key = ?',
    ),
    /** Counts the records with a problem of this class. */
    countNoticed: db.number<[RecordTypeName, name: RecordProblem['class']]>(
      `select count(distinct key) from temp.noticed
       where kind = ? and class = ? and ${isNoticedHeard}`,
    ),
  };
}

const listRemark = storedJson<ListRemark>('a change to the do-not-contact list');

/** Stages the changes to the do-not-contact list from the decisions of one round. */
export function listNewsIn(db: Statements) {
  const add = db.run<[body: string]>('insert into temp.remarked (body) values (?)');
  return {
    add: (remark: ListRemark) => add(listRemark.encode(remark)),
    next: db.all<
      [after: number, count: number],
      { nth: number; remark: ListRemark },
      { seq: number; body: string }
    >(
      'select seq, body from temp.remarked where seq > ? order by seq limit ?',
      ({ seq, body }) => ({ nth: seq, remark: listRemark.decode(body) }),
    ),
  };
}

/** Reverts parts of a run when its source is read again during the run. */
export function slicingIn(db: Statements) {
  const those = `from change indexed by change_planned
    where state = 'planned' and run = ? and kind = ? limit`;
  const withdraw = db.run<[run: string, RecordTypeName]>(
    `delete from change where seq in (select seq ${those} ${most})`,
  );
  const done = `select distinct kind, key from change
    where run = ? and kind = ? and state = 'acked'`;
  const forget = db.run<[run: string, RecordTypeName]>(
    `delete from temp.observed where (kind, key) in (${done})`,
  );
  const assume = db.run<[run: string, RecordTypeName]>(
    `insert or replace into temp.looked (kind, key, at) select kind, key, null from (${done})`,
  );
  return {
    hasPlanned: db.has<[run: string, RecordTypeName]>(`select 1 ${those} 1`),
    /** Deletes some planned changes that were not sent. Returns whether more may remain. */
    withdraw: (run: string, kind: RecordTypeName) => withdraw(run, kind) === most,
    /** Makes the recorded state count for records that the run changed after listing them. */
    assumeDone(run: string, kind: RecordTypeName): void {
      forget(run, kind);
      assume(run, kind);
    },
  };
}
