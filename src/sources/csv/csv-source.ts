/**
 * Reads contacts from a CSV file: one record per row, with the column names as its fields.
 *
 * The read is certified if it ended without an error, the file did not change meanwhile, every row
 * could be read and has the header's width (or belongs to the footer), and the last line is
 * complete. A file cut off in the middle of a row looks like one that merely lacks its last line
 * break, and confusing the two would lose people, so the line break is required. A cut exactly
 * between two rows leaves no trace; the guards protect against that case. Lines after the last row
 * may be a footer.
 */
import { CsvError, parse } from 'csv-parse';
import { Invalid } from '../../domain/errors.ts';
import type { Source, SourceRecord } from '../source.ts';
import {
  brokenRow,
  type FileTally,
  type FileReading,
  type FileSurroundings,
  lineFile,
  untilCut,
} from '../shared/files/line-file.ts';
import {
  type Columns,
  columnsOf,
  fieldFault,
  NAMING_ROWS,
  noHeader,
} from '../shared/record-fields.ts';
import { type CsvOptions, type Delimiter, delimiters, type Encoding } from './options.ts';
import { counted } from '../../domain/values/counted.ts';
import { hasUtf16Pattern, markedEncoding, strictDecoder } from '../shared/files/file-origin.ts';

export function csvSource(options: CsvOptions, surroundings: FileSurroundings): Source {
  return lineFile(options, surroundings, (reading) => {
    const tally: Tally = Object.assign(reading.tally, { nul: false });
    return untilCut(recordsOf({ ...reading, tally, options, headerRow: options.headerRow }), tally);
  });
}

interface Tally extends FileTally {
  /** Whether any byte so far is NUL. Fields are searched for NUL only in that case. */
  nul: boolean;
}

interface Reading extends FileReading {
  tally: Tally;
  options: CsvOptions;
  headerRow: number | undefined;
}

async function* recordsOf(reading: Reading): AsyncGenerator<SourceRecord[]> {
  const { name, tally, fields } = reading;
  let table: ReturnType<typeof createTable> | undefined;
  let isOver = false;
  const toGroup = (rows: readonly Row[]): SourceRecord[] => {
    const group: SourceRecord[] = [];
    for (const [at, row] of rows.entries()) {
      if (row.isFound) continue;
      if (table) table.add(row, group);
      else if (!isSeparatorLine(row.fields)) {
        if (row.fault !== undefined) throw headerRefusal(name, row.fault);
        if (row.fields.some((field) => field.includes('\0'))) {
          const why = 'the header row holds a NUL byte; save the file as UTF-8 text';
          throw new Invalid(`${name}: ${why}`);
        }
        const header = rows.slice(at, at + NAMING_ROWS);
        const naming = header.map(({ line, fields: cells }) => ({ number: line, cells }));
        table = createTable(columnsOf(naming, reading), tally);
      }
    }
    const { stopped } = tally;
    if (!stopped) return group;
    const under = table;
    if (!under) throw headerRefusal(name, stopped.why);
    if (!isOver) group.push(...under.cut(), brokenRow(tally, stopped.where, stopped));
    isOver = true;
    const found = rows.filter((row) => row.isFound);
    return [...group, ...found.flatMap((row) => under.find(row, fields))];
  };
  try {
    for await (const rows of readRows(reading)) yield toGroup(rows);
  } catch (error) {
    yield table?.cut() ?? [];
    throw error;
  }
  if (!table) {
    if (reading.headerRow !== undefined) throw noHeader(reading);
    const why = tally.bytes === 0 ? 'is empty' : 'has no header row';
    throw new Invalid(`${name}: the file ${why}; export it again with column names in line 1`);
  }
  yield table.end();
}

function headerRefusal(name: string, why: string): Invalid {
  return new Invalid(`${name}: the header row ${why}; ${QUOTE_FIX}`);
}

/** Salesforce writes five. */
const MOST_FOOTER_LINES = 20;

/**
 * Makes records of the rows under a header, and recognizes the footer of a report (a total, an
 * author): rows of one cell, the first after a blank line. They are held back, because only the end
 * of the file tells. A file cut off in the first cell of a record looks the same, so without a last
 * line break there is no footer, whatever `finalNewline` states.
 */
