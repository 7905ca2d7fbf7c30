/**
 * From where changes are read on: a time of the CRM's own clock, in whole seconds, as its Date
 * header is.
 */
import { milliseconds } from '../../domain/values/config-value.ts';
import type { Listed } from './record-listing.ts';
import type { ChangesOptions } from './options.ts';

export interface ChangeCursor {
  /** The time in a cursor; undefined: it is none. */
  read(cursor: string): number | undefined;
  /** Where what changed since then is listed. */
  addressAt(ms: number): string;
  /** Of a reading that began then, never before the one it went on from; if that is known. */
  after(begunAt: Listed['begunAt'], sinceMs?: number): string | undefined;
}

export function createSince({ url, format, overlap }: ChangesOptions): ChangeCursor {
  const overlapMs = milliseconds(overlap);
  return {
    read(cursor) {
      const ms = Date.parse(cursor);
      return Number.isNaN(ms) ? undefined : ms;
    },
    addressAt: (ms) => url.replaceAll('{since}', () => encodeURIComponent(written(ms, format))),
    after(begunAt, sinceMs = Number.NEGATIVE_INFINITY) {
      if (begunAt === undefined) return undefined;
      return iso(Math.max(sinceMs, begunAt - overlapMs));
    },
  };
}

function written(ms: number, format: ChangesOptions['format']): string {
  if (format === 'iso') return iso(ms);
  const seconds = Math.floor(ms / 1000);
  return String(format === 'unix' ? seconds : seconds * 1000);
}

/** Without a fraction: not every API reads one. */
function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
