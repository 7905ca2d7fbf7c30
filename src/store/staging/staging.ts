/** Stages what a run has read and decided, until the plan is committed. */
import type { Statements } from '../database/prepared-statements.ts';
import type { Change, Op } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import type { Desired } from './desired-staging.ts';
import { desiredIn } from './desired-records.ts';
import { stagingNames } from './staging-tables.ts';
import { type Observed, observedIn } from './observed-records.ts';
import { toStored } from '../tables/recorded-state.ts';
import { problemColumns } from '../tables/known-problems.ts';
import { isNoticedHeard } from '../tables/unmanaged-people.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import { inStretch, most, type Stretch, stretchesOf } from '../database/plan-chunks.ts';

/**
 * What one run has read and decided, before any of it is in the snapshot. It is stored in temporary
 * tables, so that neither memory use nor the snapshot grows with the readings.
 */
export interface Staging extends Desired, Observed {
  /** Empties all staging tables. */
  clear(): void;
  addPlanned(change: Change): void;
  /**
   * Yields the plan by phase, record type and key. Nothing else may use the snapshot while it runs.
   */
  planned(): IterableIterator<Change & { held: boolean }>;
  /** Counts the changes of a chunk by group. */
  groupsIn(stretch: Stretch): ChangeGroup[];
  /** Returns the changes of a chunk that belong to a group. */
  groupedIn(stretch: Stretch, group: ChangeGroup): Change[];
  /** Yields the chunks of the whole plan. */
  chunks(): Iterable<Stretch>;
  plannedIn(stretch: Stretch): Change[];
  /** Notes a row to record. `isAlone` means that its decision depended on no other record. */
  addNoted(row: RecordedRow, isAlone: boolean): void;
  /** Records the noted rows of a range whose decisions did not depend on other records. */
  adoptAlone(kind: RecordTypeName, range: KeyRange): void;
  /** Records the other noted rows. */
  adoptNoted(): void;
  /** Deletes the recorded rows that were marked to be forgotten. */
  adoptForgotten(): void;
  /** Notes a problem that this run found. */
  addNoticed(problem: RecordProblem): void;
  forgetNoticed(kind: RecordTypeName, key: Key): void;
  /** Counts the records with a problem of this class. */
  countNoticed(kind: RecordTypeName, name: RecordProblem['class']): number;
  /** Marks a recorded row to be forgotten. */
  addForgotten(kind: RecordTypeName, key: Key): void;
  /** Drops the decisions about these records that are not in the snapshot yet. */
  undecide(kind: RecordTypeName, keys: readonly Key[]): void;
  /** Drops the decisions of one round; readings and problems are kept. */
  clearDecisions(): void;
}

/** Prepares the statements of the staging tables. */
export function stagingIn(db: Statements): Staging {
  const desired = desiredIn(db);
  const observed = observedIn(db);
  return {
    ...desired,
    ...observed,
    ...decidedIn(db),
    ...groupedIn(db),
    ...notedIn(db),
    clear: () => {
      desired.clearForms();
      for (const name of stagingNames) db.exec(`delete from temp.${name}`);
      // A listing that ended early has not created its indexes.
      for (const sort of observed.sortings) sort();
    },
  };
}

/** Changes of a plan that are shown together. */
export interface ChangeGroup {
  kind: RecordTypeName;
  /** The changes that complete the creation of a record belong to its `create`. */
  op: Op;
  /** Whether a guard withholds the changes. */
  held: boolean;
  n: number;
  /** The number of changes without those that complete a creation. */
  own: number;
}

interface StoredChange extends Omit<Change, 'target' | 'guard'> {
  target: string | null;
  guard: GuardClass | null;
}

function fromStored({ target, guard, ...row }: StoredChange): Change {
  return { ...row, target: target ?? undefined, guard: guard ?? undefined };
}

type NotedPart = Pick<Staging, 'addNoted' | 'adoptAlone' | 'adoptNoted' | 'adoptForgotten'>;

function notedIn(db: Statements): NotedPart {
  const columns = 'kind, key, id, ownership, body, shown, desired, seen_at';
  const note = db.prepare(
    `insert or replace into temp.noted (${columns}, alone)
     values (@kind, @key, @id, @ownership, @body, @shown, @desired, @seen_at, @alone)`,
  );
  const adopt = `insert or replace into recorded (${columns}) select ${columns} from temp.noted`;
  const alone = `where alone and ${inRange('noted')}`;
  const adoptAlone = db.prepare<KeyRange & { kind: string }>(`${adopt} ${alone}`);
  const forgetAlone = db.prepare<KeyRange & { kind: string }>(`delete from temp.noted ${alone}`);
  const adoptRest = db.prepare(adopt);
  const adoptForgotten = db.prepare(
    'delete from recorded where (kind, key) in (select kind, key from temp.forgotten)',
  );
  return {
    addNoted: (row, isAlone) => void note.run({ ...toStored(row), alone: Number(isAlone) }),
    adoptAlone(kind, range) {
      adoptAlone.run({ kind, ...range });
      forgetAlone.run({ kind, ...range });
    },
    adoptNoted: () => void adoptRest.run(),
    adoptForgotten: () => void adoptForgotten.run(),
  };
}

type GroupedPart = Pick<Staging, 'groupsIn' | 'groupedIn'>;

/** The operation under which a change is shown. */
const shownOp = `case
  when op = 'complete' then 'create'
  when op = 'opt_in' and exists (
    select 1 from temp.planned c indexed by planned_in_order where c.phase = planned.phase
      and c.kind = planned.kind and c.key = planned.key and c.op = 'create') then 'create'
  else op end`;

