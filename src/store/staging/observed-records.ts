/**
 * Stages what one run has observed on the platform: the listing, and records read individually.
 * Then finds what a listing shows that is not the mirror's, or that the mirror misses.
 */
import type { Key, ObservedRow, RecordTypeName } from '../../domain/record.ts';
import { manyIn, type Statements, withoutNull } from '../database/prepared-statements.ts';
import { mostIndexed, observedIndexes } from './staging-tables.ts';
import { inRange, type RecordRange } from '../database/key-range.ts';

/** Without an index; indexing more rows would block other work for too long. */
const mostUnsorted = 100_000;
/** Building another index takes just as long, so it starts this many rows later. */
const apart = 10_000;

const storedColumns =
  'kind, id, coalesce(alias, key) alias, body, fingerprint, created_at "createdAt"';

/** A longer listing has no indexes until it has ended or is very long. */
export function observedIn(db: Statements) {
  const columns = ['kind', 'id', 'key', 'body', 'fingerprint', 'created_at', 'alias'];
  const insert = manyIn(db, 'insert into temp.observed', columns);
  /** Adds rows, all under this key if it is given, otherwise each under its alias. */
  const add = (rows: readonly ObservedRow[], under?: Key): void => {
    const values: unknown[] = [];
    for (const { kind, id, alias, body, fingerprint, createdAt } of rows) {
      const key = under ?? alias;
      const other = alias === key ? undefined : alias;
      values.push(kind, id, key, body, fingerprint, createdAt, other);
    }
    insert(values);
  };
  const last = db.value<[], number>('select max(seq) from temp.observed');
  const forgetId = db.run<[RecordTypeName, id: string]>(
    'delete from temp.observed where kind = ? and id = ?',
  );
  const forgetObserved = db.run<[RecordTypeName, Key]>(
    'delete from temp.observed indexed by observed_by_key where kind = ? and key = ?',
  );
  const look = db.run<[RecordTypeName, Key, at: number | undefined]>(
    'insert or replace into temp.looked (kind, key, at) values (?, ?, ?)',
  );
  return {
    /** Adds a page of a listing, each record under its alias. A record may occur several times. */
    addListed(rows: readonly ObservedRow[]): void {
      const listed = last() ?? 0;
      for (const [nth, { make, drop }] of observedIndexes.entries()) {
        if (listed >= mostUnsorted + nth * apart) db.exec(make);
        else if (listed >= mostIndexed) db.exec(drop);
      }
      add(rows);
    },
    /** The steps that index the listing. Each must run once the listing has ended or failed. */
    sortings: observedIndexes.map(({ make }) => db.exec.bind(db, make)),
    /** Of a row that was listed several times, keeps the last one. Call it after indexing. */
    forgetRelisted: db.run<RecordRange>(
      `delete from temp.observed where seq in (
         select o.seq from (
           select id, max(seq) last from temp.observed where ${inRange('observed', 'id')}
           group by id having count(*) > 1) again
         cross join temp.observed o on o.kind = @kind and o.id = again.id and o.seq < again.last)`,
    ),
    /** Gives every listed record its key in the source, found by the recorded id or by name. */
    resolveKeys: db.run<{ kind: RecordTypeName }>(
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
    ),
    /** Adds rows that were read individually, replacing earlier rows with their ids. */
    addObserved(rows: readonly ObservedRow[], key?: Key): void {
      for (const row of rows) {
        forgetId(row.kind, row.id);
        add([row], key);
      }
    },
    observed: db.all<[RecordTypeName, Key], ObservedRow>(
      `select ${storedColumns}
       from temp.observed indexed by observed_by_key where kind = ? and key = ? order by id`,
      withoutNull,
    ),
    elsewhere: db.one<[id: string, RecordTypeName, notKey: Key], ObservedRow>(
      `select ${storedColumns}
       from temp.observed indexed by observed_by_id
       where id = ? and kind = ? and key <> ? order by seq desc limit 1`,
      withoutNull,
    ),
    countObserved: db.number<[RecordTypeName]>('select count(*) from temp.observed where kind = ?'),
    /** Counts the rows created no later than a time (platform's clock), or at an unknown time. */
    countCreatedBy: db.number<[RecordTypeName, at: number]>(
      `select count(*) from temp.observed
       where kind = ? and (created_at is null or created_at <= ?)`,
    ),
    /** Returns when the newest record was created, by the platform's clock; 0 if unknown. */
    newestCreated: db.number<[RecordTypeName]>(
      'select coalesce(max(created_at), 0) from temp.observed where kind = ?',
    ),
    forgetObserved,
    /** Notes when this key was read individually, so that its observed rows are complete. */
    addLooked: look,
    /** Makes the recorded state of this key count, because it is newer than the listing. */
    assume(kind: RecordTypeName, key: Key): void {
      forgetObserved(kind, key);
      look(kind, key, undefined);
    },
    /** Returns when the key was read individually; 'assumed' if the recorded state counts. */
    lookedAt: db.value<[RecordTypeName, Key], number | 'assumed'>(
      `select coalesce(at, 'assumed') from temp.looked where kind = ? and key = ?`,
    ),
    /** Notes that a response in this run showed the whole record at this time. */
    addSighted: db.run<[RecordTypeName, Key, at: number]>(
      'insert or replace into temp.sighted (kind, key, at) values (?, ?, ?)',
    ),
    sightedAt: db.value<[RecordTypeName, Key], number>(
      'select at from temp.sighted where kind = ? and key = ?',
    ),
  };
}

