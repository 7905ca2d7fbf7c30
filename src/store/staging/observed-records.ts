/** Stages what one run has observed on the platform: the listing, and records read individually. */
import type { Key, ObservedRow, RecordTypeName } from '../../domain/record.ts';
import { manyIn, type Statements } from '../database/prepared-statements.ts';
import { observedIndexes } from './staging-tables.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';

/** The platform records that one run has observed. */
export interface Observed {
  /** Begins a listing. Until it is indexed, no observed record can be found. */
  beginListing(): void;
  /** Adds a page of a listing, each record under its alias. A record may occur several times. */
  addListed(rows: readonly ObservedRow[]): void;
  /** The steps that index the listing. Each must run once the listing has ended or failed. */
  readonly sortings: readonly (() => void)[];
  /**
   * If a row was listed several times, keeps only the last one. Call it after indexing, for each
   * range of ids.
   */
  forgetRelisted(kind: RecordTypeName, range: KeyRange): void;
  /**
   * Adds rows that were read individually, replacing earlier rows with their ids: all under `key`
   * if it is given, otherwise each under its alias.
   */
  addObserved(rows: readonly ObservedRow[], key?: Key): void;
  /**
   * Gives every listed record the key that it has in the source, found by the recorded id or
   * otherwise by name.
   */
  resolveKeys(kind: RecordTypeName): void;
  forgetObserved(kind: RecordTypeName, key: Key): void;
  observed(kind: RecordTypeName, key: Key): ObservedRow[];
  /** Returns the record with this id if it was observed under another key. */
  elsewhere(kind: RecordTypeName, id: string, notKey: Key): ObservedRow | undefined;
  countObserved(kind: RecordTypeName): number;
  /**
   * Counts the distinct ids created no later than `at` (platform's clock), or at an unknown time.
   */
  countCreatedBy(kind: RecordTypeName, at: number): number;
  /**
   * Notes that this key was read individually at this time, so that its observed rows are complete.
   */
  addLooked(kind: RecordTypeName, key: Key, at: number): void;
  /** Makes the recorded state of this key count, because it is newer than the listing. */
  assume(kind: RecordTypeName, key: Key): void;
  /** Returns when the key was read individually; 'assumed' if the recorded state counts. */
  lookedAt(kind: RecordTypeName, key: Key): number | 'assumed' | undefined;
  /** Notes that a response in this run showed the whole record at this time. */
  addSighted(kind: RecordTypeName, key: Key, at: number): void;
  sightedAt(kind: RecordTypeName, key: Key): number | undefined;
}

/** Prepares the statements about observed records. */
export function observedIn(db: Statements): Observed {
  const add = addingIn(db);
  const seen = seenIn(db, add);
  return { ...listedIn(db, add), ...resolvingIn(db), ...seen, ...lookedIn(db, seen) };
}

/**
 * The maximum number of rows without an index; indexing more of them would block other work for too
 * long.
 */
const mostUnsorted = 100_000;
/** Building another index takes just as long, so it starts this many rows later. */
const apart = 10_000;

type ListedPart = Pick<Observed, 'beginListing' | 'addListed' | 'sortings' | 'forgetRelisted'>;

/**
 * Prepares the statements for a listing. Building an index for all rows together takes a fraction
 * of the time of updating it row by row. A short listing therefore has no indexes; once it is long,
 * they are built and kept up to date.
 */
function listedIn(db: Statements, add: Add): ListedPart {
  const last = db.prepare<[], { seq: number | null }>('select max(seq) seq from temp.observed');
  const relisted = db.prepare<KeyRange & { kind: string }>(
    `delete from temp.observed where seq in (
       select o.seq from (
         select id, max(seq) last from temp.observed where ${inRange('observed', 'id')}
         group by id having count(*) > 1) again
       cross join temp.observed o on o.kind = @kind and o.id = again.id and o.seq < again.last)`,
  );
  const sortings = observedIndexes.map(
    ({ make }) =>
      () =>
        db.exec(make),
  );
  return {
    beginListing: () => {
      for (const { drop } of observedIndexes) db.exec(drop);
    },
    addListed(rows) {
      const listed = last.get()?.seq ?? 0;
      for (const [nth, sort] of sortings.entries()) {
        if (listed >= mostUnsorted + nth * apart) sort();
      }
      add(rows);
    },
    sortings,
    forgetRelisted: (kind, range) => void relisted.run({ kind, ...range }),
  };
}

