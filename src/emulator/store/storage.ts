import type { Draws } from '../shared/seeded-random.ts';
import type {
  Channel,
  ContactRow,
  DomainRow,
  KeyRow,
  SendRow,
  TemplateRow,
  UserRow,
} from '../shared/row-types.ts';

/** Every kind of row there is: what the whole world is made of. */
export interface Rows {
  draws: Draws;
  organization: { id: string; name: string };
  user: UserRow;
  channel: Channel;
  key: KeyRow;
  contact: ContactRow;
  template: TemplateRow;
  domain: DomainRow;
  send: SendRow;
}

/** A row with whose it is; '' where that is nobody's. Its id is unique in its kind and owner. */
export type StoredRow = {
  [Kind in keyof Rows]: { kind: Kind; organization: string; row: Rows[Kind] };
}[keyof Rows];

/** Where the rows of one kind and organization are kept besides memory. */
export interface Shelf<Row> {
  /** Notes that the row is new, or has changed. */
  keep(row: Row): void;
  drop(id: string): void;
}

/**
 * Where the world is kept besides memory. Rows are plain JSON, and what lies within one is replaced
 * and never changed in place. Nothing is written before `save`.
 */
export interface Storage {
  shelf<Kind extends keyof Rows>(kind: Kind, organization: string): Shelf<Rows[Kind]>;
  /** Writes everything noted since the last time, all of it or nothing. */
  save(): void;
  /** What an earlier process left, each kind and organization in the order it was made. */
  load(): StoredRow[];
  /** The world is arranged: what is there now is what `rewind` leads back to. Only once. */
  begin(rows: Iterable<StoredRow>): void;
  /** Leads back to the beginning, and answers it. */
  rewind(): StoredRow[];
  close(): void;
}

/** Keeps nothing: when the process ends, so does the world. */
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

/** Deep enough, since what lies within a row is never changed. */
function copy<Stored extends { row: object }>(stored: Stored): Stored {
  return { ...stored, row: { ...stored.row } };
}
