/**
 * The rows of one kind that an organization has: a table of them by id, and the indexes that find
 * and list them.
 */
import type { Rows } from '../shared/row-types.ts';

/** Follows the rows of a table. */
export interface Index<Row> {
  add(row: Row): void;
  remove(row: Row): void;
  clear(): void;
}

/** Creates a table of rows by id, in order of creation. It marks in the shelf what changes. */
export function createTable<Row extends { readonly id: string }>(
  shelf: Shelf<Row>,
  indexes: readonly Index<Row>[] = [],
) {
  const rows = new Map<string, Row>();

  function put(row: Row): void {
    rows.set(row.id, row);
    for (const index of indexes) index.add(row);
  }

  return {
    byId: (id: string) => rows.get(id),
    rows: () => [...rows.values()],
    put,
    insert(row: Row): Row {
      put(row);
      shelf.keep(row);
      return row;
    },
    /** Changes fields by which no index finds the row, unless it is taken out and added again. */
    change(row: Row, fields: object): void {
      Object.assign(row, fields);
      shelf.keep(row);
    },
    remove(row: Row): void {
      rows.delete(row.id);
      for (const index of indexes) index.remove(row);
      shelf.drop(row.id);
    },
    clear(): void {
      rows.clear();
      for (const index of indexes) index.clear();
    },
  };
}

/** Creates what finds a row by a text, such as a secret, that no other row has. */
export function createLookup<Row>(textOf: (row: Row) => string) {
  const rows = new Map<string, Row>();
  return {
    find: (text: string) => rows.get(text),
    add: (row: Row) => void rows.set(textOf(row), row),
    remove: (row: Row) => void rows.delete(textOf(row)),
    clear: () => rows.clear(),
  };
}

export interface Dated {
  readonly createdAt: number;
  /** Orders rows of the same millisecond. It is never shown. */
  readonly serial: number;
}

/** Rows in order of `createdAt`, newest first. */
export interface Newest<T> extends Index<T>, Iterable<T> {
  readonly size: number;
  /** Returns a number that is higher than the serial of each row that was added. */
  nextSerial(): number;
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
  let serial = 0;

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
    nextSerial: () => serial + 1,
    add(row) {
      serial = Math.max(serial, row.serial);
      const last = rows.at(-1);
      if (last === undefined || isOlder(last, row)) rows.push(row);
      else rows.splice(place(row), 0, row);
    },
    remove(row) {
      const index = place(row);
      if (rows[index] === row) rows.splice(index, 1);
    },
    clear() {
      rows.length = 0;
      serial = 0;
    },
    page(page, limit) {
      const end = rows.length - (page - 1) * limit;
      return end > 0 ? rows.slice(Math.max(0, end - limit), end).toReversed() : [];
    },
    [Symbol.iterator]: () => rows.toReversed().values(),
  };
}

/** Returns whether the first row is listed after the other. */
export function isOlder(one: Dated, other: Dated): boolean {
  return one.createdAt === other.createdAt
    ? one.serial < other.serial
    : one.createdAt < other.createdAt;
}

/** A row with its organization, '' if none. Ids are unique within a kind and organization. */
export type StoredRow<Kinds extends keyof Rows = keyof Rows> = {
  [Kind in Kinds]: { kind: Kind; organization: string; row: Rows[Kind] };
}[Kinds];

/** Stores the rows of one kind and organization. */
export interface Shelf<Row> {
  keep(row: Row): void;
  drop(id: string): void;
}

/** Stores the world as plain JSON rows, never modified in place, at each `save`. */
export interface Storage {
  shelf<Kind extends keyof Rows>(kind: Kind, organization: string): Shelf<Rows[Kind]>;
  /** Writes everything marked since the last save, in a single transaction. */
  save(): void;
  /** Returns the rows of an earlier process, each kind and organization in order of creation. */
  load(): StoredRow[];
  /** Records the initial state, to which `rewind` returns; only once. */
  begin(rows: Iterable<StoredRow>): void;
  /** Restores the initial state and returns its rows. */
  rewind(): StoredRow[];
  close(): void;
}

/** Creates an in-memory storage; its contents are lost when the process exits. */
export function createMemory(): Storage {
  let beginning: StoredRow[] | undefined;
  // A shallow copy suffices, because values inside a row never change.
  const copy = <Stored extends StoredRow>(stored: Stored): Stored => ({
    ...stored,
    row: { ...stored.row },
  });
  return {
    shelf: () => ({ keep() {}, drop() {} }),
    save() {},
    load: () => [],
    begin: (rows) => void (beginning ??= Array.from(rows, copy)),
    rewind: () => (beginning ?? []).map(copy),
    close() {},
  };
}
