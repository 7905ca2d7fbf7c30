/**
 * Reads contacts from a CSV file: one record per row, with the column names as its fields.
 *
 * The read is certified if it ended without an error, the file did not change meanwhile, every row
 * could be read and has the header's width (or belongs to the footer), and the last line is
 * complete. A file cut off in the middle of a row looks like one that merely lacks its last line
 * break, and confusing the two would lose people, so the line break is required. A cut exactly
 * between two rows leaves no trace; the guards protect against that case.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Source, SourceRecord } from '../source.ts';
import { delimiterOf, isSeparatorLine, startOfLine } from './csv-header.ts';
import { footerOf } from './footer.ts';
import { brokenRow, type FileTally } from '../shared/files/file-tally.ts';
import { type FileReading, type FileSurroundings, lineFile } from '../shared/files/line-file.ts';
import { untilCut } from '../shared/files/record-batches.ts';
import {
  type Columns,
  columnsOf,
  fieldFault,
  NAMING_ROWS,
  noHeader,
} from '../shared/table-columns.ts';
import type { CsvOptions } from './options.ts';
import { findingParser, type FindingParser } from './find-again.ts';
import type { Row } from './row-parser.ts';
import { chunkDecoder, type ChunkDecoder } from './text-encoding.ts';
import { counted } from '../../domain/values/counted.ts';

/** Returns the source of a CSV file. */
export function csvSource(options: CsvOptions, surroundings: FileSurroundings): Source {
  return lineFile(options, surroundings, (reading) => {
    const tally: Tally = Object.assign(reading.tally, { nul: false });
    return untilCut(recordsOf({ ...reading, tally, options, headerRow: options.headerRow }), tally);
  });
}

/** The facts gathered during a read, for its certificate. */
interface Tally extends FileTally {
  /** Whether any byte so far is NUL. Fields are searched for NUL only in that case. */
  nul: boolean;
}

interface Reading extends FileReading {
  tally: Tally;
  options: CsvOptions;
  headerRow: number | undefined;
}

