/**
 * Reads contacts from a table or query of a database: PostgreSQL, MySQL, MariaDB or SQLite. Each
 * read uses one transaction that cannot write, so that it shows a single state.
 *
 * A read was complete if its last page was not full, the number of rows equals the database's own
 * count in the same state, each row has a unique key and id, and each row could be read. A failure
 * after the first page ends the read without a certificate, and the opt-outs read so far are kept.
 * A read stays valid for a quarter of an hour, and each read has a new name.
 *
 * With `updatedAt`, `changes` reads the rows that were written since the time in the cursor,
 * according to that column and the database's clock. A row becomes visible to others only when its
 * transaction ends, some time after it was written; the overlap covers that delay. A row that
 * becomes visible even later is found by the next full run, and so are rows that do not state when
 * they were changed.
 */
import type { Clock } from '../../domain/clock.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { ReadRequest, Source, SourceRecord, Certificate } from '../source.ts';
import { readCursor, cursorAfter, comparableTime } from './changes-since.ts';
import { isNoValue } from './drivers/database-failure.ts';
import { open } from './open-session.ts';
import type { SqlOptions } from './options.ts';
import {
  describeRelation,
  rowsWith,
  type Count,
  countRows,
  keylessRows,
  readPages,
} from './relation-pages.ts';
import { rowReader } from './row-record.ts';
import type { Session, Raw } from './drivers/database-session.ts';
import { Invalid } from '../../domain/errors.ts';
import {
  brokenFlaw,
  certificateOf,
  type Flaw,
  withCursor,
  stoppedBy,
} from '../shared/read-certificate.ts';
import { counted } from '../../domain/values/counted.ts';

const HOLDS_MS = 15 * 60_000;

/** Returns the source of a database; `id` is the column of a record's id. */
export function sqlSource(
  options: SqlOptions,
  { clock, id }: { clock: Clock; id: string },
): Source {
  /** The end of each valid read: the latest of everything, and those of changes since. */
  const readings = new Map<string, number>();
  const opened = (signal: AbortSignal) => open(options, { signal, clock });
  return {
    async *read(request) {
      const reading = `sql-${clock.now()}`;
      const session = await opened(request.signal);
      try {
        const certificate = yield* certified(session, { options, id, request, reading });
        readings.clear();
        readings.set(reading, clock.now());
        return certificate;
      } finally {
        await session.close();
      }
    },
    still(reading) {
      const ageMs = clock.now() - (readings.get(reading) ?? Number.NaN);
      return ageMs >= 0 && ageMs < HOLDS_MS;
    },
    async one(wanted, { fields, signal }) {
      const session = await opened(signal);
      try {
        const relation = await describeRelation(session, options, fields, id);
        const column = relation.columns[relation.at.id];
        const values = column ? session.meant(wanted, column) : [];
        if (values.length === 0) return undefined;
        const rows = await rowsWith(session, relation, values).catch((error: unknown) => {
          if (isNoValue(error)) return [];
          throw error;
        });
        const read = rowReader(relation, jsonRecords(fields), options.zone);
        const where = 'the row by its id';
        // Ids that the database considers equal despite different case or spaces do not match here.
        const found = rows.map((row) => read(row, where)).filter((one) => one.id === wanted);
        if (found.length < 2) return found[0]?.record;
        const fix = 'give every person one row, and an id of its own';
        return { where, broken: `is one of ${found.length} with this id`, fix };
      } finally {
        await session.close();
      }
    },
    ...(options.updatedAt !== undefined && {
      async *changes(cursor: string, request: ReadRequest) {
        const sinceMs = readCursor(cursor, options);
        if (sinceMs === undefined) return 'lost' as const;
        const session = await opened(request.signal);
        try {
          // If the clock was set back, it is unknown what was written meanwhile.
          if (session.now < sinceMs) return 'lost' as const;
          const reading = `sql-changes-${clock.now()}`;
          const certificate = yield* certified(session, { options, id, request, reading, sinceMs });
          readings.set(reading, clock.now());
          return certificate;
        } finally {
          await session.close();
        }
      },
    }),
  };
}

