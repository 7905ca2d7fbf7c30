/**
 * Selects what has changed since a time: the time as the column of changes writes it, so that an
 * index of that column can be used, and the cursor that names it.
 */
import { type MarkedCursors, markedCursors } from '../shared/change-cursor.ts';
import { Invalid } from '../../domain/errors.ts';
import { quoted } from '../shared/field-suggestions.ts';
import type { Column, Raw, Session } from './drivers/database-session.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import { placeOf } from './drivers/database-address.ts';
import type { SqlOptions } from './options.ts';

/** The scales of a number of seconds, milliseconds or microseconds, by its size today. */
const scales: readonly [from: number, perMs: number][] = [
  [1e14, 1000],
  [1e11, 1],
  [1e8, 0.001],
];
const LEAST = 1e8;

const text = /^\d{4}-\d\d-\d\d(?:([ T])\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]00:?00)?)?$/;

/** The column of changes, and where it is. */
export interface Changes {
  session: Session;
  /** The relation, as it follows `from`. */
  from: string;
  column: Column;
  zone: string | undefined;
}

/**
 * Returns the value to compare the column with; undefined when no row says when it was changed.
 * Throws Invalid when the column cannot be compared.
 */
export async function sinceIn(changes: Changes, atMs: number): Promise<Raw | undefined> {
  const { column, zone, session } = changes;
  const { holds } = column;
  if (holds === 'instant') return local(atMs, 'UTC', 19);
  if (holds === 'time' || holds === 'day') {
    if (zone === undefined) {
      const fix = 'say with zone of the source in which it is: UTC, or an offset such as +01:00';
      throw new Invalid(`${session.name}: ${quoted(column.name)} has no time zone`, { fix });
    }
    return local(atMs, zone, holds === 'day' ? 10 : 19);
  }
  const [lowest, highest] = await boundsOf(changes);
  if (lowest === null || lowest === undefined || highest === null || highest === undefined) {
    return undefined;
  }
  if (Number(highest) === 0) return undefined;
  const isNumber = holds !== 'any' || typeof lowest !== 'string';
  if (holds !== 'any' && !/^(integer|decimal|float)$/.test(holds)) throw odd(changes);
  return isNumber ? numberIn(changes, atMs) : textIn(changes, [lowest, highest], atMs);
}

function odd({ session, column }: Changes): Invalid {
  const what = `${quoted(column.name)} holds no times that can be compared`;
  const fix = 'name with updatedAt a column that does, or make it one in query';
  return new Invalid(`${session.name}: ${what}`, { fix });
}

/** Returns the least and the greatest value, of those above a number if one is given. */
async function boundsOf({ session, from, column }: Changes, above?: number): Promise<Raw[]> {
  const name = session.quote(column.name);
  const condition = above === undefined ? '' : ` where ${name} > ${above}`;
  const [row = []] = await session.rows(
    `select min(${name}), max(${name}) from ${from}${condition}`,
    [],
  );
  return row;
}

/**
 * Returns the time as a number. Zeros and the like, for "never", are left out. Numbers of two
 * scales cannot be compared.
 */
async function numberIn(changes: Changes, atMs: number): Promise<Raw> {
  const bounds = await boundsOf(changes, LEAST);
  const found = bounds.map((value) => {
    return scales.find(([from]) => Number(value) >= from)?.[1];
  });
  const [perMs, other] = found;
  if (perMs === undefined || perMs !== other) throw odd(changes);
  const number = Math.floor(atMs * perMs);
  const { holds } = changes.column;
  if (holds === 'any') return BigInt(number);
  return holds === 'float' ? number : String(number);
}

/**
 * Returns the least of all spellings of the time. A space is less than a T, and a day less than any
 * time of it: rows in mixed spellings are read once too often rather than not at all.
 */
function textIn(changes: Changes, bounds: readonly Raw[], atMs: number): Raw {
  const forms = bounds.map((value) => text.exec(typeof value === 'string' ? value : ''));
  const [lowest, highest] = forms;
  if (!lowest || !highest) throw odd(changes);
  const isDay = lowest[1] === undefined || highest[1] === undefined;
  const isUtc = lowest[2] !== undefined && highest[2] !== undefined;
  const at = local(atMs, isUtc ? 'UTC' : (changes.zone ?? 'UTC'), isDay ? 10 : 19);
  return forms.every((form) => form?.[1] === 'T') ? at.replace(' ', 'T') : at;
}

/** Returns the first digits of a time in a zone: 10 for the day, 19 up to the second. */
function local(atMs: number, zone: string, digits: number): string {
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):(\d\d)$/.exec(zone) ?? [];
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  return new Date(atMs + offsetMs).toISOString().replace('T', ' ').slice(0, digits);
}

/**
 * Returns the time in a cursor, in milliseconds; undefined when it was not made for these options.
 */
export function readCursor(cursor: string, options: SqlOptions): number | undefined {
  const atMs = Date.parse(cursorsOf(options).timeIn(cursor) ?? '');
  return atMs >= 0 ? atMs : undefined;
}

/**
 * Returns the cursor after a reading. It lies before the state that was read by the overlap, so
 * that a row that was written then and became visible later is read next time; and never before the
 * cursor that the reading continued from.
 */
export function cursorAfter(nowMs: number, options: SqlOptions, sinceMs = 0): string {
  const atMs = Math.max(sinceMs, nowMs - milliseconds(options.overlap), 0);
  return cursorsOf(options).at(new Date(atMs).toISOString());
}

/** Returns the cursors of these options: another table or column has other changes. */
function cursorsOf({ url, table, query, updatedAt, zone }: SqlOptions): MarkedCursors {
  const place = placeOf(url);
  const where = 'reason' in place ? place : { ...place, password: undefined };
  return markedCursors([where, table, query, updatedAt, zone], 16);
}
