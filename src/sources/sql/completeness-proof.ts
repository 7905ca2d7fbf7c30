/**
 * Whether a reading showed everything: its last page was not full, as many rows were read as the
 * database counts in the same state, each has a key and an id of its own, and each could be read.
 */
import { brokenFlaw, type Flaw } from '../shared/read-certificate.ts';
import type { SourceRecord } from '../source.ts';
import type { Count } from './relation-pages.ts';

export interface QueryProof {
  /** A record that was read, its key and its id. */
  add(record: SourceRecord, key: string, id: string): void;
  /** It ended before its end. */
  stop(flaw: Flaw): void;
  flaws(): Flaw[];
}

export function createProof(count: Count): QueryProof {
  const broken: string[] = [];
  let rows = 0;
  let unnamed = 0;
  let twice = 0;
  let last: string | undefined;
  let stopped: Flaw | undefined;
  return {
    add(record, key, id) {
      rows += 1;
      if (key === last) twice += 1;
      last = key;
      if (id === '') unnamed += 1;
      if ('broken' in record) broken.push(record.where);
    },
    stop: (flaw) => void (stopped = flaw),
    flaws() {
      if (stopped) return [stopped];
      return [
        ...numbered(count.rows - count.keys, 'without a key', 'give each one, or name another key'),
        ...numbered(unnamed, 'without an id', 'give each one in the CRM'),
        ...numbered(twice, 'with the key of another one', 'name as key a column that is unique'),
        ...numbered(count.ids - count.different, 'with the id of another one', oneEach),
        ...(broken.length > 0
          ? [brokenFlaw('row', { count: broken.length, first: broken[0], fix: 'mend them' })]
          : []),
        ...(twice === 0 && rows !== count.rows ? [miscounted(rows, count.rows)] : []),
      ];
    },
  };
}

const oneEach = 'have query give one row for each person';

function numbered(count: number, what: string, fix: string): Flaw[] {
  return count > 0 ? [{ why: `${count === 1 ? '1 row' : `${count} rows`} ${what}`, fix }] : [];
}

function miscounted(rows: number, counted: number): Flaw {
  const why = `${rows} rows were read, and the database counts ${counted}`;
  return { why, fix: 'name as key a column whose values are unique, whatever their case' };
}
