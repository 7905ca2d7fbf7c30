/**
 * Stages what a run reads from the source: first each record with its form, or undecided until a
 * whole reading has shown what its columns hold; then sorted by key. Most records share a few
 * forms; each form is stored once, and the records refer to it.
 */
import type { DesiredRow, Fault, Key, RecordTypeName } from '../../domain/record.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { mostIndexed, unsortedIndex } from './staging-tables.ts';
import { unchangedIn } from './unchanged-records.ts';
import { inRange, isStaged, type RecordRange } from '../database/key-range.ts';
import { manyIn, type Statements, withoutNull } from '../database/prepared-statements.ts';

/** Prepares the statements about the records that one run has read from a source. */
export function desiredIn(db: Statements) {
  const forms = formsIn(db);
  const stageOne = db.run<[RecordTypeName, string, number, string, string, form: number]>(
    `insert or ignore into temp.staged (kind, key, seq, id, place, form)
     values (?, ?, ?, ?, ?, ?)`,
  );
  const unchanged = unchangedIn(db, (row, seq) =>
    stageOne(row.kind, row.key ?? '', seq, row.id, row.place, forms.of(row)),
  );
  return {
    unchanged,
    ...addingIn(db, forms, unchanged),
    ...undecidedIn(db),
    ...namingIn(db),
    ...sharedIn(db),
    ...readingIn(db, unchanged),
  };
}

type Unchanged = ReturnType<typeof unchangedIn>;

function addingIn(db: Statements, forms: ReturnType<typeof formsIn>, unchanged: Unchanged) {
  const forget = ['form', 'unsorted', 'undecided', 'staged', 'strange', 'shared'].map((name) =>
    db.run<[RecordTypeName]>(`delete from temp.${name} where kind = ?`),
  );
  const into = 'insert into temp.unsorted';
  // Nearly all records are valid and have their alias as the key.
  const plain = ['kind', 'key', 'seq', 'id', 'place', 'form'];
  const addPlain = manyIn(db, into, plain);
  const addOdd = manyIn(db, into, [...plain, 'alias', ...faultColumns]);
  const columns = ['kind, key, seq, id, alias, place, form', ...faultColumns].join(', ');
  const sort = (which: string): string =>
    `insert into temp.staged (${columns}) select ${columns} from temp.unsorted
     where ${which} order by kind, key, id, seq`;
  const last = db.value<[], number>('select max(rowid) from temp.unsorted');
  return {
    /**
     * Adds records, of which the first is the `nth` of the reading. They become visible after
     * sorting, except those that are unchanged.
     */
    addDesired(rows: Iterable<DesiredRow>, nth: number): void {
      if ((last() ?? 0) >= mostIndexed) db.exec(unsortedIndex.drop);
      let seq = nth - 1;
      const plainRows: unknown[] = [];
      const oddRows: unknown[] = [];
      for (const row of rows) {
        seq += 1;
        if (unchanged.see(row, seq)) continue;
        const { kind, key = '', id, alias, place, invalid } = row;
        const own = alias === key ? undefined : alias;
        const isPlain = own === undefined && !invalid;
        const values = isPlain ? plainRows : oddRows;
        values.push(kind, key, seq, id, place, forms.of(row));
        if (!isPlain) values.push(own, ...faultNames.map((name) => invalid?.[name]));
      }
      addPlain(plainRows);
      addOdd(oddRows);
    },
    beginSorting: () => db.exec(unsortedIndex.make),
    /**
     * Sorts the added records of a range into the table. Sorting many records at a time writes each
     * page of the table once for several of them.
     */
    sortRange: db.run<RecordRange>(sort(inRange('unsorted'))),
    sortKeyless: db.run<{ kind: RecordTypeName }>(sort(`kind = @kind and key = ''`)),
    endSorting: () => db.exec('delete from temp.unsorted'),
    forgetDesired(kind: RecordTypeName): void {
      forms.clear();
      if (kind === 'contact') unchanged.clear();
      for (const forgetIn of forget) forgetIn(kind);
    },
    /** Empties the cache of forms. Call it after rolling back a transaction that added some. */
    clearForms: forms.clear,
  };
}

interface Form {
  kind: RecordTypeName;
  wants: DesiredRow['wants'];
  presence: DesiredRow['presence'];
  form: number;
}

/** Of the cache. With times of consent, each person may have a form of their own. */
const mostForms = 10_000;

