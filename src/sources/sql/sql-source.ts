/**
 * Reads contacts from a table or query of a database: PostgreSQL, MySQL, MariaDB or SQLite. Each
 * read uses one transaction that cannot write, so that it shows a single state.
 *
 * certified-reading.ts explains the certificate. A failure after the first page ends the read
 * without one, and the opt-outs read so far are kept. A read stays valid for a quarter of an hour,
 * and each read has a new name.
 *
 * With `updatedAt`, `changes` reads the rows that were written since the time in the cursor,
 * according to that column and the database's clock. A row becomes visible to others only when its
 * transaction ends, some time after it was written; the overlap covers that delay. A row that
 * becomes visible even later is found by the next full run, and so are rows that do not state when
 * they were changed.
 */
import type { Clock } from '../../domain/clock.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { ReadRequest, Source, SourceRecord } from '../source.ts';
import { readCursor } from './changes-since.ts';
import { isNoValue } from './drivers/database-failure.ts';
import { open } from './open-session.ts';
import type { SqlOptions } from './options.ts';
import { relationOf, rowsWith } from './relation-pages.ts';
import { certified } from './certified-reading.ts';
import { recordsOf } from './row-record.ts';
import type { Session } from './drivers/database-session.ts';

const HOLDS_MS = 15 * 60_000;

/** Returns the source of a database; `id` is the column of a record's id. */
export function sqlSource(
  options: SqlOptions,
  { clock, id }: { clock: Clock; id: string },
): Source {
  /**
   * The end time of each valid read: the latest read of everything, and the reads of changes since.
   */
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
        return await single(session, { options, id, fields, wanted });
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
          const asked = { options, id, request, reading, sinceMs };
          const certificate = yield* certified(session, asked);
          readings.set(reading, clock.now());
          return certificate;
        } finally {
          await session.close();
        }
      },
    }),
  };
}

interface Single {
  options: SqlOptions;
  id: string;
  fields: readonly string[];
  wanted: string;
}

/**
 * Reads one record. Ids that the database considers equal despite different case or spaces do not
 * match here.
 */
async function single(
  session: Session,
  { options, id, fields, wanted }: Single,
): Promise<SourceRecord | undefined> {
  const relation = await relationOf(session, options, { fields, id });
  const { at, columns } = relation;
  const column = columns[at.id];
  const values = column ? session.meant(wanted, column) : [];
  if (values.length === 0) return undefined;
  const rows = await rowsWith({ session, relation }, at.id, values).catch((error: unknown) => {
    if (isNoValue(error)) return [];
    throw error;
  });
  const records = recordsOf(relation, { json: jsonRecords(fields), zone: options.zone });
  const where = 'the row by its id';
  const found = rows.map((row) => records.of(row, where)).filter((one) => one.id === wanted);
  if (found.length < 2) return found[0]?.record;
  const fix = 'give every person one row, and an id of its own';
  return { where, broken: `is one of ${found.length} with this id`, fix };
}
