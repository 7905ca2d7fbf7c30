/**
 * Stages what a run reads from the source: first each record with its form, or undecided until a
 * whole reading has shown what its columns hold; then sorted by key. Then reads these records, and
 * stores the ids of duplicates. Most of them share a few forms; each form is stored once, and the
 * records refer to it.
 */
import { z } from 'zod';
import { problemCauses, type ProblemCause } from '../../domain/problem-causes.ts';
import type { DesiredRow, Fault, Key, RecordTypeName } from '../../domain/record.ts';
import { mostIndexed, unsortedIndex } from './staging-tables.ts';
import { inRange, isStaged, type KeyRange } from '../database/key-range.ts';
import { manyIn, type Statements } from '../database/prepared-statements.ts';

/** Prepares the statements about the records that one run has read from a source. */
export function desiredIn(db: Statements) {
  return {
    ...addingIn(db),
    ...undecidedIn(db),
    ...namingIn(db),
    ...sharedIn(db),
    ...readingIn(db),
  };
}

function addingIn(db: Statements) {
  const forms = formsIn(db);
  const forget = ['form', 'unsorted', 'undecided', 'staged', 'strange', 'shared'].map((name) =>
    db.run<[RecordTypeName]>(`delete from temp.${name} where kind = ?`),
  );
  const into = 'insert into temp.unsorted';
  // Nearly all records are valid and have their alias as the key.
  const plain = ['kind', 'key', 'seq', 'id', 'place', 'form'];
  const addPlain = manyIn(db, into, plain);
  const addOdd = manyIn(db, into, [...plain, 'alias', ...faultColumns]);
  const sort = (which: string): string =>
    `insert into temp.staged 
       (kind, key, seq, id, alias, place, form, ${faultColumns.join(', ')})
     select kind, key, seq, id, alias, place, form, ${faultColumns.join(', ')}
     from temp.unsorted
     where ${which} order by kind, key, id, seq`;
  const last = db.value<[], number | null>('select max(rowid) from temp.unsorted');
  const sortRange = db.run<KeyRange & { kind: string }>(sort(inRange('unsorted')));
  const sortKeyless = db.run<{ kind: string }>(sort(`kind = @kind and key = ''`));
  return {
    /**
     * Adds records, of which the first is the `nth` of the reading. They become visible after
     * sorting.
     */
    addDesired(rows: Iterable<DesiredRow>, nth: number): void {
      if ((last() ?? 0) >= mostIndexed) db.exec(unsortedIndex.drop);
      let seq = nth;
      const plainRows: unknown[] = [];
      const oddRows: unknown[] = [];
      for (const row of rows) {
        const { kind, key = '', id, alias, place, invalid } = row;
        const own = alias === key ? null : alias;
        const isPlain = own === null && !invalid;
        const values = isPlain ? plainRows : oddRows;
        values.push(kind, key, seq, id, place, forms.of(row));
        if (!isPlain) values.push(own, ...faultOf(invalid));
        seq += 1;
      }
      addPlain(plainRows);
      addOdd(oddRows);
    },
    /** Begins sorting: creates the index that `sortIn` needs. */
    beginSorting: () => db.exec(unsortedIndex.make),
    /**
     * Sorts the added records of a range, or those without a key, into the table. Sorting many
     * records at a time writes each page of the table once for several of them.
     */
    sortIn: (kind: RecordTypeName, range: KeyRange | 'keyless') =>
      range === 'keyless' ? sortKeyless({ kind }) : sortRange({ kind, ...range }),
    /** Ends sorting after all added records were sorted. */
    endSorting: () => db.exec('delete from temp.unsorted'),
    forgetDesired(kind: RecordTypeName): void {
      forms.clear();
      for (const forgetIn of forget) forgetIn(kind);
    },
    /** Empties the cache of forms. Call it after rolling back a transaction that added some. */
    clearForms: forms.clear,
  };
}

interface Form extends Pick<DesiredRow, 'kind' | 'wants' | 'presence'> {
  form: number;
}

/**
 * The maximum number of cached forms; with times of consent, each person may have a different form.
 */
const mostForms = 10_000;

function formsIn(db: Statements) {
  const add = db.prepare<
    [RecordTypeName, body: string, fingerprint: string, wants: number, presence: string]
  >('insert into temp.form (kind, body, fingerprint, wants, presence) values (?, ?, ?, ?, ?)');
  const forms = new Map<string, Form>();
  return {
    of({ kind, body, fingerprint, wants, presence }: DesiredRow): number {
      const known = forms.get(body);
      const isThat = known?.kind === kind && known.wants === wants && known.presence === presence;
      if (isThat) return known.form;
      if (forms.size >= mostForms) forms.clear();
      const { lastInsertRowid } = add.run(kind, body, fingerprint, Number(wants), presence);
      const form = Number(lastInsertRowid);
      forms.set(body, { form, kind, wants, presence });
      return form;
    },
    clear: () => forms.clear(),
  };
}

