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
import { Invalid } from '../../domain/errors.ts';
import type { Source, SourceRecord } from '../source.ts';
import { delimiterOf, isSeparatorLine, startOfLine, chunkDecoder } from './csv-format.ts';
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
} from '../shared/table-columns.ts';
import type { CsvOptions } from './options.ts';
import { findingParser, type Row } from './row-parser.ts';
import { counted } from '../../domain/values/counted.ts';

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
  const { name, tally } = reading;
  const begun: { table?: Table; isOver?: true } = {};
  try {
    for await (const rows of readRows(reading)) yield groupRows(rows, begun, reading);
  } catch (error) {
    yield begun.table?.cut() ?? [];
    throw error;
  }
  if (!begun.table) {
    if (reading.headerRow !== undefined) throw noHeader(reading);
    const why = tally.bytes === 0 ? 'is empty' : 'has no header row';
    throw new Invalid(`${name}: the file ${why}; export it again with column names in line 1`);
  }
  yield begun.table.end();
}

/** Returns the records of rows. `begun` gets the table under its header, `isOver` at a stop. */
function groupRows(
  rows: readonly Row[],
  begun: { table?: Table; isOver?: true },
  reading: Reading,
): SourceRecord[] {
  const { name, tally } = reading;
  const group: SourceRecord[] = [];
  const found = rows.filter(({ isFound }) => isFound);
  for (const row of rows) {
    if (row.isFound) continue;
    if (begun.table) begun.table.add(row, group);
    else if (!isSeparatorLine(row.fields)) {
      if (row.fault !== undefined) throw headerRefusal(name, row.fault);
      if (row.fields.some((field) => field.includes('\0'))) {
        const why = 'the header row holds a NUL byte; save the file as UTF-8 text';
        throw new Invalid(`${name}: ${why}`);
      }
      const header = rows.slice(rows.indexOf(row)).slice(0, NAMING_ROWS);
      const naming = header.map(({ line, fields: cells }) => ({ number: line, cells }));
      begun.table = createTable(columnsOf(naming, reading), tally);
    }
  }
  const { stopped } = tally;
  if (!stopped) return group;
  const { table } = begun;
  if (table) {
    const ending = begun.isOver ? [] : [...table.cut(), brokenRow(tally, stopped.where, stopped)];
    begun.isOver = true;
    return [...group, ...ending, ...found.flatMap((row) => table.find(row, reading.fields))];
  }
  throw headerRefusal(name, stopped.why);
}

function headerRefusal(name: string, why: string): Invalid {
  return new Invalid(`${name}: the header row ${why}; ${QUOTE_FIX}`);
}

type Table = ReturnType<typeof createTable>;

function createTable(columns: Columns, tally: Tally) {
  const footer = createFooter(columns.width);
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
  const cut = () => footer.release().map((line) => wrongWidth(line, 1));
  const empty = columns.valueOf(Array.from({ length: columns.width }, () => ''));
  return {
    /** Adds a row. Puts the records that are certain now into `group`. */
    add(row: Row, group: SourceRecord[]): void {
      if (footer.takes(row)) return;
      group.push(...cut(), toRecord(row));
    },
    cut,
    /** Returns the record of a row that was found again, if it is certain to be one. */
    find({ line, fields }: Row, asked: readonly string[]): SourceRecord[] {
      const isWhole = fields.length === columns.width && columns.width > 1;
      const isUsable = fields.every((field) => !fieldFault(field, tally.nul));
      const value = columns.valueOf(fields);
      const hasAddress = asked.some((name) => /^\s*[^\s@]+@[^\s@]+\s*$/.test(value[name] ?? ''));
      return isWhole && isUsable && hasAddress ? [{ where: `line ${line}`, value }] : [];
    },
    /** Returns the records of the rows held back at the end of the file. */
    end(): SourceRecord[] {
      if (!tally.lineEnded) return cut();
      return footer.release().map((line) => ({ where: `line ${line}`, value: { ...empty } }));
    },
  };
}

/** Yields the rows of each chunk. After a quoting error, these are rows that were found again. */
async function* readRows(reading: Reading): AsyncGenerator<Row[]> {
  const { name, chunks, fields, tally, options, headerRow = 1 } = reading;
  let decoder: ReturnType<typeof chunkDecoder> | undefined;
  let parser: ReturnType<typeof findingParser> | undefined;
  const stoppedAt = (why: string) => ({
    where: `line ${parser?.line() ?? 1}`,
    why,
    fix: QUOTE_FIX,
  });
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
      const why = await parser.write(text);
      if (why !== undefined) tally.stopped = stoppedAt(why);
      yield parser.take();
    }
    if (parser === undefined || decoder === undefined) return;
    if (!decoder.decode(undefined)) throw decoder.refusal(name, parser.line());
    const why = await parser.end();
    if (why !== undefined) tally.stopped = stoppedAt(why);
    yield parser.take();
  } finally {
    parser?.close();
  }
}

const QUOTE_FIX =
  'put quotes around the whole field, double each quote within it, and export the file again';

const EXCEL_FIX =
  'export empty cells at the end, which Excel leaves out: move a column that is always filled there';

/** Salesforce writes five. */
const MOST_FOOTER_LINES = 20;

/**
 * Recognizes the footer of a report: a total, a copyright, the name of its author. Each of its
 * lines is a row of one cell, and the first one follows a blank line. Because they can be
 * recognized only at the end of the file, they are held back until then. A file that was cut off in
 * the first cell of a record looks the same. So without a last line break there is no footer,
 * whatever `finalNewline` states. `width` is that of the header.
 */
function createFooter(width: number) {
  const lines: number[] = [];
  let hasRecords = false;
  return {
    /** Returns whether the row is held back. If not, the rows held before it are no footer. */
    takes({ line, fields, isAfterBlank }: Row): boolean {
      hasRecords ||= fields.length === width;
      const isPart = hasRecords && width > 1 && fields.length === 1;
      if (!isPart || lines.length === MOST_FOOTER_LINES) return false;
      if (lines.length === 0 && !isAfterBlank) return false;
      lines.push(line);
      return true;
    },
    release: () => lines.splice(0),
  };
}
