/** Interprets the beginning of a CSV file: its delimiter, and a line that states it. */

/** The delimiters that a file may use. */
export const delimiters = [',', ';', '\t', '|'] as const;
export type Delimiter = (typeof delimiters)[number];

const SAMPLE_RECORDS = 50;

/**
 * Returns the delimiter with which a record contains the most requested fields. If several are
 * equal, the one that splits the largest number of following rows into the header's width wins,
 * then the one with the most columns. Text in quotes is never counted. For a file with one column,
 * the result is a comma.
 */
export function delimiterOf(sample: Buffer, fields: readonly string[]): Delimiter {
  const records = firstRecords(sample.toString('utf8'));
  const [first, ...rows] = records;
  const stated = delimiters.find(
    (delimiter) => nameOf(first ?? '').toLowerCase() === `sep=${delimiter}`,
  );
  if (stated !== undefined) return stated;
  if (first === undefined) return ',';
  const foundIn = (cells: readonly string[]) => {
    const names = new Set(cells.map(nameOf));
    return fields.filter((field) => names.has(field)).length;
  };
  const scores = delimiters.map((delimiter) => {
    const width = cellsOf(first, delimiter).length;
    return {
      delimiter,
      found: Math.max(...records.map((record) => foundIn(cellsOf(record, delimiter)))),
      several: width > 1 ? 1 : 0,
      even: rows.filter((row) => cellsOf(row, delimiter).length === width).length,
      width,
    };
  });
  const [best] = scores.toSorted(
    (a, b) => b.found - a.found || b.several - a.several || b.even - a.even || b.width - a.width,
  );
  return best?.delimiter ?? ',';
}

/**
 * Returns whether a row is the line `sep=;`, which precedes the header to tell Excel the delimiter.
 */
export function isSeparatorLine([first = '', ...others]: readonly string[]): boolean {
  return /^sep=.?$/i.test(first) && others.every((field) => field === '');
}

/** Returns where a line begins, the first of which is 1; the end if there are fewer lines. */
export function startOfLine(text: Buffer, line: number): number {
  const above = new RegExp(`^(?:[^\\r\\n]*(?:\\r\\n?|\\n)){${line - 1}}`);
  return above.exec(text.toString('latin1'))?.[0].length ?? text.length;
}

/**
 * Returns the cells of one record. It is more tolerant than the parser that reads the file later.
 */
function cellsOf(record: string, delimiter: Delimiter): string[] {
  const cells: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at <= record.length; at += 1) {
    const character = record[at];
    if (character === '"') quoted = !quoted;
    if (at < record.length && (quoted || character !== delimiter)) continue;
    cells.push(record.slice(start, at));
    start = at + 1;
  }
  return cells;
}

function nameOf(cell: string): string {
  const text = cell.replace(/^"([^]*)"$/, (_, inner: string) => inner.replaceAll('""', '"'));
  return text.trim();
}

/**
 * Returns the texts of the first records, except blank lines and a record that the sample cuts off.
 */
function firstRecords(text: string): string[] {
  const records: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length && records.length < SAMPLE_RECORDS; at += 1) {
    const character = text[at];
    if (character === '"') quoted = !quoted;
    if (quoted || (character !== '\n' && character !== '\r')) continue;
    if (at > start) records.push(text.slice(start, at));
    start = at + 1;
  }
  // The header is needed even if the sample holds nothing else.
  if (records.length === 0 && text.length > 0) records.push(text.slice(start));
  return records.map((record) => record.replace(/^\uFEFF/, ''));
}
