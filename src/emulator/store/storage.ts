import type { Rows } from '../shared/row-types.ts';

/** A row with its organization, '' if none. Ids are unique within a kind and organization. */
export type StoredRow<Kinds extends keyof Rows = keyof Rows> = {
  [Kind in Kinds]: { kind: Kind; organization: string; row: Rows[Kind] };
}[Kinds];

/** Stores the rows of one kind and organization. */
export interface Shelf<Row> {
  /** Marks the row as new or changed. */
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