/** Yields one group of records for each chunk of the file. */
async function* recordsOf(reading: Reading): AsyncGenerator<SourceRecord[]> {
  const { name, tally } = reading;
  const begun: Begun = {};
  try {
    for await (const rows of rowsOf(reading)) yield groupOf(rows, begun, reading);
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

/** Holds the table of the file after its header has been read. */
interface Begun {
  table?: Table;
  /** Whether the records up to the row that stopped the reading have been yielded. */
  isOver?: true;
}

function groupOf(
  rows: ReturnType<FindingParser['take']>,
  begun: Begun,
  reading: Reading,
): SourceRecord[] {
  const { name, tally } = reading;
  const group: SourceRecord[] = [];
  const found = rows.filter(({ isFound }) => isFound);
  for (const row of rows) {
    if (row.isFound) continue;
    if (begun.table) begun.table.add(row, group);
    else if (!isSeparatorLine(row.fields)) {
      const header = rows.slice(rows.indexOf(row)).slice(0, NAMING_ROWS);
      begun.table = tableOf(columnsIn(header, reading), tally);
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

/** The rows under a header. */
interface Table {
  /** Adds a row. Puts the records that are certain now into `group`. */
  add(row: Row, group: SourceRecord[]): void;
  /** Returns the record of a row that was found again, if it is certain to be one. */
  find(row: Row, asked: readonly string[]): SourceRecord[];
  /** Returns the records of the rows held back, if the rest of the file cannot be read. */
  cut(): SourceRecord[];
  /** Returns the records of the rows held back at the end of the file. */
  end(): SourceRecord[];
}

function tableOf(columns: Columns, tally: Tally): Table {
  const footer = footerOf(columns.width);
  const cut = () =>
    footer.release().map(({ line }) => wrongWidth({ line, count: 1 }, columns, tally));
  const empty = columns.valueOf(Array.from({ length: columns.width }, () => ''));
  return {
    add(row, group) {
      if (footer.takes(row)) return;
      if (footer.isHolding()) group.push(...cut());
      group.push(recordOf(row, columns, tally));
    },
    cut,
    find({ line, fields }, asked) {
      const isWhole = fields.length === columns.width && columns.width > 1;
      const isUsable = fields.every((field) => !fieldFault(field, tally.nul));
      const value = columns.valueOf(fields);
      const hasAddress = asked.some((name) => /^\s*[^\s@]+@[^\s@]+\s*$/.test(value[name] ?? ''));
      return isWhole && isUsable && hasAddress ? [{ where: `line ${line}`, value }] : [];
    },
    end() {
      if (!tally.lineEnded) return cut();
      return footer.release().map(({ line }) => ({ where: `line ${line}`, value: { ...empty } }));
    },
  };
}

function columnsIn(rows: readonly Row[], reading: Reading): Columns {
  const [{ fault, fields } = { fault: undefined, fields: [] }] = rows;
  if (fault !== undefined) throw headerRefusal(reading.name, fault);
  if (fields.some((field) => field.includes('\0'))) {
    const why = 'the header row holds a NUL byte; save the file as UTF-8 text';
    throw new Invalid(`${reading.name}: ${why}`);
  }
  const naming = rows.map(({ line, fields: cells }) => ({ number: line, cells }));
  return columnsOf(naming, reading);
}

/**
 * Yields the rows of each chunk. After a quoting error, these are rows that were found again.
 */
async function* rowsOf(reading: Reading): AsyncGenerator<ReturnType<FindingParser['take']>> {
  const { name, chunks, fields, tally, options, headerRow = 1 } = reading;
  let decoder: ChunkDecoder | undefined;
  let parser: FindingParser | undefined;
  try {
    for await (const bytes of chunks) {
      if (!decoder) refuseArchive(bytes, name);
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
      if (why !== undefined) tally.stopped = stoppedAt(parser, why);
      yield parser.take();
    }
    if (parser === undefined || decoder === undefined) return;
    if (!decoder.decode(undefined)) throw decoder.refusal(name, parser.line());
    const why = await parser.end();
    if (why !== undefined) tally.stopped = stoppedAt(parser, why);
    yield parser.take();
  } finally {
    parser?.close();
  }
}

/** Throws Invalid if a file begins like a zip archive, as workbooks do. */
function refuseArchive(bytes: Buffer, name: string): void {
  if (!bytes.subarray(0, 4).equals(Buffer.from('PK\u0003\u0004'))) return;
  throw new Invalid(`${name}: this is an Excel workbook, or another zip archive, and no CSV file`, {
    fix: 'save the sheet as CSV in UTF-8',
  });
}

const QUOTE_FIX =
  'put quotes around the whole field, double each quote within it, and export the file again';

const EXCEL_FIX =
  'export empty cells at the end, which Excel leaves out: move a column that is always filled there';

function stoppedAt(parser: FindingParser, why: string): NonNullable<Tally['stopped']> {
  return { where: `line ${parser.line()}`, why, fix: QUOTE_FIX };
}

function recordOf({ line, fields, fault: why }: Row, columns: Columns, tally: Tally): SourceRecord {
  const where = `line ${line}`;
  if (why !== undefined) return brokenRow(tally, where, { why, fix: QUOTE_FIX });
  if (fields.length !== columns.width) {
    return wrongWidth({ line, count: fields.length }, columns, tally);
  }
  for (const field of fields) {
    const fault = fieldFault(field, tally.nul);
    if (fault) return brokenRow(tally, where, fault);
  }
  return { where, value: columns.valueOf(fields) };
}

function wrongWidth(
  { line, count }: { line: number; count: number },
  columns: Columns,
  tally: Tally,
): SourceRecord {
  const found = counted(count, 'field');
  const quotes = 'put quotes around fields that hold the delimiter or a line break';
  return brokenRow(tally, `line ${line}`, {
    why: `has ${found} where the header has ${columns.width}`,
    fix: count > columns.width ? quotes : `${EXCEL_FIX}, and ${quotes}`,
  });
}