const faultColumns = [
  'reason',
  'fix',
  'cause',
  'about',
  'option',
  'value',
  'no_address',
  'may_opt_out',
];

function faultOf(invalid: DesiredRow['invalid']): unknown[] {
  if (!invalid) return faultColumns.map(() => null);
  const { reason, fix, cause = null, about = null, option = null, value = null } = invalid;
  const { noAddress, mayOptOut } = invalid;
  const lost = noAddress === undefined ? null : Number(noAddress);
  return [reason, fix, cause, about, option, value, lost, mayOptOut ? 1 : null];
}

const text = z.string();
const faultShape = z
  .object({
    reason: text,
    fix: text,
    cause: z.enum(Object.values(problemCauses).flat()).optional(),
    about: text.optional(),
    option: text.optional(),
    value: text.optional(),
    noAddress: z.boolean().optional(),
    mayOptOut: z.literal(true).optional(),
  })
  .transform(({ cause, ...rest }) => ({ ...rest, ...(cause && { cause }) }));
const unknownShape = z.object({
  option: text,
  fix: text,
  unknown: z.enum(['word', 'future', 'no single value']),
  text: text.optional().transform((given) => given),
});
const rowShape = z.object({
  kind: z.enum(['contact', 'template']),
  id: text,
  key: text.optional().transform((given) => given),
  alias: text,
  place: text,
  body: text,
  fingerprint: text,
  wants: z.boolean(),
  presence: z.enum(['present', 'flagged', 'outside']),
  invalid: faultShape.optional().transform((given) => given),
  unknown: z.array(unknownShape).optional(),
});
const undecidedShape = rowShape.extend({
  asDates: z.object({ columns: z.array(text), row: rowShape }).optional(),
});

/** Keeps records until a whole reading has shown what their columns hold. */
function undecidedIn(db: Statements) {
  const keep = db.run<[RecordTypeName, row: string]>(
    'insert into temp.undecided (kind, row) values (?, ?)',
  );
  const first = db.all<[RecordTypeName, count: number], { seq: number; row: string }>(
    'select seq, row from temp.undecided where kind = ? order by seq limit ?',
  );
  const drop = db.run<[seq: number]>('delete from temp.undecided where seq = ?');
  return {
    /** Keeps records whose meaning depends on the other values of their columns. */
    keepUndecided(rows: readonly DesiredRow[]): void {
      for (const one of rows) keep(one.kind, JSON.stringify(one));
    },
    /** Removes up to `count` of these records, in the order of the reading, and returns them. */
    takeUndecided: (kind: RecordTypeName, count: number): DesiredRow[] =>
      first(kind, count).map(({ seq, row: kept }) => {
        drop(seq);
        return undecidedShape.parse(JSON.parse(kept));
      }),
  };
}

