/** Cursors from which changes are read: a time, and a mark of what was read until then. */
import { hash } from 'node:crypto';

export interface MarkedCursors {
  /** Returns the cursor of a time, as the source writes it. */
  at(time: string): string;
  /** Returns the time in a cursor; undefined when it was made for something else. */
  timeIn(cursor: string): string | undefined;
}

/**
 * Returns the cursors of one reading. The mark is a hash of `what` is read, with so many digits:
 * with other fields, conditions or another account every record counts as changed.
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