interface Certified {
  options: SqlOptions;
  id: string;
  request: ReadRequest;
  reading: string;
  /** The time since which changes are read; undefined reads everything. */
  sinceMs?: number;
}

/** Yields a page of records at a time, of all or of what changed, and returns the certificate. */
async function* certified(
  session: Session,
  { options, id, request, reading, sinceMs }: Certified,
): AsyncGenerator<SourceRecord[], Certificate> {
  const { fields } = request;
  const relation = await describeRelation(session, options, fields, id);
  const column = relation.columns[relation.at.updatedAt ?? -1];
  const { zone, pageSize } = options;
  const changes = column && { session, from: relation.from, column, zone };
  // A full read checks the column too, so that a column that cannot be compared is reported now and
  // not by the first fast run.
  const since = changes && (await comparableTime(changes, sinceMs ?? session.now));
  const isWhole = sinceMs === undefined;
  const cursor = column && cursorAfter(session.now, options, sinceMs);
  if (!isWhole && since === undefined) return { complete: true, reading, cursor };
  const paged = { session, relation, pageSize, since: isWhole ? undefined : since };
  const json = jsonRecords(fields);
  const read = rowReader(relation, json, zone);
  const count = await countRows(paged);
  const proof = createProof(count);
  let number = 0;
  const toBatch = (rows: readonly Raw[][]) =>
    rows.map((row) => {
      number += 1;
      const { record, key, id: rowId } = read(row, `row ${number}`);
      proof.add(record, key, rowId);
      return record;
    });
  try {
    for await (const rows of readPages(paged)) {
      yield toBatch(rows);
      if (number > count.rows) break;
    }
    const keyless = number > count.rows ? [] : await keylessRows(paged);
    if (keyless.length > 0) yield toBatch(keyless);
  } catch (error) {
    proof.stop(stoppedBy(error, { hasBegun: number > 0, where: `after row ${number}` }));
  }
  const flaws = proof.flaws();
  const lack = json.lacking();
  if (isWhole && lack !== undefined && flaws.length === 0) {
    throw new Invalid(`${session.name}: ${lack}`);
  }
  return withCursor(certificateOf(reading, flaws), cursor);
}

/** Creates what gathers the facts that prove a read complete, by the database's own counts. */
function createProof(count: Count) {
  const broken: string[] = [];
  let rows = 0;
  let unnamed = 0;
  let twice = 0;
  let last: string | undefined;
  let stopped: Flaw | undefined;
  return {
    add(record: SourceRecord, key: string, id: string): void {
      rows += 1;
      if (key === last) twice += 1;
      last = key;
      if (id === '') unnamed += 1;
      if ('broken' in record) broken.push(record.where);
    },
    stop: (flaw: Flaw) => void (stopped = flaw),
    /** Returns the flaws that prevent the proof. */
    flaws(): Flaw[] {
      if (stopped) return [stopped];
      const read = `${counted(rows, 'row')} ${rows === 1 ? 'was' : 'were'} read`;
      const miscounted = {
        why: `${read}, and the database counts ${count.rows}`,
        fix: 'name as key a column whose values are unique, whatever their case',
      };
      return [
        ...numbered(count.rows - count.keys, 'without a key', 'give each one, or name another key'),
        ...numbered(unnamed, 'without an id', 'give each one in the CRM'),
        ...numbered(twice, 'with the key of another one', 'name as key a column that is unique'),
        ...numbered(count.ids - count.different, 'with the id of another one', oneEach),
        ...(broken.length > 0
          ? [brokenFlaw('row', { count: broken.length, first: broken[0], fix: 'mend them' })]
          : []),
        ...(twice === 0 && rows !== count.rows ? [miscounted] : []),
      ];
    },
  };
}

const oneEach = 'have query give one row for each person';

function numbered(count: number, what: string, fix: string): Flaw[] {
  return count > 0 ? [{ why: `${counted(count, 'row')} ${what}`, fix }] : [];
}