function resolvingIn(db: Statements): Pick<Observed, 'resolveKeys'> {
  const resolve = db.prepare(
    `update temp.observed set alias = coalesce(alias, key), key = coalesce(
       (select r.key from recorded r cross join temp.staged s on s.kind = r.kind and s.key = r.key
        where r.kind = @kind and r.id = observed.id limit 1),
       (select s.key from temp.staged s
        where s.kind = @kind and s.alias = coalesce(observed.alias, observed.key) and s.key <> ''
        limit 1),
       (select s.key from temp.staged s
        where s.kind = @kind and s.key = coalesce(observed.alias, observed.key)
          and s.alias is null limit 1),
       (select r.key from recorded r where r.kind = @kind and r.id = observed.id limit 1),
       alias, key)
     where seq in (select seq from temp.observed where kind = @kind)`,
  );
  return { resolveKeys: (kind) => void resolve.run({ kind }) };
}

interface StoredObserved extends Omit<ObservedRow, 'createdAt'> {
  created_at: number | null;
}

type SeenPart = Pick<
  Observed,
  'addObserved' | 'forgetObserved' | 'observed' | 'elsewhere' | 'countObserved' | 'countCreatedBy'
>;

function seenIn(db: Statements, add: Add): SeenPart {
  const forgetId = db.prepare('delete from temp.observed where kind = ? and id = ?');
  const forget = db.prepare(
    'delete from temp.observed indexed by observed_by_key where kind = ? and key = ?',
  );
  const ofKey = db.prepare<[string, string], StoredObserved>(
    `select kind, id, coalesce(alias, key) alias, body, fingerprint, created_at
     from temp.observed indexed by observed_by_key where kind = ? and key = ? order by id`,
  );
  const ofId = db.prepare<[string, string, string], StoredObserved>(
    `select kind, id, coalesce(alias, key) alias, body, fingerprint, created_at
     from temp.observed indexed by observed_by_id
     where id = ? and kind = ? and key <> ? order by seq desc limit 1`,
  );
  const count = db.prepare<[string], { n: number }>(
    'select count(*) n from temp.observed where kind = ?',
  );
  const createdBy = db.prepare<[string, number], { n: number }>(
    `select count(*) n from temp.observed
     where kind = ? and (created_at is null or created_at <= ?)`,
  );
  return {
    addObserved(rows, key) {
      for (const row of rows) {
        forgetId.run(row.kind, row.id);
        add([row], key);
      }
    },
    forgetObserved: (kind, key) => void forget.run(kind, key),
    observed: (kind, key) => ofKey.all(kind, key).map(fromStored),
    elsewhere(kind, id, notKey) {
      const row = ofId.get(id, kind, notKey);
      return row && fromStored(row);
    },
    countObserved: (kind) => count.get(kind)?.n ?? 0,
    countCreatedBy: (kind, at) => createdBy.get(kind, at)?.n ?? 0,
  };
}

function fromStored({ created_at: at, ...row }: StoredObserved): ObservedRow {
  return { ...row, createdAt: at ?? undefined };
}

/** Adds rows, all under this key if it is given, otherwise each under its alias. */
type Add = (rows: readonly ObservedRow[], key?: Key) => void;

function addingIn(db: Statements): Add {
  const columns = ['kind', 'id', 'key', 'body', 'fingerprint', 'created_at'];
  const addOwn = manyIn(db, 'insert into temp.observed', columns);
  const addAlias = manyIn(db, 'insert into temp.observed', [...columns, 'alias']);
  return (rows, under) => {
    const own: unknown[] = [];
    const aliased: unknown[] = [];
    for (const { kind, id, alias, body, fingerprint, createdAt = null } of rows) {
      const key = under ?? alias;
      const values = alias === key ? own : aliased;
      values.push(kind, id, key, body, fingerprint, createdAt);
      if (alias !== key) values.push(alias);
    }
    addOwn(own);
    addAlias(aliased);
  };
}

type LookedPart = Pick<Observed, 'addLooked' | 'assume' | 'lookedAt' | 'addSighted' | 'sightedAt'>;

function lookedIn(db: Statements, { forgetObserved }: SeenPart): LookedPart {
  const sight = db.prepare('insert or replace into temp.sighted (kind, key, at) values (?, ?, ?)');
  const sightedAt = db.prepare<[string, string], { at: number }>(
    'select at from temp.sighted where kind = ? and key = ?',
  );
  const look = db.prepare('insert or replace into temp.looked (kind, key, at) values (?, ?, ?)');
  const lookedAt = db.prepare<[string, string], { at: number | null }>(
    'select at from temp.looked where kind = ? and key = ?',
  );
  return {
    addLooked: (kind, key, at) => void look.run(kind, key, at),
    assume: (kind, key) => {
      forgetObserved(kind, key);
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
