/**
 * Converts bytes into rows. csv-parse receives one chunk at a time, so that the reader sets the
 * pace. The second parser, below, finds rows again behind one that leaves the borders in doubt.
 *
 *   a quote …                                                is
 *   inside a field that did not begin with one               text of that field
 *   that closes a field, and other text follows it …
 *     in a row of one line                                   a fault of that row alone
 *     in a row of several lines                              the end: what began with the first
 *                                                            quote may reach beyond this row
 *   that is never closed                                     the end
 */
import { CsvError, parse } from 'csv-parse';
import type { Delimiter } from './options.ts';

/** Limits memory: an unclosed quote would turn the rest of the file into one field. */
const RECORD_CHARACTERS = 32 * 1024 * 1024;

export interface Row {
  line: number;
  fields: string[];
  isAfterBlank: boolean;
  /** Why its fields are not certain, although it ends where it seems to. */
  fault?: string;
  end: number;
  /** Whether it holds no quote. Only a wary parser tells. */
  isPlain?: boolean;
  /** Set if it was found again, behind one that leaves the borders in doubt. */
  isFound?: true;
}

/** Creates a parser for one file, or, if wary, for the rest of one that begins on a line. */
function rowParser(delimiter: Delimiter, first: number, isWary = false) {
  const rows: Row[] = [];
  let stopped: { why: string; line: number } | undefined;
  const lines = lineCount(first);
  const bytes = recentBytes();
  const parser = parse({
    delimiter,
    bom: true,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: RECORD_CHARACTERS,
    on_record: (fields: string[], info) => {
      if (stopped) return null;
      // The parser keeps the quotes of a field with text after its closing quote.
      const isSuspect = fields.some((field) => field.startsWith('"'));
      const text = bytes.until(info.bytes, isSuspect || isWary);
      const isPlain = isWary && !text.includes('"');
      const place = { ...lines.placeOf(fields, info), end: info.bytes, isPlain };
      if (!isSuspect || isWellQuoted(text, delimiter)) rows.push({ ...place, fields });
      else if (!/[\r\n]/.test(text)) rows.push({ ...place, fields, fault: MISPLACED_QUOTE });
      else stopped = { why: MISPLACED_QUOTE, line: place.line };
      return null;
    },
  });
  const feed = async (call: (done: (error?: Error | null) => void) => void) => {
    const why = await new Promise<string | undefined>((resolve, reject) => {
      call((error) => {
        if (!error) resolve(undefined);
        else if (error instanceof CsvError) resolve(reasons[error.code] ?? MISPLACED_QUOTE);
        else reject(error);
      });
    });
    return stopped?.why ?? why;
  };
  const line = () => stopped?.line ?? lines.next(parser.info);
  // The callback of each call also receives its errors, so this listener only prevents a crash.
  parser.on('error', () => {});
  return {
    write: (chunk: Buffer) => {
      bytes.add(chunk);
      return feed((done) => parser.write(chunk, done));
    },
    end: () => feed((done) => parser.end(done)),
    take: () => rows.splice(0),
    line,
    /** Returns what follows the faulty row's first line, once the text cannot be read on. */
    rest: () => ({ ...bytes.afterLine(stopped !== undefined), line: line() + 1 }),
    close: () => parser.destroy(),
  };
}

/** The reasons in our words: the library's quote the text, and may err in the line. */
const reasons: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'opens a quote that is never closed',
  CSV_MAX_RECORD_SIZE:
    'goes on for more than 32 MiB, most likely after a quote that is never closed',
};

const MISPLACED_QUOTE = 'holds a quote where none may stand';

function recentBytes() {
  let chunks: Buffer[] = [];
  let start = 0;
  let before = 0;
  let last = 0;
  const whole = (): Buffer => {
    const [only] = chunks;
    const all = chunks.length === 1 && only ? only : Buffer.concat(chunks);
    chunks = [all];
    return all;
  };
  return {
    add(chunk: Buffer): void {
      while (chunks[0] && start + chunks[0].length <= last) start += chunks.shift()?.length ?? 0;
      chunks.push(chunk);
    },
    /** Moves the end of the last row. Returns the text of that row without its line break. */
    until(end: number, isWanted: boolean): string {
      before = last;
      last = end;
      if (!isWanted) return '';
      const text = whole()
        .subarray(before - start, end - start)
        .toString('utf8');
      return text.replace(/^[\uFEFF\r\n]+|[\r\n]+$/g, '');
    },
    /** Returns what follows a row's first line; up to `doubtful` it may belong to a field. */
    afterLine(isLast: boolean): { text: Buffer; doubtful: number } {
      const from = (isLast ? before : last) - start;
      const text = whole().subarray(from);
      let at = 0;
      while (isBreak(text[at])) at += 1;
      while (at < text.length && !isBreak(text[at])) at += 1;
      at += text[at] === CR && text[at + 1] === LF ? 2 : 1;
      return { text: text.subarray(at), doubtful: isLast ? last - before - at : 0 };
    },
  };
}

