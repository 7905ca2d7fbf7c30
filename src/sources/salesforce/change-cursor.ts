/**
 * From where changes are read on: a time of the organization's own clock, and a mark of what was
 * read, for with other fields, objects or conditions everybody has changed. The deleted are kept in
 * the recycle bin for 15 days: an older cursor would miss some.
 */
import { hash } from 'node:crypto';
import { milliseconds } from '../../domain/values/config-value.ts';
import type { SalesforceOptions } from './options.ts';

const MOST_AGE_MS = 14 * 86_400_000;

export interface Cursors {
  /** Of a reading that began then; never before the one it went on from. */
  after(startedAtMs: number | undefined, since?: string): string | undefined;
  /** The time in a cursor; undefined: it was of something else, or is too old. */
  read(cursor: string, nowMs: number | undefined): string | undefined;
}

export function createCursors(options: SalesforceOptions, fields: readonly string[]): Cursors {
  const { url, objects, where = '', overlap } = options;
  const overlapMs = milliseconds(overlap);
  const text = JSON.stringify([new URL(url).host, objects.toSorted(), where, fields.toSorted()]);
  const mark = hash('sha256', text).slice(0, 12);
  const timeIn = (cursor: string) => {
    const [time = '', of] = cursor.split(' ');
    return of === mark && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(time) ? time : undefined;
  };
  return {
    after(startedAtMs, since) {
      if (startedAtMs === undefined) return since;
      const from = new Date(startedAtMs - overlapMs).toISOString().replace(/\.\d+Z$/, 'Z');
      const before = since === undefined ? '' : (timeIn(since) ?? '');
      return `${before > from ? before : from} ${mark}`;
    },
    read(cursor, nowMs) {
      const time = timeIn(cursor);
      const ageMs = time === undefined ? 0 : (nowMs ?? 0) - Date.parse(time);
      return ageMs > MOST_AGE_MS ? undefined : time;
    },
  };
}
