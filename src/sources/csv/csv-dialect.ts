/** Which delimiter a file uses, judged by its beginning. */

const DELIMITERS = [',', ';', '\t', '|'] as const;
export type Delimiter = (typeof DELIMITERS)[number];

const SAMPLE_RECORDS = 50;

/**
 * The delimiter under which the header shows most of the fields that are looked for; among equals
 * the one that cuts the following rows most evenly to the header's width, then the one with most
 * columns. What stands in quotes is never taken for a delimiter. A file of one column: a comma.
 */
export function delimiterOf(sample: Buffer, fields: readonly string[]): Delimiter {
  const [header, ...rows] = firstRecords(sample.toString('utf8'));
  if (header === undefined) return ',';
  const scores = DELIMITERS.map((delimiter) => {
    const names = cellsOf(header, delimiter).map(nameOf);
    const width = names.length;
    return {
      delimiter,
      found: fields.filter((field) => names.includes(field)).length,
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

/** The fields of one record, more forgiving than the parser that comes after. */
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

/** The text of the first records, without blank lines; one that the sample cuts off is left out. */
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
  // The header is needed even when it is all there is.
  if (records.length === 0 && text.length > 0) records.push(text.slice(start));
  return records.map((record) => record.replace(/^\uFEFF/, ''));
}