const LF = 0x0a;
const CR = 0x0d;

function isBreak(byte: number | undefined): boolean {
  return byte === LF || byte === CR;
}

/** Returns whether every field that begins with a quote ends with the quote that closes it. */
function isWellQuoted(row: string, delimiter: Delimiter): boolean {
  let at = 0;
  while (at < row.length) {
    if (row[at] === '"') {
      at = row.indexOf('"', at + 1);
      while (at !== -1 && row[at + 1] === '"') at = row.indexOf('"', at + 2);
      at += 1;
      if (at === 0 || (at < row.length && row[at] !== delimiter)) return false;
    } else at = row.indexOf(delimiter, at);
    if (at === -1) return true;
    at += 1;
  }
  return true;
}

interface Counts {
  lines: number;
  empty_lines: number;
}

/**
 * Counts physical lines. csv-parse counts a CRLF within quotes twice, so its count only tells rows
 * of one line (nearly all); in the others, line breaks are counted here.
 */
function lineCount(first: number) {
  let line = first;
  let seen: Counts = { lines: 0, empty_lines: 0 };
  const next = (info: { empty_lines: number }) => line + info.empty_lines - seen.empty_lines;
  return {
    next,
    placeOf(fields: readonly string[], info: Counts) {
      const start = next(info);
      const isAfterBlank = start > line;
      const isOneLine = info.lines - seen.lines === start - line + 1;
      const breaks = isOneLine ? [] : fields.flatMap((field) => field.match(/\r\n|\n|\r/g) ?? []);
      line = start + 1 + breaks.length;
      seen = { lines: info.lines, empty_lines: info.empty_lines };
      return { line: start, isAfterBlank };
    },
  };
}

const MOST_STARTS = 100;

/**
 * Creates a parser for one file, from the line `first` on; `write` and `end` return only the first
 * reason. It reads on after a row that leaves the borders of the following rows in doubt, as far as
 * a row can be found again for certain. The row opened a quote. If that one is a stray character,
 * rows follow from the next line on; if it opened a field, the next lines are text of that field,
 * and may even be rows that somebody pasted into it. So a row counts if all of this is true:
 *
 *   - read from the line after the faulty row, it is a row of one line outside of all quotes
 *   - it holds no quote itself
 *   - it lies behind the quote that the parser took for the closing one, if there was any: if there
 *     was none, the first quote opened no field
 *
 * The caller also demands the header's width and an address. Nothing certifies such a reading, so
 * that only opt-outs follow from it.
 */
export function findingParser(delimiter: Delimiter, first: number) {
  let parser = rowParser(delimiter, first);
  const rows: Row[] = [];
  let stoppedOn: number | undefined;
  let doubtful = 0;
  let starts = 0;
  const collect = (): void => {
    for (const row of parser.take()) {
      if (stoppedOn === undefined) rows.push(row);
      else if (row.isPlain && row.end > doubtful) rows.push({ ...row, isFound: true });
    }
  };
  async function read(call: () => Promise<string | undefined>, isEnd: boolean) {
    if (starts > MOST_STARTS) return undefined;
    let why = await call();
    collect();
    const firstReason = stoppedOn === undefined ? why : undefined;
    while (why !== undefined) {
      stoppedOn ??= parser.line();
      const rest = parser.rest();
      parser.close();
      starts += 1;
      if (starts > MOST_STARTS) break;
      doubtful = rest.doubtful;
      parser = rowParser(delimiter, rest.line, true);
      why = await parser.write(rest.text);
      collect();
      if (why !== undefined || !isEnd) continue;
      why = await parser.end();
      collect();
    }
    return firstReason;
  }
  return {
    write: (chunk: Buffer) => read(() => parser.write(chunk), false),
    end: () => read(() => parser.end(), true),
    take: () => rows.splice(0),
    line: () => stoppedOn ?? parser.line(),
    close: () => parser.close(),
  };
}
