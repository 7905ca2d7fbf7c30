/** Stages what a run reads from the source: each record by its form, and then sorted by key. */
import type { DesiredRow, Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import { manyIn, type Statements } from '../database/prepared-statements.ts';

/**
 * The records that one run has read from a source. Most of them say one of a few things: such a
 * form is stored once, and every record refers to it.
 */
export interface Desired {
  /** Adds the `nth` record of the reading and the following ones; sorting makes them visible. */
  addDesired(rows: Iterable<DesiredRow>, nth: number): void;
  /**
   * Sorts in the added records of a range, or those without a key. Sorting very many at a time
   * writes a page of the table once for several of them.
   */
  sortIn(kind: RecordTypeName, range: KeyRange | 'keyless'): void;
  /** Begins to sort: makes the index that `sortIn` needs. */
  beginSorting(): void;
  /** Ends sorting, when all of it was sorted in. */
  endSorting(): void;
  /**
   * Notes the records whose id was never seen with this key; every other record is found by its
   * origin. It comes first, for each range of keys, and once for the records without a key.
   */
  noteStrange(kind: RecordTypeName, range: KeyRange | 'keyless'): void;
  /** Finds ids that several addresses have, unreadable ones included; by ranges of ids. */
  findSharedIds(kind: RecordTypeName, range: KeyRange): void;
  /** Makes all records of the ids that were found invalid. */
  invalidateSharedIds(kind: RecordTypeName, fault: { reason: string; fix: string }): void;
  /**
   * Stages an invalid record under every key that its id was last seen with as well, so that nobody
   * counts as absent for it. Where the record has a key of its own, a key that another record has
   * is left to that record. The added rows follow the `count` records of the reading.
   */
  nameByOrigin(kind: RecordTypeName, count: number): void;
  /** Drops the records that have no address and were never known; returns how many. */
  skipUnknown(kind: RecordTypeName): number;
  /** Counts recorded people all of whose present records have no address. */
  countAddressless(kind: RecordTypeName): number;
  /** Returns the records of a key. */
  desired(kind: RecordTypeName, key: Key): DesiredRow[];
  /** Returns the ids of the records of a key, each once; records without an id are left out. */
  idsOf(kind: RecordTypeName, key: Key): string[];
  /** Returns the keys of the records that have these ids. */
  keysOf(kind: RecordTypeName, ids: readonly string[]): Key[];
  /** Counts the keys with a valid record, and those of them that want something. */
  countDesired(kind: RecordTypeName, range: KeyRange): { valid: number; wanted: number };
  countInvalid(kind: RecordTypeName): number;
  /** Returns invalid records in the order of reading, each once, behind row `after`. */
  invalid(kind: RecordTypeName, after: number, count: number): (DesiredRow & { row: number })[];
  forgetDesired(kind: RecordTypeName): void;
  /** Empties the cache of forms, after a transaction that added some was rolled back. */
  clearForms(): void;
}

export type Adding = Pick<
  Desired,
  'addDesired' | 'beginSorting' | 'sortIn' | 'endSorting' | 'forgetDesired' | 'clearForms'
>;

/** Prepares adding and sorting records. */
export function addingIn(db: Statements): Adding {
  const forms = formsIn(db);
  const forget = ['form', 'unsorted', 'staged', 'strange', 'shared'].map((name) =>
    db.prepare<[string]>(`delete from temp.${name} where kind = ?`),
  );
  return {
    ...sortingIn(db),
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

/** The most forms in the cache; with times of consent everybody may have a form of their own. */
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
  const addOdd = manyIn(db, into, [...plain, 'alias', 'reason', 'fix', 'option', 'no_address']);
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

function faultOf(invalid: DesiredRow['invalid']): unknown[] {
  if (!invalid) return [null, null, null, null];
  const { reason, fix, option = null, noAddress = false } = invalid;
  return [reason, fix, option, noAddress ? 1 : null];
}

function sortingIn(db: Statements): Pick<Adding, 'beginSorting' | 'sortIn' | 'endSorting'> {
  const sort = (which: string): string =>
    `insert into temp.staged 
       (kind, key, seq, id, alias, place, form, reason, fix, option, no_address)
     select kind, key, seq, id, alias, place, form, reason, fix, option, no_address
     from temp.unsorted
     where ${which} order by kind, key, id, seq`;
  const sortSpan = db.prepare<KeyRange & { kind: string }>(sort(inRange('unsorted')));
  const sortKeyless = db.prepare<{ kind: string }>(sort(`kind = @kind and key = ''`));
  return {
    sortIn: (kind, range) =>
      void (range === 'keyless' ? sortKeyless.run({ kind }) : sortSpan.run({ kind, ...range })),
    // An index made for all rows at once takes a fraction of the time of one kept row by row.
    beginSorting: () =>
      db.exec('create index if not exists temp.unsorted_by_key on unsorted (kind, key, id, seq)'),
    endSorting: () =>
      db.exec('drop index if exists temp.unsorted_by_key; delete from temp.unsorted'),
  };
}
