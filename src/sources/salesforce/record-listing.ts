/**
 * Yields all records, or those that changed, object by object. Each one is replaced by the record
 * to which it resolves.
 */
import type { Clock } from '../../domain/clock.ts';
import { type Flaw, markOf, stoppedBy } from '../shared/read-certificate.ts';
import type { SourceRecord } from '../source.ts';
import { bulkRows } from './bulk-query.ts';
import { firstPage, rowsFrom } from './query-pages.ts';
import type { Reader } from './record-reader.ts';
import type { Row } from './query-row.ts';
import type { Shape } from './field-selection.ts';
import { settle, standIns } from './merged-records.ts';

const BATCH_RECORDS = 500;

/** Yields rows and returns their total number. */
type Rows = AsyncGenerator<Row[], number>;

/** Yields records and returns the flaws that prevent a certificate. */
type Listing = AsyncGenerator<SourceRecord[], Flaw[]>;

interface Ways {
  /** The number of records above which an object is read through the Bulk API. */
  bulkAbove: number;
  clock: Clock;
  signal: AbortSignal;
}

/** Yields all records. */
export function everybody(reader: Reader, { bulkAbove, ...ways }: Ways): Listing {
  const { session, where } = reader;
  const all = async function* (shape: Shape): Rows {
    const query = { shape, where: [where], order: 'Id' };
    const first = await firstPage(session, query);
    if (first.total > bulkAbove) return yield* bulkRows({ session, ...ways }, query);
    return yield* rowsFrom(session, query, first);
  };
  return listingOf(reader, all, async () => []);
}

/** Yields the records that changed since `time`, in SOQL's notation. */
export function changedSince(reader: Reader, time: string): Listing {
  const { session, where } = reader;
  const changed = async function* (shape: Shape): Rows {
    const since = `SystemModstamp >= ${time}`;
    const query = { shape, where: [since, where], order: 'SystemModstamp, Id' };
    return yield* rowsFrom(session, query, await firstPage(session, query));
  };
  return listingOf(reader, changed, async (rows) => standIns(reader, rows));
}

/**
 * Yields the records of all objects. `besides` returns further rows that must be read because of
 * the given ones.
 */
async function* listingOf(
  reader: Reader,
  rowsOf: (shape: Shape) => Rows,
  besides: (rows: Row[]) => Promise<Row[]>,
): Listing {
  const flaws: Flaw[] = [];
  let isBegun = false;
  for (const shape of reader.shapes) {
    const reading = recordsOf(reader, { shape, rows: rowsOf(shape), besides });
    try {
      let step = await reading.next();
      for (; !step.done; step = await reading.next()) {
        isBegun = true;
        yield step.value;
      }
      flaws.push(...step.value);
    } catch (error) {
      const where = `among the ${shape.object}s`;
      return [...flaws, stoppedBy(error, { hasBegun: isBegun, where })];
    }
  }
  return flaws;
}

interface Part {
  shape: Shape;
  rows: Rows;
  besides: (rows: Row[]) => Promise<Row[]>;
}

async function* recordsOf(reader: Reader, { shape, rows, besides }: Part): Listing {
  const seen = new Set<number>();
  let step = await rows.next();
  for (; !step.done; step = await rows.next()) {
    for (const { id } of step.value) seen.add(markOf(id));
    yield* batchesOf(await settle(reader, step.value));
    yield* batchesOf(await settle(reader, await besides(step.value), step.value));
  }
  return seen.size === step.value ? [] : [miscounted(shape, seen.size, step.value)];
}

function batchesOf(records: SourceRecord[]): SourceRecord[][] {
  const count = Math.ceil(records.length / BATCH_RECORDS);
  return Array.from({ length: count }, (_, at) =>
    records.slice(at * BATCH_RECORDS, (at + 1) * BATCH_RECORDS),
  );
}

function miscounted({ object }: Shape, count: number, total: number): Flaw {
  const why = `${count} different ${object}s were read, and Salesforce counts ${total}`;
  return { why, fix: 'read it again when the CRM is quieter' };
}
