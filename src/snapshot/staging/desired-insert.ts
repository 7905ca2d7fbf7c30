/** Takes in what is read of a source: each record by the form of what it says, and then sorted. */
import type { DesiredRow } from '../../domain/record.ts';
import type { Desired } from './desired-staging.ts';
import { manyIn } from '../database/multi-row-insert.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

type Adding = Pick<
  Desired,
  'addDesired' | 'beginSorting' | 'sortIn' | 'endSorting' | 'forgetDesired' | 'clearForms'
>;

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

interface Form extends Pick<DesiredRow, 'kind' | 'wants' | 'presence'> {
  form: number;
}

/** So many forms are known by heart: times of consent may give everybody one of their own. */
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
  // Valid, with a key that is what the source calls it, as nearly all are.
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
    // Made for all of them at once, an index takes a fraction of what it takes row by row.
    beginSorting: () =>
      db.exec('create index if not exists temp.unsorted_by_key on unsorted (kind, key, id, seq)'),
    endSorting: () =>
      db.exec('drop index if exists temp.unsorted_by_key; delete from temp.unsorted'),
  };
}
