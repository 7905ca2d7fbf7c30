/**
 * Reads a database once, either everything or only what has changed. The read was complete if its
 * last page was not full, the number of rows equals the database's own count in the same state,
 * each row has a unique key and id, and each row could be read.
 */
import { Invalid } from '../../domain/errors.ts';
import {
  brokenFlaw,
  certificateOf,
  type Flaw,
  withCursor,
  stoppedBy,
} from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, SourceRecord } from '../source.ts';
import { cursorAfter, sinceIn } from './changes-since.ts';
import type { SqlOptions } from './options.ts';
import {
  type Count,
  countOf,
  keylessOf,
  type Paged,
  pagesOf,
  relationOf,
} from './relation-pages.ts';
import { type Records, recordsOf } from './row-record.ts';
import type { Raw, Session } from './drivers/database-session.ts';
import { counted } from '../../domain/values/counted.ts';

interface Certified {
  options: SqlOptions;
  /** The column of a record's id. */
  id: string;
  request: ReadRequest;
  reading: string;
  /** The time since which changes are read; undefined reads everything. */
  sinceMs?: number;
}

/** Yields the records in batches of one page, and returns the certificate. */
export async function* certified(
  session: Session,
  { options, id, request, reading, sinceMs }: Certified,
): AsyncGenerator<SourceRecord[], Certificate> {
  const { fields } = request;
  const relation = await relationOf(session, options, { fields, id });
  const column = relation.columns[relation.at.updatedAt ?? -1];
  const { zone, pageSize } = options;
  const changes = column && { session, from: relation.from, column, zone };
  // A full read checks the column too, so that a column that cannot be compared is reported now and
  // not by the first fast run.
  const since = changes && (await sinceIn(changes, sinceMs ?? session.now));
  const isWhole = sinceMs === undefined;
  const cursor = column && cursorAfter(session.now, options, sinceMs);
  if (!isWhole && since === undefined) return { complete: true, reading, cursor };
  const paged = { session, relation, pageSize, since: isWhole ? undefined : since };
  const json = jsonRecords(fields);
  const records = recordsOf(relation, { json, zone });
  const count = await countOf(paged);
  const proof = createProof(count);
  yield* batchesOf(paged, { records, proof, most: count.rows });
  /** Returns the flaws that prevent the proof. */
  const flaws = proof.flaws();
  const lack = json.lacking();
  if (isWhole && lack !== undefined && flaws.length === 0) {
    throw new Invalid(`${session.name}: ${lack}`);
  }
  return withCursor(certificateOf(reading, flaws), cursor);
}

interface Reading {
  records: Records;
  proof: QueryProof;
  /** The total number of rows. */
  most: number;
}

/** Yields the records, and reports to the proof how the read ended. */
async function* batchesOf(
  paged: Paged,
  { records, proof, most }: Reading,
): AsyncGenerator<SourceRecord[], void> {
  let number = 0;
  const batchOf = (rows: readonly Raw[][]) =>
    rows.map((row) => {
      number += 1;
      const { record, key, id } = records.of(row, `row ${number}`);
      proof.add(record, key, id);
      return record;
    });
  const stopped = (error: unknown) => {
    const where = `after row ${number}`;
    return { done: true, value: stoppedBy(error, { hasBegun: number > 0, where }) } as const;
  };
  const pages = pagesOf(paged);
  let step = await pages.next().catch(stopped);
  while (!step.done) {
    yield batchOf(step.value);
    if (number > most) return;
    step = await pages.next().catch(stopped);
  }
  if (step.value) {
    proof.stop(step.value);
    return;
  }
  const keyless = await keylessOf(paged).catch(stopped);
  if (!Array.isArray(keyless)) proof.stop(keyless.value);
  else if (keyless.length > 0) yield batchOf(keyless);
}

/** Gathers the facts that prove a read complete. */
interface QueryProof {
  /** Adds a record that was read, with its key and its id. */
  add(record: SourceRecord, key: string, id: string): void;
  /** Notes that the read ended early. */
  stop(flaw: Flaw): void;
  flaws(): Flaw[];
}

/** Creates the proof for a read from the database's own counts. */
function createProof(count: Count): QueryProof {
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
  return count > 0 ? [{ why: `${counted(count, 'row')} ${what}`, fix }] : [];
}

function miscounted(rows: number, total: number): Flaw {
  const why = `${counted(rows, 'row')} ${rows === 1 ? 'was' : 'were'} read, and the database counts ${total}`;
  return { why, fix: 'name as key a column whose values are unique, whatever their case' };
}
