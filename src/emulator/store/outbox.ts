import { remember } from './recent-entries.ts';
import type { Shelf } from './storage.ts';
import type { SendRow, TestSend } from '../shared/row-types.ts';

/** The test emails of one organization; the oldest are forgotten. */
export interface Outbox {
  add(send: TestSend): void;
  put(row: SendRow): void;
  /** Oldest first: all of them, or the last `count`. */
  read(count?: number): TestSend[];
  rows(): SendRow[];
  clear(): void;
}

const KEEP = 1000;

export function createOutbox(shelf: Shelf<SendRow>): Outbox {
  const sends = remember<SendRow>(KEEP);
  let count = 0;

  return {
    add(send) {
      count += 1;
      const row = { id: String(count), send };
      sends.add(row);
      shelf.keep(row);
      // Memory holds twice as many at most, and so does the shelf.
      if (count > 2 * KEEP) shelf.drop(String(count - 2 * KEEP));
    },
    put(row) {
      count = Math.max(count, Number(row.id));
      sends.add(row);
    },
    read: (last) => sends.read(last).map(({ send }) => send),
    rows: () => sends.read(),
    clear() {
      sends.clear();
      count = 0;
    },
  };
}