function createTable(columns: Columns, tally: Tally) {
  const footer: number[] = [];
  let hasRecords = false;
  const isHeldBack = ({ line, fields, isAfterBlank }: Row): boolean => {
    hasRecords ||= fields.length === columns.width;
    const isPart = hasRecords && columns.width > 1 && fields.length === 1;
    if (!isPart || footer.length === MOST_FOOTER_LINES) return false;
    if (footer.length === 0 && !isAfterBlank) return false;
    footer.push(line);
    return true;
  };
  const wrongWidth = (line: number, count: number): SourceRecord => {
    const quotes = 'put quotes around fields that hold the delimiter or a line break';
    return brokenRow(tally, `line ${line}`, {
      why: `has ${counted(count, 'field')} where the header has ${columns.width}`,
      fix: count > columns.width ? quotes : `${EXCEL_FIX}, and ${quotes}`,
    });
  };
  const toRecord = ({ line, fields, fault: why }: Row): SourceRecord => {
    const where = `line ${line}`;
    if (why !== undefined) return brokenRow(tally, where, { why, fix: QUOTE_FIX });
    if (fields.length !== columns.width) return wrongWidth(line, fields.length);
    for (const field of fields) {
      const fault = fieldFault(field, tally.nul);
      if (fault) return brokenRow(tally, where, fault);
    }
    return { where, value: columns.valueOf(fields) };
  };
  /** Returns the records of the rows held back, if the rest of the file cannot be read. */
  const cut = () => footer.splice(0).map((line) => wrongWidth(line, 1));
  const empty = columns.valueOf(Array.from({ length: columns.width }, () => ''));
  return {
    add(row: Row, group: SourceRecord[]): void {
      if (isHeldBack(row)) return;
      group.push(...cut(), toRecord(row));
    },
    cut,
    find({ line, fields }: Row, asked: readonly string[]): SourceRecord[] {
      const isWhole = fields.length === columns.width && columns.width > 1;
      const isUsable = fields.every((field) => !fieldFault(field, tally.nul));
      const value = columns.valueOf(fields);
      const hasAddress = asked.some((name) => /^\s*[^\s@]+@[^\s@]+\s*$/.test(value[name] ?? ''));
      return isWhole && isUsable && hasAddress ? [{ where: `line ${line}`, value }] : [];
    },
    end(): SourceRecord[] {
      if (!tally.lineEnded) return cut();
      return footer.splice(0).map((line) => ({ where: `line ${line}`, value: { ...empty } }));
    },
  };
}

/** Yields the rows of each chunk. After a quoting error, these are rows that were found again. */
async function* readRows(reading: Reading): AsyncGenerator<Row[]> {
  const { name, chunks, fields, tally, options, headerRow = 1 } = reading;
  let decoder: ReturnType<typeof chunkDecoder> | undefined;
  let parser: ReturnType<typeof findingParser> | undefined;
  const noteStop = (why: string | undefined) => {
    const where = `line ${parser?.line() ?? 1}`;
    if (why !== undefined) tally.stopped = { where, why, fix: QUOTE_FIX };
  };
  try {
    for await (const bytes of chunks) {
      if (!decoder && bytes.subarray(0, 4).equals(Buffer.from('PK\u0003\u0004'))) {
        const what = 'this is an Excel workbook, or another zip archive, and no CSV file';
        throw new Invalid(`${name}: ${what}`, { fix: 'save the sheet as CSV in UTF-8' });
      }
      decoder ??= chunkDecoder(bytes, options.encoding);
      const chunk = decoder.decode(bytes);
      if (!chunk) throw decoder.refusal(name, parser?.line() ?? 1);
      tally.bytes += chunk.length;
      tally.lineEnded = chunk.at(-1) === 0x0a || chunk.at(-1) === 0x0d;
      const text = parser ? chunk : chunk.subarray(startOfLine(chunk, headerRow));
      if (chunk.length > 0 && text.length === 0) throw noHeader(reading);
      parser ??= findingParser(options.delimiter ?? delimiterOf(text, fields), headerRow);
      tally.nul ||= text.includes(0);
      noteStop(await parser.write(text));
      yield parser.take();
    }
    if (parser === undefined || decoder === undefined) return;
    if (!decoder.decode(undefined)) throw decoder.refusal(name, parser.line());
    noteStop(await parser.end());
    yield parser.take();
  } finally {
    parser?.close();
  }
}

const QUOTE_FIX =
  'put quotes around the whole field, double each quote within it, and export the file again';

const EXCEL_FIX =
  'export empty cells at the end, which Excel leaves out: move a column that is always filled there';

const SAMPLE_RECORDS = 50;

/**
 * Returns the delimiter with which a record contains the most requested fields; then the one that
 * splits the most rows into the header's width, then the one with the most columns. Text in quotes
 * never counts. For a file with one column, it is a comma.
 */
