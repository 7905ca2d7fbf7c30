import { remember } from './recent-entries.ts';
import type { Shelf } from './storage.ts';
import type { SendRow, TestSend } from '../shared/row-types.ts';

/** Holds the most recent test emails of one organization. */
export interface Outbox {
  add(send: TestSend): void;
  put(row: SendRow): void;
  /** Returns all test emails, or the last `count`, oldest first. */
  read(count?: number): TestSend[];
  rows(): SendRow[];
  clear(): void;
}

const KEEP = 1000;

/** Creates an empty outbox. */
export function createOutbox(shelf: Shelf<SendRow>): Outbox {
  const sends = remember<SendRow>(KEEP);
  let count = 0;

  return {
    add(send) {
      count += 1;
      const row = { id: String(count), send };
      sends.add(row);
      shelf.keep(row);
      // Memory holds at most twice the minimum, and so does the storage.
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
