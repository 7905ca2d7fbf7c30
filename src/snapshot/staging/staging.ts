import type { Statements } from '../database/prepared-statements.ts';
import type { Change } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Key, RecordTypeName, RecordedRow } from '../../domain/record.ts';
import type { Desired } from './desired-staging.ts';
import { desiredIn } from './desired-records.ts';
import { stagingNames } from './staging-tables.ts';
import { type Observed, observedIn } from './observed-records.ts';
import { toStored } from '../tables/recorded-state.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import { inStretch, type Stretch, stretchesOf } from '../database/plan-chunks.ts';

/**
 * What one run has read, and what it decided, before any of it counts. Held in temporary tables, so
 * that neither memory nor the snapshot grows with the readings.
 */
export interface Staging extends Desired, Observed {
  clear(): void;
  addPlanned(change: Change): void;
  /** The plan in its order: by phase, kind, key. Nothing else may use the snapshot meanwhile. */
  planned(): IterableIterator<Change & { held: boolean }>;
  /** The whole of it, part by part. */
  chunks(): Iterable<Stretch>;
  plannedIn(stretch: Stretch): Change[];
  /** `isAlone`: that this record was decided upon hung on no other record. */
  addNoted(row: RecordedRow, isAlone: boolean): void;
  /** Takes those of a range into `recorded` that stand alone. */
  adoptAlone(kind: RecordTypeName, range: KeyRange): void;
  /** Takes the rest of what was noted, and what is forgotten, into `recorded`. */
  adoptNoted(): void;
  adoptForgotten(): void;
  addNoticed(problem: Problem): void;
  forgetNoticed(kind: RecordTypeName, key: Key): void;
  /** Records noticed so far, by class. */
  countNoticed(kind: RecordTypeName, name: Problem['class']): number;
  addForgotten(kind: RecordTypeName, key: Key): void;
  /** Drops all that was decided about these records and is not in the snapshot yet. */
  undecide(kind: RecordTypeName, keys: readonly Key[]): void;
  /** Empties what one round of decisions produced, keeping what was read and noticed. */
  clearDecisions(): void;
}

export function stagingIn(db: Statements): Staging {
  const desired = desiredIn(db);
  const observed = observedIn(db);
  return {
    ...desired,
    ...observed,
    ...decidedIn(db),
    ...notedIn(db),
    clear: () => {
      desired.clearForms();
      for (const name of stagingNames) db.exec(`delete from temp.${name}`);
      // A listing may have ended without them.
      for (const sort of observed.sortings) sort();
    },
  };
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

type DecidedPart = Omit<Staging, keyof Desired | keyof Observed | keyof NotedPart | 'clear'>;

function decidedIn(db: Statements): DecidedPart {
  const plan = db.prepare(
    `insert into temp.planned (kind, key, op, part, target, body, phase, guard)
     values (@kind, @key, @op, @part, @target, @body, @phase, @guard)`,
  );
  const those =
    'select kind, key, op, part, target, body, phase, guard, held from temp.planned indexed by planned_in_order';
  const order = 'order by phase, kind, key, seq';
  const planned = db.prepare<[], StoredChange & { held: number }>(`${those} ${order}`);
  const within = db.prepare<Stretch, StoredChange & { held: number }>(
    `${those} where ${inStretch} ${order}`,
  );
  const chunks = stretchesOf(db, 'from temp.planned indexed by planned_in_order where true');
  const notice = db.prepare<Problem>(
    `insert or replace into temp.noticed (kind, key, class, part, reason, fix)
     values (@kind, @key, @class, @part, @reason, @fix)`,
  );
  const unnotice = db.prepare('delete from temp.noticed where kind = ? and key = ?');
  const countNoticed = db.prepare<[string, string], { n: number }>(
    'select count(distinct key) n from temp.noticed where kind = ? and class = ?',
  );
  const forget = db.prepare('insert or replace into temp.forgotten (kind, key) values (?, ?)');
  const clear = ['planned', 'noted', 'forgotten', 'remarked'].map((name) =>
    db.prepare(`delete from temp.${name}`),
  );
  return {
    addPlanned: (change) =>
      void plan.run({ ...change, target: change.target ?? null, guard: change.guard ?? null }),
    *planned() {
      for (const { held, ...row } of planned.iterate()) {
        yield { ...fromStored(row), held: held === 1 };
      }
    },
    chunks: () => chunks({}),
    plannedIn: (stretch) => within.all(stretch).map(fromStored),
    addNoticed: (problem) => void notice.run(problem),
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
  const undecide = ['planned', 'noted', 'noticed', 'forgotten', 'withheld'].map((name) =>
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
