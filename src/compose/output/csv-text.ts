/** Writes rows as CSV (RFC 4180). */

/** Returns one line for each row. `spreadsheet`: cells that begin like a formula become texts. */
export function csvLines(
  rows: readonly (readonly string[])[],
  { spreadsheet }: { spreadsheet: boolean },
): string[] {
  const plain = (text: string): string => (spreadsheet ? harmless(text) : text);
  return rows.map((row) => row.map((text) => quoted(plain(text))).join(','));
}

/** Puts an apostrophe, which spreadsheets hide, before text that begins like a formula. */
function harmless(text: string): string {
  return /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

/**
 * Quotes a cell as in RFC 4180, and also a cell with leading or trailing spaces, which some readers
 * would drop.
 */
function quoted(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
