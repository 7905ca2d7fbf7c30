/**
 * Selects what has changed since a time. Provides that time in the notation of the change column,
 * so that an index on the column can be used, and the cursor for it.
 */
import { markedCursors } from '../shared/read-certificate.ts';
import { Invalid } from '../../domain/errors.ts';
import { quoted } from '../shared/field-suggestions.ts';
import type { Column, Raw, Session } from './drivers/database-session.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import { placeOf } from './drivers/database-address.ts';
import type { SqlOptions } from './options.ts';

/** Recognizes by its magnitude whether a number counts microseconds, milliseconds or seconds. */
const scales: readonly [from: number, perMs: number][] = [
  [1e14, 1000],
  [1e11, 1],
  [1e8, 0.001],
];
const LEAST = 1e8;

const text = /^\d{4}-\d\d-\d\d(?:([ T])\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]00:?00)?)?$/;

interface Changes {
  session: Session;
  /** The relation, as it appears after `from`. */
  from: string;
  column: Column;
  zone: string | undefined;
}

/** Returns the value to compare with; undefined if no row has a time. Throws Invalid. */
export async function comparableTime(changes: Changes, atMs: number): Promise<Raw | undefined> {
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
  const [lowest, highest] = await readBounds(changes);
  if (lowest === null || lowest === undefined || highest === null || highest === undefined) {
    return undefined;
  }
  if (Number(highest) === 0) return undefined;
  const isNumber = holds !== 'any' || typeof lowest !== 'string';
  if (holds !== 'any' && !/^(integer|decimal|float)$/.test(holds)) throw odd(changes);
  if (!isNumber) {
    // The smallest of all notations: a space sorts before a T, and a day before any time of that
    // day. If rows use mixed notations, some are read once too often, but none is missed.
    const forms = [lowest, highest].map((value) => text.exec(String(value)));
    const [first, last] = forms;
    if (!first || !last || typeof highest !== 'string') throw odd(changes);
    const isDay = first[1] === undefined || last[1] === undefined;
    const isUtc = first[2] !== undefined && last[2] !== undefined;
    const at = local(atMs, isUtc ? 'UTC' : (zone ?? 'UTC'), isDay ? 10 : 19);
    return forms.every((form) => form?.[1] === 'T') ? at.replace(' ', 'T') : at;
  }
  // Zeros and similar values that mean "never" are left out.
  const bounds = await readBounds(changes, LEAST);
  const [perMs, other] = bounds.map((value) => scales.find(([from]) => Number(value) >= from)?.[1]);
  if (perMs === undefined || perMs !== other) throw odd(changes);
  const number = Math.floor(atMs * perMs);
  if (holds === 'any') return BigInt(number);
  return holds === 'float' ? number : String(number);
}

function odd({ session, column }: Changes): Invalid {
  const what = `${quoted(column.name)} holds no times that can be compared`;
  const fix = 'name with updatedAt a column that does, or make it one in query';
  return new Invalid(`${session.name}: ${what}`, { fix });
}

/** Returns the smallest and the largest value, optionally only of those above a number. */
async function readBounds({ session, from, column }: Changes, above?: number): Promise<Raw[]> {
  const name = session.quote(column.name);
  const condition = above === undefined ? '' : ` where ${name} > ${above}`;
  const text = `select min(${name}), max(${name}) from ${from}${condition}`;
  const [row = []] = await session.rows(text, []);
  return row;
}

/** Returns the first digits of a time in a zone: 10 for the day, 19 up to the second. */
function local(atMs: number, zone: string, digits: number): string {
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):(\d\d)$/.exec(zone) ?? [];
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  return new Date(atMs + offsetMs).toISOString().replace('T', ' ').slice(0, digits);
}

/** Returns the time in a cursor in milliseconds; undefined if it was made for other options. */
export function readCursor(cursor: string, options: SqlOptions): number | undefined {
  const atMs = Date.parse(cursorsOf(options).timeIn(cursor) ?? '');
  return atMs >= 0 ? atMs : undefined;
}

/**
 * Returns the cursor after a read. It is earlier than the state that was read by the overlap, so
 * that a row that was written before then but became visible later is read next time. It is never
 * before the cursor from which the read continued.
 */
export function cursorAfter(nowMs: number, options: SqlOptions, sinceMs = 0): string {
  const atMs = Math.max(sinceMs, nowMs - milliseconds(options.overlap), 0);
  return cursorsOf(options).at(new Date(atMs).toISOString());
}

/** Another table or column has other cursors. */
function cursorsOf({ url, table, query, updatedAt, zone }: SqlOptions) {
  const place = placeOf(url);
  const where = 'reason' in place ? place : { ...place, password: undefined };
  return markedCursors([where, table, query, updatedAt, zone], 16);
}
