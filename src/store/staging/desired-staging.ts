/** Stages what a run reads from the source: first each record with its form, then sorted by key. */
import type { DesiredRow, Fault, Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import { manyIn, type Statements } from '../database/prepared-statements.ts';
import { type Undecided, undecidedIn } from './undecided-records.ts';

/**
 * The records that one run has read from a source. Most of them share a few forms; each form is
 * stored once, and the records refer to it.
 */
export interface Desired extends Undecided {
  /**
   * Adds records, of which the first is the `nth` of the reading. They become visible after
   * sorting.
   */
  addDesired(rows: Iterable<DesiredRow>, nth: number): void;
  /**
   * Sorts the added records of a range, or those without a key, into the table. Sorting many
   * records at a time writes each page of the table once for several of them.
   */
  sortIn(kind: RecordTypeName, range: KeyRange | 'keyless'): void;
  /** Begins sorting: creates the index that `sortIn` needs. */
  beginSorting(): void;
  /** Ends sorting after all added records were sorted. */
  endSorting(): void;
  /**
   * Notes the records whose id was never observed with this key; every other record is found
   * through its origin. It must be called first, for each range of keys, and once for the records
   * without a key.
   */
  noteStrange(kind: RecordTypeName, range: KeyRange | 'keyless'): void;
  /**
   * Finds, within a range of ids, those that several addresses share. An unreadable address counts
   * as one of them.
   */
  findSharedIds(kind: RecordTypeName, range: KeyRange): void;
  /** Marks all records with the shared ids as invalid. */
  invalidateSharedIds(
    kind: RecordTypeName,
    fault: Required<Pick<Fault, 'cause' | 'reason' | 'fix'>>,
  ): void;
  /**
   * Also stages an invalid record under every key that its id was last observed with, so that no
   * person counts as absent because of it. If the record has a key of its own, keys that other
   * records have are left to those records. The added rows follow the `count` records of the
   * reading.
   */
  nameByOrigin(kind: RecordTypeName, count: number): void;
  /** Drops the records that have no address and were never known. Returns their number. */
  skipUnknown(kind: RecordTypeName): number;
  /** Counts recorded people whose present records all lack a valid address. */
  countAddressless(kind: RecordTypeName): number;
  /** Returns the records with this key. */
  desired(kind: RecordTypeName, key: Key): DesiredRow[];
  /** Returns the ids of the records with this key, each once. Records without an id are skipped. */
  idsOf(kind: RecordTypeName, key: Key): string[];
  /** Returns the keys of the records that have these ids. */
  keysOf(kind: RecordTypeName, ids: readonly string[]): Key[];
  /** Counts the keys with a valid record, and how many of them request something. */
  countDesired(kind: RecordTypeName, range: KeyRange): { valid: number; wanted: number };
  /** Returns the keys of a range with a valid record that requests something. */
  wantedKeys(kind: RecordTypeName, range: KeyRange): Key[];
  countInvalid(kind: RecordTypeName): number;
  /** Returns invalid records in reading order, each once, after row `after`. */
  invalid(kind: RecordTypeName, after: number, count: number): (DesiredRow & { row: number })[];
  forgetDesired(kind: RecordTypeName): void;
  /** Empties the cache of forms. Call it after rolling back a transaction that added some. */
  clearForms(): void;
}

export type Adding = Pick<
  Desired,
  | 'addDesired'
  | 'keepUndecided'
  | 'takeUndecided'
  | 'beginSorting'
  | 'sortIn'
  | 'endSorting'
  | 'forgetDesired'
  | 'clearForms'
>;

/** Prepares the statements that add and sort records. */
export function addingIn(db: Statements): Adding {
  const forms = formsIn(db);
  const forget = ['form', 'unsorted', 'undecided', 'staged', 'strange', 'shared'].map((name) =>
    db.prepare<[string]>(`delete from temp.${name} where kind = ?`),
  );
  return {
    ...sortingIn(db),
    ...undecidedIn(db),
    addDesired: unsortedIn(db, forms.of),
    forgetDesired(kind) {
      forms.clear();
      for (const statement of forget) statement.run(kind);
    },
    clearForms: forms.clear,
  };
}

export interface Form extends Pick<DesiredRow, 'kind' | 'wants' | 'presence'> {
  form: number;
}

/**
 * The maximum number of cached forms; with times of consent, each person may have a different form.
 */
const mostForms = 10_000;

function formsIn({ prepare }: Statements): { of(row: DesiredRow): number; clear(): void } {
  const add = prepare<[string, string, string, number, string]>(
    'insert into temp.form (kind, body, fingerprint, wants, presence) values (?, ?, ?, ?, ?)',
  );
  const forms = new Map<string, Form>();
  return {
    of({ kind, body, fingerprint, wants, presence }) {
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

function unsortedIn(db: Statements, formOf: (row: DesiredRow) => number): Adding['addDesired'] {
  const into = 'insert into temp.unsorted';
  // Nearly all records are valid and have their alias as the key.
  const plain = ['kind', 'key', 'seq', 'id', 'place', 'form'];
  const addPlain = manyIn(db, into, plain);
  const addOdd = manyIn(db, into, [...plain, 'alias', ...faultColumns]);
  return (rows, nth) => {
    let seq = nth;
    const plainRows: unknown[] = [];
    const oddRows: unknown[] = [];
    for (const row of rows) {
      const { kind, key = '', id, alias, place, invalid } = row;
      const own = alias === key ? null : alias;
      const isPlain = own === null && !invalid;
      const values = isPlain ? plainRows : oddRows;
      values.push(kind, key, seq, id, place, formOf(row));
      if (!isPlain) values.push(own, ...faultOf(invalid));
      seq += 1;
    }
    addPlain(plainRows);
    addOdd(oddRows);
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

function sortingIn(db: Statements): Pick<Adding, 'beginSorting' | 'sortIn' | 'endSorting'> {
  const sort = (which: string): string =>
    `insert into temp.staged 
       (kind, key, seq, id, alias, place, form, ${faultColumns.join(', ')})
     select kind, key, seq, id, alias, place, form, ${faultColumns.join(', ')}
     from temp.unsorted
     where ${which} order by kind, key, id, seq`;
  const sortSpan = db.prepare<KeyRange & { kind: string }>(sort(inRange('unsorted')));
  const sortKeyless = db.prepare<{ kind: string }>(sort(`kind = @kind and key = ''`));
  return {
    sortIn: (kind, range) =>
      void (range === 'keyless' ? sortKeyless.run({ kind }) : sortSpan.run({ kind, ...range })),
    // Building an index for all rows together takes a fraction of the time of updating it row by
    // row.
    beginSorting: () =>
      db.exec('create index if not exists temp.unsorted_by_key on unsorted (kind, key, id, seq)'),
    endSorting: () =>
      db.exec('drop index if exists temp.unsorted_by_key; delete from temp.unsorted'),
  };
}
