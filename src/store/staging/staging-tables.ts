/** An index of a staging table that may have very many rows. */
function bulkIndex(name: string, of: string) {
  return {
    make: `create index if not exists temp.${name} on ${of};`,
    drop: `drop index if exists temp.${name};`,
  };
}

/**
 * The most rows that are added to a table with its indexes. To build the index of a larger table at
 * the end takes a fraction of the time; but a change of indexes makes SQLite compile every
 * statement anew, which for few rows takes longer than the work on them.
 */
export const mostIndexed = 2_000;

/** They cover what a listing is filtered by. Sorting is fastest by a column whose values differ. */
export const observedIndexes = [
  bulkIndex('observed_by_id', 'observed (id, kind, created_at)'),
  bulkIndex('observed_by_key', 'observed (key, kind, fingerprint)'),
];

export const unsortedIndex = bulkIndex('unsorted_by_key', 'unsorted (kind, key, id, seq)');

/**
 * Creates the staging tables of one run. SQLite stores temporary tables in a separate file that is
 * removed when the connection closes. A crash therefore leaves no personal data behind, and memory
 * use does not grow with the number of people.
 *
 *   unsorted   records of the source as they were read; it never becomes large
 *   undecided  records whose meaning depends on the other values of their columns
 *   staged     a narrow row for each record, in key order ('' if the record has no key)
 *   form       the bodies, each once, because many records share one
 *   desired    the view that joins `staged` with `form`; a null `alias` equals the key
 *   rest       keys that are recorded, or of which something is stated, without those whose records
 *              were not staged because they are unchanged (unchanged-records.ts)
 *   strange    ids of the source that the table `origin` does not have under the same key
 *   stands     the view of all ids in this reading with their keys, from `strange` and `origin`
 */
export const stagingTables = `
  pragma temp.journal_mode = memory;
  pragma temp.cache_size = -4000;
  create temp table form (
    form integer primary key, kind text not null, body text not null, fingerprint text not null,
    wants integer not null, presence text not null
  );
  create temp table unsorted (
    kind text not null, key text not null, seq integer not null,
    id text not null, alias text, place text not null, form integer not null,
    reason text, fix text, cause text, about text, option text, value text,
    no_address integer, may_opt_out integer
  );
  create temp table undecided (
    seq integer primary key, kind text not null, row text not null
  );
  create temp table staged (
    kind text not null, key text not null, seq integer not null,
    id text not null, alias text, place text not null, form integer not null,
    reason text, fix text, cause text, about text, option text, value text,
    no_address integer, may_opt_out integer, again integer not null default 0,
    primary key (kind, key, id, seq)
  ) without rowid;
  create index temp.staged_invalid on staged (kind, seq) where reason is not null;
  create index temp.staged_by_alias on staged (kind, alias) where alias is not null;
  create temp table rest (
    kind text not null, key text not null, primary key (kind, key)
  ) without rowid;
  create temp table strange (
    kind text not null, id text not null, key text not null, primary key (kind, id, key)
  ) without rowid;
  create temp table shared (
    kind text not null, id text not null, primary key (kind, id)
  ) without rowid;
  create temp view desired as
    select s.kind, s.key, s.seq, s.id, coalesce(s.alias, s.key) alias, s.place, s.again,
      f.body, f.fingerprint, f.wants, f.presence, s.reason, s.fix, s.cause, s.about,
      s.option, s.value, s.no_address, s.may_opt_out
    from temp.staged s join temp.form f on f.form = s.form;
  create temp view stands as
    select kind, id, key from temp.strange
    union all
    select o.kind, o.id, o.key from main.origin o where exists (
      select 1 from temp.staged s where s.kind = o.kind and s.key = o.key and s.id = o.id);
  create temp table observed (
    seq integer primary key,
    kind text not null, id text not null, key text not null, alias text,
    body text not null, fingerprint text not null, created_at integer
  );
  ${[...observedIndexes, unsortedIndex].map(({ make }) => make).join('\n  ')}
  create temp table looked (
    kind text not null, key text not null, at integer, primary key (kind, key)
  ) without rowid;
  create temp table sighted (
    kind text not null, key text not null, at integer not null, primary key (kind, key)
  ) without rowid;
  create temp table candidate (
    kind text not null, key text not null, primary key (kind, key)
  ) without rowid;
  create temp table planned (
    seq integer primary key,
    kind text not null, key text not null, op text not null, part text not null,
    target text, body text not null, phase integer not null,
    guard text, why text, before text, approved text, held integer not null default 0
  );
  create index temp.planned_in_order on planned (phase, kind, key);
  create index temp.planned_by_guard on planned (guard, key) where guard is not null;
  create temp table judged (
    guard text not null, kind text not null, key text not null, op text not null,
    part text not null, target text, body text not null, phase integer not null,
    stated integer not null, withdraws integer not null, "is" text not null, by text
  );
  create index temp.judged_by_guard on judged (guard, key, kind, "is");
  create index temp.judged_by_key on judged (kind, key);
  create temp table fresh_id (
    length integer not null, id text not null, primary key (length, id)
  ) without rowid;
  create temp table noted (
    kind text not null, key text not null,
    id text, ownership text not null, body text not null,
    shown text, desired text, seen_at integer not null, alone integer not null,
    primary key (kind, key)
  ) without rowid;
  create temp table noticed (
    kind text not null, key text not null, class text not null, part text not null,
    reason text not null, fix text not null,
    cause text not null, about text not null, option text, value text, place text, crm text,
    primary key (kind, key, class, part)
  ) without rowid;
  create temp table forgotten (
    kind text not null, key text not null, primary key (kind, key)
  ) without rowid;
  create temp table remarked (seq integer primary key, body text not null);`;

/** The names of all staging tables, used to clear them. */
export const stagingNames: readonly string[] = [
  ...stagingTables.matchAll(/create temp table (\w+)/g),
].map(([, name = '']) => name);