function formsIn(db: Statements) {
  const add = db.number<
    [RecordTypeName, body: string, fingerprint: string, wants: boolean, presence: string]
  >(
    `insert into temp.form (kind, body, fingerprint, wants, presence) values (?, ?, ?, ?, ?)
     returning form`,
  );
  const forms = new Map<string, Form>();
  return {
    of({ kind, body, fingerprint, wants, presence }: DesiredRow): number {
      const known = forms.get(body);
      const isThat = known?.kind === kind && known.wants === wants && known.presence === presence;
      if (isThat) return known.form;
      if (forms.size >= mostForms) forms.clear();
      const form = add(kind, body, fingerprint, wants, presence);
      forms.set(body, { form, kind, wants, presence });
      return form;
    },
    clear: () => forms.clear(),
  };
}

/** The fields of a fault, in the order of their columns. */
const texts = ['reason', 'fix', 'cause', 'about', 'option', 'value'] as const;
const faultNames = [...texts, 'noAddress', 'mayOptOut'] as const;
const faultColumns = faultNames.map((name) =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);

const undecidedRow = storedJson<DesiredRow>('a staged record');

function undecidedIn(db: Statements) {
  const keep = db.run<[RecordTypeName, row: string]>(
    'insert into temp.undecided (kind, row) values (?, ?)',
  );
  const take = db.all<[RecordTypeName, count: number], { seq: number; row: string }>(
    `delete from temp.undecided where seq in (
       select seq from temp.undecided where kind = ? order by seq limit ?)
     returning seq, row`,
  );
  return {
    /** Keeps records whose meaning depends on the other values of their columns. */
    keepUndecided(rows: readonly DesiredRow[]): void {
      for (const one of rows) keep(one.kind, undecidedRow.encode(one));
    },
    /** Removes up to `count` of these records, in the order of the reading, and returns them. */
    takeUndecided: (kind: RecordTypeName, count: number): DesiredRow[] =>
      take(kind, count)
        .toSorted((a, b) => a.seq - b.seq)
        .map(({ row }) => undecidedRow.decode(row)),
  };
}

function namingIn(db: Statements) {
  const named = db.run<{ kind: RecordTypeName; count: number }>(
    `insert into temp.staged
       (kind, key, seq, id, place, form,
       reason, fix, cause, about, option, value, no_address, may_opt_out, again)
     select d.kind, o.key, @count + row_number() over (), d.id, min(d.place), d.form,
       d.reason, d.fix, d.cause, d.about, d.option, d.value, d.no_address, d.may_opt_out,
       d.key <> ''
     from temp.staged d indexed by staged_invalid join origin o on o.kind = d.kind and o.id = d.id
     where d.kind = @kind and d.reason is not null and d.id <> '' and d.key <> o.key
       and (d.key = '' or not exists (
         select 1 from temp.staged e where e.kind = d.kind and e.key = o.key))
     group by d.id, o.key, d.key = '', iif(d.key = '', d.seq, d.form)`,
  );
  const nameless = db.run<{ kind: RecordTypeName }>(
    `delete from temp.staged where kind = @kind and key = '' and id <> '' and exists (
       select 1 from origin o where o.kind = @kind and o.id = staged.id)`,
  );
  const strangers = db.run<{ kind: RecordTypeName }>(
    `delete from temp.strange where kind = @kind and key = '' and exists (
       select 1 from origin o where o.kind = @kind and o.id = strange.id)`,
  );
  return {
    /**
     * Also stages an invalid record under every key that its id was last observed with, so that no
     * person counts as absent because of it. A record with a key of its own leaves to others the
     * keys that they have. The added rows follow the `count` records of the reading.
     */
    nameByOrigin(kind: RecordTypeName, count: number): void {
      named({ kind, count });
      nameless({ kind });
      strangers({ kind });
    },
    /** Drops the records that have no address and were never known. */
    skipUnknown: db.run<[RecordTypeName]>(
      `delete from temp.staged
       where kind = ? and key = '' and no_address and reason is not null`,
    ),
    /** Counts recorded people whose present records all lack a valid address. */
    countAddressless: db.number<[RecordTypeName]>(
      `select count(distinct s.key) from temp.staged s indexed by staged_invalid
       where s.kind = ? and s.reason is not null and s.no_address is not null and s.key <> ''
         and exists (select 1 from recorded r where r.kind = s.kind and r.key = s.key)
         and not exists (
           select 1 from temp.staged e
           where e.kind = s.kind and e.key = s.key and e.no_address is null)`,
    ),
  };
}