function groupedIn(db: Statements): GroupedPart {
  const from = `from temp.planned indexed by planned_in_order where ${inStretch}`;
  const groups = db.prepare<Stretch, Omit<ChangeGroup, 'held'> & { held: number }>(
    `select kind, ${shownOp} op, held, count(*) n, total(op = ${shownOp}) own ${from}
     group by 1, 2, 3`,
  );
  const grouped = db.prepare<Stretch & { of: string; shown: string; held: number }, StoredChange>(
    `select kind, key, op, part, target, body, phase, guard ${from}
       and kind = @of and held = @held and ${shownOp} = @shown order by phase, kind, key, seq`,
  );
  return {
    groupsIn: (stretch) => groups.all(stretch).map((row) => ({ ...row, held: row.held === 1 })),
    groupedIn: (stretch, { kind: of, op: shown, held }) =>
      grouped.all({ ...stretch, of, shown, held: Number(held) }).map(fromStored),
  };
}

type NotDecided = keyof Desired | keyof Observed | keyof NotedPart | keyof GroupedPart | 'clear';
type DecidedPart = Omit<Staging, NotDecided>;

function decidedIn(db: Statements): DecidedPart {
  const plan = db.prepare(
    `insert into temp.planned (kind, key, op, part, target, body, phase, guard, why, before)
     values (@kind, @key, @op, @part, @target, @body, @phase, @guard, @why, @before)`,
  );
  const those =
    'select kind, key, op, part, target, body, phase, guard, held from temp.planned indexed by planned_in_order';
  const order = 'order by phase, kind, key, seq';
  const planned = db.prepare<[], StoredChange & { held: number }>(`${those} ${order}`);
  const within = db.prepare<Stretch, StoredChange & { held: number }>(
    `${those} where ${inStretch} ${order}`,
  );
  const chunks = stretchesOf(db, 'from temp.planned indexed by planned_in_order where true');
  const notice = db.prepare(
    `insert or replace into temp.noticed
       (kind, key, class, part, reason, fix, cause, about, option, value, place, crm)
     values (@kind, @key, @class, @part, @reason, @fix, @cause, @about, @option, @value,
       @place, @crm)`,
  );
  const unnotice = db.prepare('delete from temp.noticed where kind = ? and key = ?');
  const countNoticed = db.prepare<[string, string], { n: number }>(
    `select count(distinct key) n from temp.noticed
     where kind = ? and class = ? and ${isNoticedHeard}`,
  );
  const forget = db.prepare('insert or replace into temp.forgotten (kind, key) values (?, ?)');
  const clear = ['planned', 'noted', 'forgotten', 'remarked'].map((name) =>
    db.prepare(`delete from temp.${name}`),
  );
  return {
    addPlanned: ({ target = null, guard = null, why, before = null, ...change }) =>
      void plan.run({ ...change, target, guard, why: why ? JSON.stringify(why) : null, before }),
    *planned() {
      for (const { held, ...row } of planned.iterate()) {
        yield { ...fromStored(row), held: held === 1 };
      }
    },
    chunks: () => chunks({}),
    plannedIn: (stretch) => within.all(stretch).map(fromStored),
    addNoticed: (problem) => void notice.run(problemColumns(problem)),
    forgetNoticed: (kind, key) => void unnotice.run(kind, key),
    countNoticed: (kind, name) => countNoticed.get(kind, name)?.n ?? 0,
    addForgotten: (kind, key) => void forget.run(kind, key),
    undecide: undecidingIn(db),
    clearDecisions: () => {
      for (const statement of clear) statement.run();
    },
  };
}

function undecidingIn(db: Statements): Staging['undecide'] {
  const listed = 'in (select value from json_each(?))';
  const undecide = ['planned', 'noted', 'noticed', 'forgotten', 'withheld', 'deferred'].map(
    (name) =>
      db.prepare<[string, string]>(`delete from temp.${name} where kind = ? and key ${listed}`),
  );
  const unremark = db.prepare<[string]>(
    `delete from temp.remarked where body ->> '$.key' ${listed}`,
  );
  return (kind, keys) => {
    const list = JSON.stringify(keys);
    for (const statement of undecide) statement.run(kind, list);
    unremark.run(list);
  };
}

/** Reverts parts of a run when its source is read again during the run. */
export interface Slicing {
  /** Returns whether any planned change is waiting to be sent. */
  hasPlanned(run: string, kind: RecordTypeName): boolean;
  /**
   * Deletes some thousands of planned changes that were not sent. Returns whether more may remain.
   */
  withdraw(run: string, kind: RecordTypeName): boolean;
  /** Makes the recorded state count for records that the run changed after listing them. */
  assumeDone(run: string, kind: RecordTypeName): void;
}

/** Prepares the statements that revert parts of a run. */
export function slicingIn(db: Statements): Slicing {
  const those = `from change indexed by change_planned
    where state = 'planned' and run = ? and kind = ? limit`;
  const planned = db.prepare<[string, string]>(`select 1 ${those} 1`);
  const withdraw = db.prepare<[string, string]>(
    `delete from change where seq in (select seq ${those} ${most})`,
  );
  const done = `select distinct kind, key from change
    where run = ? and kind = ? and state = 'acked'`;
  const forget = db.prepare(`delete from temp.observed where (kind, key) in (${done})`);
  const assume = db.prepare(
    `insert or replace into temp.looked (kind, key, at) select kind, key, null from (${done})`,
  );
  return {
    hasPlanned: (run, kind) => planned.get(run, kind) !== undefined,
    withdraw: (run, kind) => withdraw.run(run, kind).changes === most,
    assumeDone: (run, kind) => {
      forget.run(run, kind);
      assume.run(run, kind);
    },
  };
}
