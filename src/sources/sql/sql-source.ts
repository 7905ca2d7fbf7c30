/**
 * A table or query of a database as a source of contacts: PostgreSQL, MySQL, MariaDB, SQLite. It is
 * read in one transaction that cannot write, so that a reading shows one state.
 *
 * certified-reading.ts explains the certificate. A failure after the first page ends the reading
 * without one, and opt-outs that were read are not lost. A reading counts for a quarter of an hour,
 * and each has a new name.
 *
 * `changes`, with `updatedAt`: the rows that according to that column were written since the time
 * in the cursor, by the database's clock. A row is written at one time and visible to others later,
 * when its transaction ends; the overlap covers that. A row that becomes visible even later is
 * found by the next full run, like rows that do not say when they were changed.
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

/** Returns the source of a database; `id`: the column of a record's id. */
export function sqlSource(
  options: SqlOptions,
  { clock, id }: { clock: Clock; id: string },
): Source {
  /** When each reading ended: the last one of everything, and those of changes since. */
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
          // With a clock that was put back nothing can be said of what was written meanwhile.
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

/** Reads one record. Ids that are equal to the database by case or spaces are not equal here. */
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