function sharedIn(db: Statements) {
  const ofSeveral = (of: string): string => `
    insert or ignore into temp.shared (kind, id)
    select a.kind, a.id from ${of} a
    where ${inRange('a', 'id')}
    group by a.id having `;
  const sharedStrange = db.run<RecordRange>(
    `${ofSeveral('temp.strange')} count(*) > 1 or exists (
       select 1 from origin o where o.kind = a.kind and o.id = a.id and ${isStaged('o')})`,
  );
  const sharedKnown = db.run<RecordRange>(
    `${ofSeveral('origin')} count(*) > 1 and (
       select count(*) from origin o
       where o.kind = a.kind and o.id = a.id and ${isStaged('o')}) > 1`,
  );
  return {
    /** Notes the records whose id was never observed with this key. It must be called first. */
    noteStrange: db.run<RecordRange>(
      `insert or ignore into temp.strange (kind, id, key)
       select kind, id, key from temp.staged s
       where ${inRange('s')} and id <> '' and not exists (
         select 1 from origin o indexed by origin_by_key
         where o.kind = s.kind and o.key = s.key and o.id = s.id)`,
    ),
    noteKeyless: db.run<[RecordTypeName]>(
      `insert or ignore into temp.strange (kind, id, key)
       select kind, id, key from temp.staged where kind = ? and key = '' and id <> ''`,
    ),
    /** Finds the ids that several addresses share. An unreadable address counts as one of them. */
    findSharedIds(range: RecordRange): void {
      sharedStrange(range);
      sharedKnown(range);
    },
    /** The same among the ids of staged records that no other range of ids has. */
    findSharedStrange: sharedStrange,
    /** Finds, within a range of keys, the other ids of staged records that several keys have. */
    findSharedStaged: db.run<RecordRange>(
      `insert or ignore into temp.shared (kind, id)
       select s.kind, s.id from temp.staged s where ${inRange('s')} and s.id <> '' and (
         select count(*) from origin o
         where o.kind = s.kind and o.id = s.id and ${isStaged('o')}) > 1`,
    ),
    invalidateSharedIds: db.run<{
      kind: RecordTypeName;
      cause: Fault['cause'];
      reason: string;
      fix: string;
    }>(
      `update temp.staged set reason = @reason, fix = @fix, cause = @cause,
         about = null, option = null, value = null, no_address = null
       where kind = @kind and key in (
           select s.key from temp.shared h
             cross join temp.strange s on s.kind = h.kind and s.id = h.id
           where h.kind = @kind
           union
           select o.key from temp.shared h cross join origin o on o.kind = h.kind and o.id = h.id
           where h.kind = @kind)
         and id in (select id from temp.shared where kind = @kind)`,
    ),
  };
}

interface StoredDesired
  extends
    Omit<DesiredRow, 'wants' | 'invalid' | 'key'>,
    Partial<Omit<Fault, 'noAddress' | 'mayOptOut'>> {
  key: string;
  seq: number;
  wants: 0 | 1;
  noAddress?: 0 | 1;
  mayOptOut?: 0 | 1;
}

const storedColumns = `kind, key, seq, id, alias, place, body, fingerprint, wants, presence, reason,
  fix, cause, about, option, value, no_address "noAddress", may_opt_out "mayOptOut"`;

function fromStored(stored: StoredDesired): DesiredRow {
  const { key, seq: _, wants, noAddress, mayOptOut, ...rest } = withoutNull(stored);
  const { reason, fix = '', cause, about, option, value, ...row } = rest;
  const invalid = reason !== undefined && {
    reason,
    fix,
    about,
    option,
    value,
    ...(cause && { cause }),
    noAddress: noAddress === undefined ? noAddress : noAddress === 1,
    mayOptOut: mayOptOut === 1 || undefined,
  };
  return { ...row, key: key || undefined, wants: wants === 1, invalid: invalid || undefined };
}

