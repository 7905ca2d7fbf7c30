import type { Statements } from './statements.ts';
import type { Change, GuardClass } from '../model/change.ts';
import type { Problem } from '../model/problem.ts';
import type { Key, KindName, ObservedRow, RecordedRow } from '../model/record.ts';
import { desiredIn, type Desired } from './desired.ts';
import { manyIn } from './many.ts';
import { stagingNames } from './migrations.ts';
import { toStored } from './recorded.ts';

/**
 * What one run has read, and what it decided, before any of it counts. Held in temporary tables, so
 * that neither memory nor the snapshot grows with the readings.
 */
export interface Staging extends Desired {
  clear(): void;
  /** All under this key, or else each under its alias. */
  addObserved(rows: readonly ObservedRow[], key?: Key): void;
  /** Gives every listed record the key the source knows it by: by recorded id, else by name. */
  resolveKeys(kind: KindName): void;
  forgetObserved(kind: KindName, key: Key): void;
  observed(kind: KindName, key: Key): ObservedRow[];
  countObserved(kind: KindName): number;
  /**
   * Distinct ids known to be created no later than `at` (platform's clock) or at an unknown time.
   */
  countCreatedBy(kind: KindName, at: number): number;
  /** Notes that this key was read by itself just now: its observed rows are all there are. */
  addLooked(kind: KindName, key: Key, at: number): void;
  /** What is recorded of this key is newer than what was listed. */
  assume(kind: KindName, key: Key): void;
  lookedAt(kind: KindName, key: Key): number | 'assumed' | undefined;
  /** An answer showed the whole record in this run, at this time. */
  addSighted(kind: KindName, key: Key, at: number): void;
  sightedAt(kind: KindName, key: Key): number | undefined;
  addPlanned(change: Change): void;
  /** The plan in its order: by phase, kind, key. Nothing else may use the snapshot meanwhile. */
  planned(): IterableIterator<Change & { held: boolean }>;
  addNoted(row: RecordedRow): void;
  /** Takes what was noted, and what is forgotten, into `recorded`. */
  adoptNoted(): void;
  adoptForgotten(): void;
  addNoticed(problem: Problem): void;
  forgetNoticed(kind: KindName, key: Key): void;
  /** Records noticed so far, by class. */
  countNoticed(kind: KindName, name: Problem['class']): number;
  addForgotten(kind: KindName, key: Key): void;
  /** Drops all that was decided about these records and is not in the snapshot yet. */
  undecide(kind: KindName, keys: readonly Key[]): void;
  /** Empties what one round of decisions produced, keeping what was read and noticed. */
  clearDecisions(): void;
}

interface StoredObserved extends Omit<ObservedRow, 'createdAt'> {
  created_at: number | null;
}

export function stagingIn(db: Statements): Staging {
  const desired = desiredIn(db);
  return {
    ...desired,
    ...observedIn(db),
    ...resolvingIn(db),
    ...decidedIn(db),
    clear: () => {
      desired.clearForms();
      for (const name of stagingNames) db.exec(`delete from temp.${name}`);
    },
  };
}

type ObservedPart = Pick<
  Staging,
  | 'addObserved'
  | 'forgetObserved'
  | 'observed'
  | 'countObserved'
  | 'countCreatedBy'
  | 'addLooked'
  | 'assume'
  | 'lookedAt'
  | 'addSighted'
  | 'sightedAt'
>;

function resolvingIn(db: Statements): Pick<Staging, 'resolveKeys'> {
  const resolve = db.prepare(
    `update temp.observed set key = coalesce(
       (select r.key from recorded r join temp.staged s on s.kind = r.kind and s.key = r.key
        where r.kind = @kind and r.id = observed.id limit 1),
       (select s.key from temp.staged s
        where s.kind = @kind and s.alias = observed.alias and s.key <> '' limit 1),
       (select s.key from temp.staged s
        where s.kind = @kind and s.key = observed.alias and s.alias is null limit 1),
       (select r.key from recorded r where r.kind = @kind and r.id = observed.id limit 1),
       alias) where kind = @kind`,
  );
  return { resolveKeys: (kind) => void resolve.run({ kind }) };
}

