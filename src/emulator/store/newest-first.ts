/** Rows that can be listed, a listing that has the newest first, and a table of such rows. */
import type { Shelf } from './storage.ts';

export interface Dated {
  /** The creation time in milliseconds since the epoch. */
  readonly createdAt: number;
  /** Orders rows of the same millisecond. It is never shown. */
  readonly serial: number;
}

/** Rows in order of `createdAt`, newest first. */
export interface Newest<T> extends Iterable<T> {
  readonly size: number;
  add(row: T): void;
  remove(row: T): void;
  clear(): void;
  /** Returns page `page` (from 1) of `limit` rows, or an empty array after the last page. */
  page(page: number, limit: number): T[];
}

/**
 * Creates a listing that is always in order, so that reading a page costs no more than its own
 * rows. One array holds the rows, oldest first: a new row is pushed to its end, and pages are read
 * from there. Only adding an older row or removing one moves other rows (one memmove).
 */
export function newestFirst<T extends Dated>(): Newest<T> {
  const rows: T[] = [];

  /** Returns how many rows are older than `row`. If `row` is listed, this is its index. */
  function place(row: T): number {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = rows[middle];
      if (other !== undefined && isOlder(other, row)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    get size() {
      return rows.length;
    },
    add(row) {
      const last = rows.at(-1);
      if (last === undefined || isOlder(last, row)) rows.push(row);
      else rows.splice(place(row), 0, row);
    },
    remove(row) {
      const index = place(row);
      if (rows[index] === row) rows.splice(index, 1);
    },
    clear: () => void rows.splice(0),
    page(page, limit) {
      const end = rows.length - (page - 1) * limit;
      return end > 0 ? rows.slice(Math.max(0, end - limit), end).toReversed() : [];
    },
    *[Symbol.iterator]() {
      for (let index = rows.length - 1; index >= 0; index -= 1) {
        const row = rows[index];
        if (row !== undefined) yield row;
      }
    },
  };
}

/** Returns whether the first row is listed after the other. */
export function isOlder(one: Dated, other: Dated): boolean {
  return one.createdAt === other.createdAt
    ? one.serial < other.serial
    : one.createdAt < other.createdAt;
}

/** Creates a table of rows by id, also listed newest first. It marks in the shelf what changes. */
export function createTable<Row extends Dated & { readonly id: string }>(shelf: Shelf<Row>) {
  const all = newestFirst<Row>();
  const byId = new Map<string, Row>();
  let serial = 0;

  function put(row: Row): void {
    serial = Math.max(serial, row.serial);
    byId.set(row.id, row);
    all.add(row);
  }

  return {
    nextSerial: () => serial + 1,
    insert(row: Row): Row {
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    remove(row: Row): void {
      byId.delete(row.id);
      all.remove(row);
      shelf.drop(row.id);
    },
    byId: (id: string) => byId.get(id),
    change(row: Row, fields: object, now: number): void {
      Object.assign(row, fields, { updatedAt: now });
      shelf.keep(row);
    },
    listed: () => all,
    rows: () => byId.values(),
    clear(): void {
      byId.clear();
      all.clear();
      serial = 0;
    },
  };
}