function readingIn(db: Statements, { stageKey, stageId }: Unchanged) {
  const desired = db.all<[RecordTypeName, Key], DesiredRow, StoredDesired>(
    `select ${storedColumns} from temp.desired where kind = ? and key = ? order by seq`,
    fromStored,
  );
  const idsOf = db.values<[RecordTypeName, Key], string>(
    `select distinct id from temp.staged where kind = ? and key = ? and id <> ''`,
  );
  const keysOf = db.values<[RecordTypeName, ids: readonly string[]], Key>(
    `select distinct key from temp.stands
     where kind = ? and id in (select value from json_each(?)) and key <> ''`,
  );
  return {
    desired(kind: RecordTypeName, key: Key): DesiredRow[] {
      stageKey(key);
      return desired(kind, key);
    },
    idsOf(kind: RecordTypeName, key: Key): string[] {
      stageKey(key);
      return idsOf(kind, key);
    },
    keysOf(kind: RecordTypeName, ids: readonly string[]): Key[] {
      for (const id of ids) stageId(id);
      return keysOf(kind, ids);
    },
    /** Counts the keys with a valid record, and how many of them request something. */
    countDesired: db.only<RecordRange, { valid: number; wanted: number }>(
      `select coalesce(sum(valid), 0) valid, coalesce(sum(wanted), 0) wanted from (
         select max(reason is null) valid, max(reason is null and wants) wanted from temp.desired
         where ${inRange('desired')} group by key)`,
    ),
    wantedKeys: db.values<RecordRange, Key>(
      `select key from temp.desired
       where ${inRange('desired')} group by key having max(reason is null and wants)`,
    ),
    countInvalid: db.number<[RecordTypeName]>(
      `select count(distinct place) from temp.staged indexed by staged_invalid
       where kind = ? and reason is not null`,
    ),
    /** Returns invalid records in reading order, each once, after row `after`. */
    invalid: db.all<
      [RecordTypeName, after: number, most: number],
      DesiredRow & { row: number },
      StoredDesired
    >(
      `select ${storedColumns} from temp.desired
       where kind = ? and seq > ? and reason is not null and not again order by seq limit ?`,
      (stored) => ({ ...fromStored(stored), row: stored.seq }),
    ),
  };
}

export interface DuplicateCounts {
  /** Ids that several records with one key have. */
  ids: number;
  /** Ids that records with different keys have. All of these records are invalid. */
  sharedIds: number;
  /** Keys that several records have, whatever their ids. */
  keys: number;
}

/**
 * Stores ids of source records by key if the table `origin` does not show them: those of several
 * records with one key, and of records that are not recorded. Whoever reads one record of a key
 * must read the others, too: one of them may state an opt-out.
 */
export function duplicatesIn(db: Statements) {
  // A record that is also staged under another key is counted under its own.
  const shares = (those: string) => `select count(*) from (
    select 1 from temp.staged where kind = @kind and not again and ${those}
    group by key, id having count(distinct place) > 1)`;
  return {
    /** Unless `done`, skips records that request something: most are about to be recorded. */
    note: db.run<RecordRange & { done: boolean }>(
      `insert or ignore into twin (kind, key, id)
       select s.kind, s.key, s.id from temp.desired s
       where ${inRange('s')} and s.id <> '' and (
         exists (
           select 1 from temp.staged t where t.kind = s.kind and t.key = s.key and t.id <> s.id)
         or ((@done or not s.wants or s.reason is not null) and not exists (
           select 1 from recorded r where r.kind = s.kind and r.key = s.key)))`,
    ),
    /** Drops the duplicates that this run has not read, and those that origins now show. */
    dropOld: db.run<{ kind: RecordTypeName }>(
      `delete from twin where kind = @kind and (
         not exists (
           select 1 from temp.staged s
           where s.kind = @kind and s.key = twin.key and s.id = twin.id)
         or exists (
           select 1 from origin o where o.kind = @kind and o.key = twin.key and o.id = twin.id)
         and not exists (
           select 1 from temp.staged t
           where t.kind = @kind and t.key = twin.key and t.id <> twin.id))`,
    ),
    drop: db.run<[RecordTypeName, Key]>('delete from twin where kind = ? and key = ?'),
    of: db.values<[RecordTypeName, Key], string>(
      'select id from twin where kind = ? and key = ? order by id',
    ),
    count: db.only<{ kind: RecordTypeName }, DuplicateCounts>(
      `select (${shares("id <> '' and id not in (select id from temp.shared where kind = @kind)")}) ids,
         (select count(*) from temp.shared where kind = @kind) sharedIds,
         (select count(*) from (
           select 1 from temp.staged where kind = @kind and key <> '' and not again
           group by key having count(distinct place) > 1)) keys`,
    ),
    namesOf: db.values<[RecordTypeName, id: string], Key>(
      'select key from twin indexed by twin_by_id where kind = ? and id = ?',
    ),
  };
}