function observedIn(db: Statements): ObservedPart {
  const columns = ['kind', 'id', 'key', 'alias', 'body', 'fingerprint', 'created_at'];
  const add = manyIn(db, 'insert or replace into temp.observed', columns);
  const forget = db.prepare(
    'delete from temp.observed indexed by observed_by_key where kind = ? and key = ?',
  );
  const ofKey = db.prepare<[string, string], StoredObserved>(
    `select kind, id, alias, body, fingerprint, created_at
     from temp.observed indexed by observed_by_key where kind = ? and key = ? order by id`,
  );
  const count = db.prepare<[string], { n: number }>(
    'select count(*) n from temp.observed where kind = ?',
  );
  const createdBy = db.prepare<[string, number], { n: number }>(
    `select count(*) n from temp.observed
     where kind = ? and (created_at is null or created_at <= ?)`,
  );
  const sight = db.prepare('insert or replace into temp.sighted (kind, key, at) values (?, ?, ?)');
  const sightedAt = db.prepare<[string, string], { at: number }>(
    'select at from temp.sighted where kind = ? and key = ?',
  );
  const look = db.prepare('insert or replace into temp.looked (kind, key, at) values (?, ?, ?)');
  const lookedAt = db.prepare<[string, string], { at: number | null }>(
    'select at from temp.looked where kind = ? and key = ?',
  );
  return {
    addObserved: (rows, key) =>
      add(
        rows.map((row) => {
          const { kind, id, alias, body, fingerprint, createdAt = null } = row;
          return [kind, id, key ?? alias, alias, body, fingerprint, createdAt];
        }),
      ),
    forgetObserved: (kind, key) => void forget.run(kind, key),
    observed: (kind, key) =>
      ofKey
        .all(kind, key)
        .map(({ created_at: at, ...row }) => ({ ...row, createdAt: at ?? undefined })),
    countObserved: (kind) => count.get(kind)?.n ?? 0,
    countCreatedBy: (kind, at) => createdBy.get(kind, at)?.n ?? 0,
    addLooked: (kind, key, at) => void look.run(kind, key, at),
    assume: (kind, key) => {
      forget.run(kind, key);
      look.run(kind, key, null);
    },
    addSighted: (kind, key, at) => void sight.run(kind, key, at),
    sightedAt: (kind, key) => sightedAt.get(kind, key)?.at,
    lookedAt: (kind, key) => {
      const row = lookedAt.get(kind, key);
      return row && (row.at ?? 'assumed');
    },
  };
}

interface StoredChange extends Omit<Change, 'target' | 'guard'> {
  target: string | null;
  guard: GuardClass | null;
}

type DecidedPart = Omit<Staging, keyof Desired | keyof ObservedPart | 'resolveKeys' | 'clear'>;

function decidedIn(db: Statements): DecidedPart {
  const plan = db.prepare(
    `insert into temp.planned (kind, key, op, part, target, body, phase, guard)
     values (@kind, @key, @op, @part, @target, @body, @phase, @guard)`,
  );
  const planned = db.prepare<[], StoredChange & { held: number }>(
    `select kind, key, op, part, target, body, phase, guard, held from temp.planned
     order by phase, kind, key, seq`,
  );
  const note = db.prepare(
    `insert or replace into temp.noted (kind, key, id, ownership, body, shown, desired, seen_at)
     values (@kind, @key, @id, @ownership, @body, @shown, @desired, @seen_at)`,
  );
  const adopt = db.prepare('insert or replace into recorded select * from temp.noted');
  const adoptForgotten = db.prepare(
    'delete from recorded where (kind, key) in (select kind, key from temp.forgotten)',
  );
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
      for (const { target, guard, held, ...row } of planned.iterate()) {
        const change = { ...row, target: target ?? undefined, guard: guard ?? undefined };
        yield { ...change, held: held === 1 };
      }
    },
    addNoted: (row) => void note.run(toStored(row)),
    adoptNoted: () => void adopt.run(),
    adoptForgotten: () => void adoptForgotten.run(),
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
