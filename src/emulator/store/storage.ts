import type { Rows } from '../shared/row-types.ts';

/** A row with its organization; '' if it has none. Ids are unique within kind and organization. */
export type StoredRow = {
  [Kind in keyof Rows]: { kind: Kind; organization: string; row: Rows[Kind] };
}[keyof Rows];

/** Stores the rows of one kind and organization. */
export interface Shelf<Row> {
  /** Notes that the row is new, or has changed. */
  keep(row: Row): void;
  drop(id: string): void;
}

/**
 * Stores the world. Rows are plain JSON; a value inside a row is replaced, never changed in place.
 * Nothing is written before `save`.
 */
export interface Storage {
  shelf<Kind extends keyof Rows>(kind: Kind, organization: string): Shelf<Rows[Kind]>;
  /** Writes everything noted since the last time, all or nothing. */
  save(): void;
  /**
   * Returns the rows of an earlier process; those of each kind and organization in the order they
   * were made.
   */
  load(): StoredRow[];
  /** Takes these rows as the beginning, to which `rewind` returns. Only the first call counts. */
  begin(rows: Iterable<StoredRow>): void;
  /** Returns to the beginning, and returns its rows. */
  rewind(): StoredRow[];
  close(): void;
}

/** Creates a storage that keeps nothing: the world ends with the process. */
export function createMemory(): Storage {
  let beginning: StoredRow[] | undefined;
  return {
    shelf: () => ({ keep() {}, drop() {} }),
    save() {},
    load: () => [],
    begin(rows) {
      beginning ??= Array.from(rows, copy);
    },
    rewind: () => (beginning ?? []).map(copy),
    close() {},
  };
}

/** Copies a row; values inside a row never change. */
function copy<Stored extends { row: object }>(stored: Stored): Stored {
  return { ...stored, row: { ...stored.row } };
}
