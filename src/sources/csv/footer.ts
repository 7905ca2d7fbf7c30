/**
 * Recognizes the footer of a report: a total, a copyright, the name of its author. Each of its
 * lines is a row of one cell, and the first one follows a blank line. Because they can be
 * recognized only at the end of the file, they are held back until then. A file that was cut off in
 * the first cell of a record looks the same. So without a last line break there is no footer,
 * whatever `finalNewline` states.
 */
import type { Row } from './row-parser.ts';

/** Salesforce writes five. */
const MOST_LINES = 20;

/** The last rows so far, if they may be a footer. */
export interface Footer {
  /** Returns whether the row is held back. If not, the rows held before it are no footer. */
  takes(row: Row): boolean;
  /** Returns whether any rows are held back. */
  isHolding(): boolean;
  /** Returns the rows held back, and holds them no longer. */
  release(): FooterRow[];
}

/** A row without its cell, which may be large. */
export type FooterRow = Pick<Row, 'line'>;

/** Creates the footer for a file whose header has this width. */
export function footerOf(width: number): Footer {
  let held: FooterRow[] = [];
  let hasRecords = false;
  return {
    takes({ line, fields, isAfterBlank }) {
      hasRecords ||= fields.length === width;
      const isPart = hasRecords && width > 1 && fields.length === 1;
      if (!isPart || held.length === MOST_LINES) return false;
      if (held.length === 0 && !isAfterBlank) return false;
      held.push({ line });
      return true;
    },
    isHolding: () => held.length > 0,
    release() {
      const rows = held;
      held = [];
      return rows;
    },
  };
}