function delimiterOf(sample: Buffer, fields: readonly string[]): Delimiter {
  const records = firstRecords(sample.toString('utf8'));
  const [first, ...rows] = records;
  const line = unquote(first ?? '').toLowerCase();
  const stated = delimiters.find((delimiter) => line === `sep=${delimiter}`);
  if (stated !== undefined) return stated;
  if (first === undefined) return ',';
  const countFields = (record: string, delimiter: Delimiter) => {
    const names = new Set(splitUnquoted(record, delimiter).map(unquote));
    return fields.filter((field) => names.has(field)).length;
  };
  const scores = delimiters.map((delimiter) => {
    const width = splitUnquoted(first, delimiter).length;
    return {
      delimiter,
      found: Math.max(...records.map((record) => countFields(record, delimiter))),
      several: width > 1 ? 1 : 0,
      even: rows.filter((row) => splitUnquoted(row, delimiter).length === width).length,
      width,
    };
  });
  const [best] = scores.toSorted(
    (a, b) => b.found - a.found || b.several - a.several || b.even - a.even || b.width - a.width,
  );
  return best?.delimiter ?? ',';
}

/** Returns whether a row is the line `sep=;`, which tells Excel the delimiter. */
function isSeparatorLine([first = '', ...others]: readonly string[]): boolean {
  return /^sep=.?$/i.test(first) && others.every((field) => field === '');
}

/** Returns where a line begins, the first of which is 1; the end if there are fewer lines. */
function startOfLine(text: Buffer, line: number): number {
  const above = new RegExp(`^(?:[^\\r\\n]*(?:\\r\\n?|\\n)){${line - 1}}`);
  return above.exec(text.toString('latin1'))?.[0].length ?? text.length;
}

/** Splits a text outside of quotes, and is more tolerant than the parser that reads the file. */
function splitUnquoted(text: string, ends: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at <= text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '"') isQuoted = !isQuoted;
    if (at < text.length && (isQuoted || !ends.includes(character))) continue;
    parts.push(text.slice(start, at));
    start = at + 1;
  }
  return parts;
}

function unquote(cell: string): string {
  const text = cell.replace(/^"([^]*)"$/, (_, inner: string) => inner.replaceAll('""', '"'));
  return text.trim();
}

function firstRecords(text: string): string[] {
  const lines = splitUnquoted(text.replace(/^\uFEFF/, ''), '\r\n');
  const cut = lines.pop() ?? '';
  const records = lines.filter((line) => line !== '').slice(0, SAMPLE_RECORDS);
  // The header is needed even if the sample holds nothing else.
  return records.length === 0 && cut !== '' ? [cut] : records;
}

/** Creates the decoder to UTF-8 of a file with this beginning; its byte order mark counts first. */
function chunkDecoder(sample: Buffer, encoding: Encoding = 'utf-8') {
  const label = markedEncoding(sample) ?? (encoding === 'utf-16' ? 'utf-16le' : encoding);
  const isUtf8 = label === 'utf-8';
  const isUnmarkedUtf16 = isUtf8 && hasUtf16Pattern(sample);
  const decode = strictDecoder(label);
  return {
    /** Returns the chunk in UTF-8; undefined: it has invalid bytes. End with undefined. */
    decode(chunk: Buffer | undefined): Buffer | undefined {
      const text = isUnmarkedUtf16 ? undefined : decode(chunk);
      if (text === undefined) return undefined;
      return isUtf8 && chunk ? chunk : Buffer.from(text);
    },
    refusal(name: string, line: number): Invalid {
      if (isUnmarkedUtf16) {
        const fix = 'set encoding: utf-16 in the source, or save the file as UTF-8';
        return new Invalid(`${name}: the text is UTF-16`, { fix });
      }
      const fix = isUtf8
        ? 'set encoding: windows-1252 in the source if a Western Windows program wrote it, or save the file as UTF-8'
        : 'set the encoding of the source to the one that the export uses, or save the file as UTF-8';
      const what = isUtf8 ? 'UTF-8' : label.replace(/le|be$/, '').toUpperCase();
      return new Invalid(`${name}: the text is not ${what} (at or soon after line ${line})`, {
        fix,
      });
    },
  };
}

// Converts bytes into rows. csv-parse receives one chunk at a time, so that the reader sets the
// pace. The second parser finds rows again behind one that leaves the borders in doubt.
//
//   a quote …                                                is
//   inside a field that did not begin with one               text of that field
//   that closes a field, and other text follows it …
//     in a row of one line                                   a fault of that row alone
//     in a row of several lines                              the end: what began with the first
//                                                            quote may reach beyond this row
//   that is never closed                                     the end

/** Limits memory: an unclosed quote would turn the rest of the file into one field. */
const RECORD_CHARACTERS = 32 * 1024 * 1024;

interface Row {
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

const isBreak = (byte: number | undefined): boolean => byte === LF || byte === CR;

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
function findingParser(delimiter: Delimiter, first: number) {
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