function namingIn(db: Statements) {
  const named = db.run<{ kind: string; count: number }>(
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
  const nameless = db.run<{ kind: string }>(
    `delete from temp.staged where kind = @kind and key = '' and id <> '' and exists (
       select 1 from origin o where o.kind = @kind and o.id = staged.id)`,
  );
  const strangers = db.run<{ kind: string }>(
    `delete from temp.strange where kind = @kind and key = '' and exists (
       select 1 from origin o where o.kind = @kind and o.id = strange.id)`,
  );
  const skip = db.run<{ kind: string }>(
    `delete from temp.staged
     where kind = @kind and key = '' and no_address and reason is not null`,
  );
  const addressless = db.one<{ kind: string }, { n: number }>(
    `select count(distinct s.key) n from temp.staged s indexed by staged_invalid
     where s.kind = @kind and s.reason is not null and s.no_address is not null and s.key <> ''
       and exists (select 1 from recorded r where r.kind = s.kind and r.key = s.key)
       and not exists (
         select 1 from temp.staged e
         where e.kind = s.kind and e.key = s.key and e.no_address is null)`,
  );
  return {
    /**
     * Also stages an invalid record under every key that its id was last observed with, so that no
     * person counts as absent because of it. If the record has a key of its own, keys that other
     * records have are left to those records. The added rows follow the `count` records of the
     * reading.
     */
    nameByOrigin(kind: RecordTypeName, count: number): void {
      named({ kind, count });
      nameless({ kind });
      strangers({ kind });
    },
    /** Drops the records that have no address and were never known. Returns their number. */
    skipUnknown: (kind: RecordTypeName) => skip({ kind }),
    /** Counts recorded people whose present records all lack a valid address. */
    countAddressless: (kind: RecordTypeName) => addressless({ kind })?.n ?? 0,
  };
}

function sharedIn(db: Statements) {
  const isStrange = `id <> '' and not exists (
    select 1 from origin o indexed by origin_by_key
    where o.kind = s.kind and o.key = s.key and o.id = s.id)`;
  const strange = db.run<KeyRange & { kind: string }>(
    `insert or ignore into temp.strange (kind, id, key)
     select kind, id, key from temp.staged s
     where ${inRange('s')} and ${isStrange}`,
  );
  const keyless = db.run<[RecordTypeName]>(
    `insert or ignore into temp.strange (kind, id, key)
     select kind, id, key from temp.staged where kind = ? and key = '' and id <> ''`,
  );
  const ofSeveral = (of: string): string => `
    insert or ignore into temp.shared (kind, id)
    select a.kind, a.id from ${of} a
    where ${inRange('a', 'id')}
    group by a.id having `;
  const sharedStrange = db.run<KeyRange & { kind: string }>(
    `${ofSeveral('temp.strange')} count(*) > 1 or exists (
       select 1 from origin o where o.kind = a.kind and o.id = a.id and ${isStaged('o')})`,
  );
  const sharedKnown = db.run<KeyRange & { kind: string }>(
    `${ofSeveral('origin')} count(*) > 1 and (
       select count(*) from origin o
       where o.kind = a.kind and o.id = a.id and ${isStaged('o')}) > 1`,
  );
  const invalidate = db.run<{ kind: string; cause: string; reason: string; fix: string }>(
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
  );
  return {
    /**
     * Notes the records whose id was never observed with this key; every other record is found
     * through its origin. It must be called first, for each range of keys, and once for the records
     * without a key.
     */
    noteStrange: (kind: RecordTypeName, range: KeyRange | 'keyless') =>
      range === 'keyless' ? keyless(kind) : strange({ kind, ...range }),
    /**
     * Finds, within a range of ids, those that several addresses share. An unreadable address
     * counts as one of them.
     */
    findSharedIds(kind: RecordTypeName, range: KeyRange): void {
      sharedStrange({ kind, ...range });
      sharedKnown({ kind, ...range });
    },
    /** Marks all records with the shared ids as invalid. */
    invalidateSharedIds: (
      kind: RecordTypeName,
      fault: Required<Pick<Fault, 'cause' | 'reason' | 'fix'>>,
    ) => invalidate({ kind, ...fault }),
  };
}

interface StoredDesired extends Omit<DesiredRow, 'wants' | 'invalid' | 'key'> {
  key: string;
  seq: number;
  wants: number;
  reason: string | null;
  fix: string | null;
  cause: ProblemCause | null;
  about: string | null;
  option: string | null;
  value: string | null;
  no_address: number | null;
  may_opt_out: number | null;
  /** Whether the same record is also staged under its own key. */
  again: number;
}

function fromStored({
  reason,
  fix,
  key,
  wants,
  again: _,
  seq: _seq,
  cause,
  about,
  option,
  value,
  no_address: noAddress,
  may_opt_out: mayOptOut,
  ...row
}: StoredDesired): DesiredRow {
  const invalid = reason === null ? undefined : { reason, fix: fix ?? '' };
  return {
    ...row,
    key: key === '' ? undefined : key,
    wants: wants === 1,
    invalid: invalid && {
      ...invalid,
      ...(cause !== null && { cause }),
      ...(about !== null && { about }),
      ...(option !== null && { option }),
      ...(value !== null && { value }),
      ...(noAddress !== null && { noAddress: noAddress === 1 }),
      ...(mayOptOut !== null && { mayOptOut: true }),
    },
  };
}

function readingIn(db: Statements) {
  const ofKey = db.all<[RecordTypeName, Key], StoredDesired>(
    'select * from temp.desired where kind = ? and key = ? order by seq',
  );
  const idsOf = db.all<[RecordTypeName, Key], { id: string }>(
    `select distinct id from temp.staged where kind = ? and key = ? and id <> ''`,
  );
  const keysOf = db.all<[RecordTypeName, ids: string], { key: Key }>(
    `select distinct key from temp.stands
     where kind = ? and id in (select value from json_each(?)) and key <> ''`,
  );
  const count = db.one<KeyRange & { kind: string }, { valid: number; wanted: number }>(
    `select coalesce(sum(valid), 0) valid, coalesce(sum(wanted), 0) wanted from (
       select max(reason is null) valid, max(reason is null and wants) wanted from temp.desired
       where ${inRange('desired')} group by key)`,
  );
  const wanted = db.all<KeyRange & { kind: string }, { key: Key }>(
    `select key from temp.desired
     where ${inRange('desired')} group by key having max(reason is null and wants)`,
  );
  const countInvalid = db.one<[RecordTypeName], { n: number }>(
    `select count(distinct place) n from temp.staged indexed by staged_invalid
     where kind = ? and reason is not null`,
  );
  const invalid = db.all<[RecordTypeName, after: number, count: number], StoredDesired>(
    `select * from temp.desired
     where kind = ? and seq > ? and reason is not null and not again order by seq limit ?`,
  );
  return {
    /** Returns the records with this key. */
    desired: (kind: RecordTypeName, key: Key) => ofKey(kind, key).map(fromStored),
    /** Returns the ids of the records with this key, each once; skips records without an id. */
    idsOf: (kind: RecordTypeName, key: Key) => idsOf(kind, key).map(({ id }) => id),
    /** Returns the keys of the records that have these ids. */
    keysOf: (kind: RecordTypeName, ids: readonly string[]) =>
      keysOf(kind, JSON.stringify(ids)).map(({ key }) => key),
    /** Counts the keys with a valid record, and how many of them request something. */
    countDesired: (kind: RecordTypeName, range: KeyRange) =>
      count({ kind, ...range }) ?? { valid: 0, wanted: 0 },
    /** Returns the keys of a range with a valid record that requests something. */
    wantedKeys: (kind: RecordTypeName, range: KeyRange) =>
      wanted({ kind, ...range }).map(({ key }) => key),
    countInvalid: (kind: RecordTypeName) => countInvalid(kind)?.n ?? 0,
    /** Returns invalid records in reading order, each once, after row `after`. */
    invalid: (kind: RecordTypeName, after: number, most: number) =>
      invalid(kind, after, most).map((row) => ({ ...fromStored(row), row: row.seq })),
  };
}

/** The number of ids and keys that several records of a reading share. */
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
 * records with one key, and of records that are not recorded. If one record of a key is read, the
 * others must be read too, because another record may state an opt-out or may be gone, even if it
 * is older than the record that opts in.
 */
export function duplicatesIn(db: Statements) {
  const note = db.run<KeyRange & { kind: string; done: number }>(
    `insert or ignore into twin (kind, key, id)
     select s.kind, s.key, s.id from temp.desired s
     where ${inRange('s')} and s.id <> '' and (
       exists (
         select 1 from temp.staged t where t.kind = s.kind and t.key = s.key and t.id <> s.id)
       or ((@done or not s.wants or s.reason is not null) and not exists (
         select 1 from recorded r where r.kind = s.kind and r.key = s.key)))`,
  );
  const dropOld = db.run<{ kind: string }>(
    `delete from twin where kind = @kind and (
       not exists (
         select 1 from temp.staged s
         where s.kind = @kind and s.key = twin.key and s.id = twin.id)
       or exists (
         select 1 from origin o where o.kind = @kind and o.key = twin.key and o.id = twin.id)
       and not exists (
         select 1 from temp.staged t
         where t.kind = @kind and t.key = twin.key and t.id <> twin.id))`,
  );
  const of = db.all<[RecordTypeName, Key], { id: string }>(
    'select id from twin where kind = ? and key = ? order by id',
  );
  const names = db.all<[RecordTypeName, id: string], { key: Key }>(
    'select key from twin indexed by twin_by_id where kind = ? and id = ?',
  );
  // A record that is also staged under another key is counted under its own.
  const shares = (those: string) => `select count(*) from (
    select 1 from temp.staged where kind = @kind and not again and ${those}
    group by key, id having count(distinct place) > 1)`;
  const count = db.one<{ kind: string }, DuplicateCounts>(
    `select (${shares("id <> '' and id not in (select id from temp.shared where kind = @kind)")}) ids,
       (select count(*) from temp.shared where kind = @kind) sharedIds,
       (select count(*) from (
         select 1 from temp.staged where kind = @kind and key <> '' and not again
         group by key having count(distinct place) > 1)) keys`,
  );
  return {
    /**
     * Notes the duplicates that this run has read in a range of keys. `read` skips records that
     * request something, because most of those are about to be recorded. `done` skips none.
     */
    note: (kind: RecordTypeName, range: KeyRange, when: 'read' | 'done') =>
      note({ kind, ...range, done: Number(when === 'done') }),
    /** Drops the duplicates that this run has not read, and those that origins now show. */
    dropOld: (kind: RecordTypeName) => dropOld({ kind }),
    /** Drops the duplicates of a key. */
    drop: db.run<[RecordTypeName, Key]>('delete from twin where kind = ? and key = ?'),
    /** Returns the ids of the records with a key. */
    of: (kind: RecordTypeName, key: Key) => of(kind, key).map(({ id }) => id),
    /** Counts the ids and keys that several records of the staged reading share. */
    count: (kind: RecordTypeName) => count({ kind }) ?? { ids: 0, sharedIds: 0, keys: 0 },
    /** Returns the keys of the records with an id. */
    namesOf: (kind: RecordTypeName, id: string) => names(kind, id).map(({ key }) => key),
  };
}
