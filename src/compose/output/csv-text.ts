/** Writes rows as CSV (RFC 4180). */

/** Returns one line for each row. `spreadsheet`: cells that begin like a formula become texts. */
export function csvLines(
  rows: readonly (readonly string[])[],
  { spreadsheet }: { spreadsheet: boolean },
): string[] {
  // Puts an apostrophe, which spreadsheets hide, before text that begins like a formula.
  const plain = (text: string): string =>
    spreadsheet && /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  // Leading and trailing spaces are quoted, too: some readers would drop them.
  const quoted = (cell: string): string =>
    /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  return rows.map((row) => row.map((text) => quoted(plain(text))).join(','));
}
