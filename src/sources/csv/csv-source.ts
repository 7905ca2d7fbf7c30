/**
 * Reads contacts from a CSV file: one record per row, with the column names as its fields.
 *
 * The read is certified if it ended without an error, the file did not change meanwhile, every row
 * could be read and has the header's width, and the last line is complete. A file cut off in the
 * middle of a row looks like one that merely lacks its last line break, and confusing the two would
 * lose people, so the line break is required. A cut exactly between two rows leaves no trace; the
 * guards protect against that case.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Source, SourceRecord } from '../source.ts';
import { type Columns, columnsOf, delimiterOf, isSeparatorLine } from './csv-header.ts';
import {
  type FileReading,
  type FileSurroundings,
  type FileTally,
  lineFile,
} from '../shared/files/line-file.ts';
import type { CsvOptions } from './options.ts';
import { type Row, rowParser, type RowParser } from './row-parser.ts';
import { chunkDecoder, type ChunkDecoder } from './text-encoding.ts';

const BATCH_RECORDS = 500;
const BATCH_BYTES = 4 * 1024 * 1024;
const FIELD_BYTES = 1024 * 1024;

/** Returns the source of a CSV file. */
export function csvSource(options: CsvOptions, surroundings: FileSurroundings): Source {
  return lineFile(options, surroundings, (reading) => {
    const tally: Tally = Object.assign(reading.tally, { nul: false });
    return untilCut(recordsOf({ ...reading, tally, options }), tally);
  });
}

/** Yields what was read before a failure, then throws. */
async function* untilCut(
  groups: AsyncIterable<SourceRecord[]>,
  tally: Tally,
): AsyncGenerator<SourceRecord[], void> {
  const failures: unknown[] = [];
  async function* quietly() {
    try {
      yield* groups;
    } catch (error) {
      failures.push(error);
    }
  }
  yield* batchesOf(quietly(), tally);
  if (failures.length > 0) throw failures[0];
}

/** The facts gathered during a read, for its certificate. */
interface Tally extends FileTally {
  /** Whether any byte so far is NUL. Fields are searched for NUL only in that case. */
  nul: boolean;
}

interface Reading extends FileReading {
  tally: Tally;
  options: CsvOptions;
}

/** Yields one group of records for each chunk of the file. */
async function* recordsOf(reading: Reading): AsyncGenerator<SourceRecord[]> {
  let columns: Columns | undefined;
  for await (const rows of rowsOf(reading)) {
    const group: SourceRecord[] = [];
    for (const row of rows) {
      if (columns === undefined && isSeparatorLine(row.fields)) continue;
      if (columns === undefined) columns = columnsOf(row.fields, reading);
      else group.push(recordOf(row, columns, reading.tally));
    }
    const { stopped } = reading.tally;
    if (stopped) {
      if (columns === undefined) {
        throw new Invalid(`${reading.name}: the header row ${stopped.why}; ${QUOTE_FIX}`);
      }
      group.push(broken(reading.tally, stopped.where, stopped));
    }
    yield group;
  }
  if (columns === undefined) {
    const why = reading.tally.bytes === 0 ? 'is empty' : 'has no header row';
    throw new Invalid(
      `${reading.name}: the file ${why}; export it again with column names in line 1`,
    );
  }
}

/**
 * Yields the rows of each chunk, until the end or until a quoting error makes the rest unreliable.
 */
async function* rowsOf(reading: Reading): AsyncGenerator<Row[]> {
  const { name, chunks, fields, tally, options } = reading;
  let decoder: ChunkDecoder | undefined;
  let parser: RowParser | undefined;
  try {
    for await (const bytes of chunks) {
      if (!decoder) refuseArchive(bytes, name);
      decoder ??= chunkDecoder(bytes, options.encoding);
      const chunk = decoder.decode(bytes);
      if (!chunk) throw decoder.refusal(name, parser?.line() ?? 1);
      parser ??= rowParser(options.delimiter ?? delimiterOf(chunk, fields));
      tally.bytes += chunk.length;
      tally.lineEnded = chunk.at(-1) === 0x0a || chunk.at(-1) === 0x0d;
      tally.nul ||= chunk.includes(0);
      const why = await parser.write(chunk);
      if (why !== undefined) tally.stopped = stoppedAt(parser, why);
      yield parser.take();
      if (tally.stopped) return;
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

function stoppedAt(parser: RowParser, why: string): NonNullable<Tally['stopped']> {
  return { where: `line ${parser.line()}`, why, fix: QUOTE_FIX };
}

function recordOf({ line, fields }: Row, columns: Columns, tally: Tally): SourceRecord {
  const where = `line ${line}`;
  if (fields.length !== columns.width) {
    const found = fields.length === 1 ? '1 field' : `${fields.length} fields`;
    return broken(tally, where, {
      why: `has ${found} where the header has ${columns.width}`,
      fix: 'put quotes around fields that hold the delimiter or a line break',
    });
  }
  for (const field of fields) {
    // A character takes at most three bytes, so the exact count is taken only if it could matter.
    if (field.length > FIELD_BYTES / 3 && Buffer.byteLength(field) > FIELD_BYTES) {
      return broken(tally, where, {
        why: 'holds a field above 1 MiB',
        fix: 'shorten it, or leave the column out of the export',
      });
    }
    if (tally.nul && field.includes('\0')) {
      return broken(tally, where, { why: 'holds a NUL byte', fix: 'remove it from the record' });
    }
  }
  return { where, value: columns.valueOf(fields) };
}

function broken(tally: Tally, where: string, { why, fix }: { why: string; fix: string }) {
  tally.broken += 1;
  tally.firstBroken ??= where;
  return { where, broken: why, fix };
}

/**
 * Regroups records by number and by bytes, because hundreds of rows of a megabyte each must not be
 * in memory at the same time.
 */
async function* batchesOf(
  groups: AsyncIterable<SourceRecord[]>,
  tally: Tally,
): AsyncGenerator<SourceRecord[], void> {
  let held: SourceRecord[] = [];
  let heldSince = 0;
  for await (const group of groups) {
    for (const record of group) {
      held.push(record);
      if (held.length < BATCH_RECORDS) continue;
      yield held;
      held = [];
      heldSince = tally.bytes;
    }
    if (held.length === 0 || tally.bytes - heldSince < BATCH_BYTES) continue;
    yield held;
    held = [];
    heldSince = tally.bytes;
  }
  if (held.length > 0) yield held;
}
