/** A moment as the column of changes writes it, so that an index of that column can be used. */
import { Invalid } from '../../domain/errors.ts';
import { quoted } from '../shared/field-suggestions.ts';
import type { Column, Raw, Session } from './drivers/read-session.ts';

/** What a number of seconds, milliseconds or microseconds looks like today. */
const scales: readonly [from: number, perMs: number][] = [
  [1e14, 1000],
  [1e11, 1],
  [1e8, 0.001],
];
const LEAST = 1e8;

const text = /^\d{4}-\d\d-\d\d(?:([ T])\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]00:?00)?)?$/;

export interface Changes {
  session: Session;
  /** As it stands behind `from`. */
  from: string;
  column: Column;
  zone: string | undefined;
}

/** Undefined: no row says when it was changed. Throws Invalid where that cannot be compared. */
export async function sinceIn(changes: Changes, atMs: number): Promise<Raw | undefined> {
  const { column, zone, session } = changes;
  const { holds } = column;
  if (holds === 'instant') return local(atMs, 'UTC', 19);
  if (holds === 'time' || holds === 'day') {
    if (zone === undefined) {
      const fix = 'say with zone of the source in which it is: UTC, or an offset such as +01:00';
      throw new Invalid(`${session.name}: ${quoted(column.name)} has no time zone → ${fix}`);
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
  return new Invalid(`${session.name}: ${what} → ${fix}`);
}

/** The first and the last, of those above a number if one is given. */
async function boundsOf({ session, from, column }: Changes, above?: number): Promise<Raw[]> {
  const name = session.quote(column.name);
  const condition = above === undefined ? '' : ` where ${name} > ${above}`;
  const [row = []] = await session.rows(
    `select min(${name}), max(${name}) from ${from}${condition}`,
    [],
  );
  return row;
}

/** Zeros and the like, for "never", are left out; numbers of two scales cannot be compared. */
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
 * The form that is the least of all for one moment. A space is less than a T, and a day less than
 * any time of it: what is written in several forms is read once too often rather than not at all.
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

/** Its first digits in a zone: 10 for the day, 19 up to the second. */
function local(atMs: number, zone: string, digits: number): string {
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):(\d\d)$/.exec(zone) ?? [];
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  return new Date(atMs + offsetMs).toISOString().replace('T', ' ').slice(0, digits);
}
