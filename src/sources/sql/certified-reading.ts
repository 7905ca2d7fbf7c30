/** One reading: of everything, or of what has changed. */
import { Interrupted, Invalid, isExpected } from '../../domain/errors.ts';
import { certificateOf, type Flaw, withCursor } from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, SourceRecord } from '../source.ts';
import { cursorAfter } from './change-cursor.ts';
import type { SqlOptions } from './options.ts';
import { countOf, keylessOf, type Paged, pagesOf } from './relation-pages.ts';
import { createProof, type QueryProof } from './completeness-proof.ts';
import { type Records, recordsOf } from './row-record.ts';
import { relationOf } from './relation-query.ts';
import type { Raw, Session } from './drivers/read-session.ts';
import { sinceIn } from './change-column.ts';

interface Certified {
  options: SqlOptions;
  /** The column that tells one record from another. */
  id: string;
  request: ReadRequest;
  reading: string;
  /** Only what has changed since; undefined: everything. */
  sinceMs?: number;
}

/** The records in batches of a page, and at the end the certificate. */
export async function* certified(
  session: Session,
  { options, id, request, reading, sinceMs }: Certified,
): AsyncGenerator<SourceRecord[], Certificate> {
  const { fields } = request;
  const relation = await relationOf(session, options, { fields, id });
  const column = relation.columns[relation.at.updatedAt ?? -1];
  const { zone, pageSize } = options;
  const changes = column && { session, from: relation.from, column, zone };
  // Also where everything is read: it is said now, not in the first fast run.
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
  /** Rows there are in all. */
  most: number;
}

/** How it ended is told to the proof. */
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
    if (number === 0 || !isExpected(error) || error instanceof Interrupted) throw error;
    return { done: true, value: stoppedBy(error, number) } as const;
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

function stoppedBy(error: Error, number: number): Flaw {
  const [what = '', fix = 'read it again'] = error.message.split(' → ');
  return { why: `reading stopped after row ${number}: ${what}`, fix };
}
