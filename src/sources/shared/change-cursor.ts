/**
 * Defines cursors from which changes are read. A cursor consists of a time and a mark of what was
 * read up to then.
 */
import { hash } from 'node:crypto';

export interface MarkedCursors {
  /** Returns the cursor for a time in the source's notation. */
  at(time: string): string;
  /** Returns the time in a cursor, or undefined if the cursor was made for other settings. */
  timeIn(cursor: string): string | undefined;
}

/**
 * Returns the cursors of one read. The mark is a hash of `what` is read, with this many digits.
 * With other fields, conditions or another account, the mark differs, so every record counts as
 * changed.
 */
export function markedCursors(what: readonly unknown[], digits: number): MarkedCursors {
  const mark = hash('sha256', JSON.stringify(what)).slice(0, digits);
  return {
    at: (time) => `${time} ${mark}`,
    timeIn(cursor) {
      const [time, of, ...more] = cursor.split(' ');
      return of === mark && more.length === 0 ? time : undefined;
    },
  };
}