export interface Drifted {
  count: number;
  /** Keys or names; of contacts that are not ours, ids of the platform. */
  records: string[];
}

/** Finds what a listing shows that is not the mirror's, or that the mirror misses. */
export function platformDriftIn(db: Statements) {
  const ours = `select 1 from recorded r where r.kind = o.kind and r.ownership <> 'noted'`;
  // A contact that was ours under another address, as it is recorded before and after a run.
  const renamed = `select r.key from recorded r
    where r.kind = o.kind and r.key <> o.key and r.ownership <> 'noted' and (r.id = o.id
      or exists (select 1 from renamed n where n.kind = r.kind and n.id = o.id and n.key = r.key))`;
  const drifted = (sql: string): ((most: number) => Drifted) => {
    const count = db.number<[]>(`select count(*) from (${sql})`);
    const names = db.values<[most: number], string>(`${sql} order by name limit ?`);
    return (most) => ({ count: count(), records: names(most) });
  };
  return {
    /** Contacts that are neither ours nor in the source, by their ids. */
    foreignContacts: drifted(
      `select o.id name from temp.observed o where o.kind = 'contact'
         and not exists (${ours} and r.key = o.key) and not exists (${renamed})
         and not exists (select 1 from temp.staged s where s.kind = o.kind and s.key = o.key)`,
    ),
    /** Templates that are neither ours nor in the source, by their names. */
    foreignTemplates: drifted(
      `select o.alias name from temp.observed o where o.kind = 'template'
         and not exists (${ours} and r.id = o.id)
         and not exists (select 1 from temp.desired d where d.kind = o.kind and d.alias = o.alias)`,
    ),
    /** Addresses that several contacts have, by key. */
    sharedAddresses: drifted(
      `select o.key name from temp.observed o where o.kind = 'contact'
       group by o.key having count(*) > 1`,
    ),
    /** Our contacts that the listing shows under another address, by the key that is recorded. */
    renamed: drifted(
      `select distinct name from (select (${renamed}) name from temp.observed o
         where o.kind = 'contact') where name is not null`,
    ),
    /** Our contacts that the listing lacks, by key. */
    vanished: drifted(
      `select r.key name from recorded r where r.kind = 'contact' and r.ownership <> 'noted'
         and not exists (select 1 from temp.observed o where o.kind = r.kind and o.id = r.id)
         and not exists (select 1 from temp.observed o where o.kind = r.kind and o.key = r.key)
         and not exists (select 1 from renamed n join temp.observed o
           on o.kind = n.kind and o.id = n.id where n.kind = r.kind and n.key = r.key)`,
    ),
    /** The records with a problem of this cause, by key, each with its own reason. */
    withProblem: db.all<
      [kind: string, cause: string, most: number],
      { key: string; reason: string }
    >(
      `select key, min(reason) reason from temp.noticed where kind = ? and cause = ?
       group by key order by key limit ?`,
    ),
  };
}
