/** From where `changes` goes on: a moment by the database's clock, and of what. */
import { hash } from 'node:crypto';
import { milliseconds } from '../../domain/values/config-value.ts';
import { placeOf } from './drivers/database-address.ts';
import type { SqlOptions } from './options.ts';

/** Undefined: not one that was given for these options. */
export function readCursor(cursor: string, options: SqlOptions): number | undefined {
  const [moment = '', mark, ...more] = cursor.split(' ');
  const atMs = Date.parse(moment);
  return mark === markOf(options) && more.length === 0 && atMs >= 0 ? atMs : undefined;
}

/**
 * So long before the state that was read that a row which was written then and shown later is read
 * next time; never before the cursor it followed.
 */
export function cursorAfter(nowMs: number, options: SqlOptions, sinceMs = 0): string {
  const atMs = Math.max(sinceMs, nowMs - milliseconds(options.overlap), 0);
  return `${new Date(atMs).toISOString()} ${markOf(options)}`;
}

/** Another table or column has other changes. */
function markOf({ url, table, query, updatedAt, zone }: SqlOptions): string {
  const place = placeOf(url);
  const where = typeof place === 'string' ? place : { ...place, password: undefined };
  return hash('sha256', JSON.stringify([where, table, query, updatedAt, zone])).slice(0, 16);
}
