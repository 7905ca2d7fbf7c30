/**
 * Converts bytes into rows. csv-parse receives one chunk at a time, so that the reader sets the
 * pace.
 */
import { CsvError, type InfoRecord, parse } from 'csv-parse';
import type { Delimiter } from './csv-header.ts';

/**
 * Limits memory use, not the size of a field. Without it, an unclosed quote would turn the rest of
 * the file into one field.
 */
const RECORD_CHARACTERS = 32 * 1024 * 1024;

/** One row of the file. */
export interface Row {
  /** The physical line on which the row begins. The first line of the file is 1. */
  line: number;
  fields: string[];
  /** Whether a blank line precedes it. */
  isAfterBlank: boolean;
}

/** A parser that the caller feeds chunk by chunk. */
export interface RowParser {
  /**
   * Parses a chunk. If the text cannot be read any further, returns the reason; `line()` then
   * returns the line of the faulty row.
   */
  write(chunk: Buffer): Promise<string | undefined>;
  /** Ends the text. Returns the same as `write`. */
  end(): Promise<string | undefined>;
  /** Returns the rows completed since the last call. */
  take(): Row[];
  /** Returns the line on which the incomplete row begins. */
  line(): number;
  close(): void;
}

/** Creates a parser for one file. */
export function rowParser(delimiter: Delimiter): RowParser {
  let rows: Row[] = [];
  const lines = lineCount();
  const parser = parse({
    delimiter,
    bom: true,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: RECORD_CHARACTERS,
    on_record: (fields: string[], info) => {
      rows.push({ ...lines.placeOf(fields, info), fields });
      return null;
    },
  });
  // The callback of each call also receives its errors, so this listener only prevents a crash.
  parser.on('error', () => {});
  return {
    write: (chunk) => settle((done) => parser.write(chunk, done)),
    end: () => settle((done) => parser.end(done)),
    take: () => {
      const taken = rows;
      rows = [];
      return taken;
    },
    line: () => lines.next(parser.info),
    close: () => parser.destroy(),
  };
}

type Done = (error?: Error | null) => void;

function settle(call: (done: Done) => void): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    call((error) => {
      if (!error) resolve(undefined);
      else if (error instanceof CsvError) resolve(reasonOf(error));
      else reject(error);
    });
  });
}

/**
 * Returns the reason in this project's words. The library's messages quote the text, and the lines
 * that they name may be wrong.
 */
function reasonOf({ code }: CsvError): string {
  if (code === 'CSV_QUOTE_NOT_CLOSED') return 'opens a quote that is never closed';
  if (code === 'CSV_MAX_RECORD_SIZE') {
    return 'goes on for more than 32 MiB, most likely after a quote that is never closed';
  }
  return 'holds a quote where none may stand';
}

type Counts = Pick<InfoRecord, 'lines' | 'empty_lines'>;

/**
 * Counts physical lines. csv-parse counts a CRLF within quotes twice, so its count serves only to
 * recognize rows of one line (nearly all rows). In the other rows, the line breaks are counted
 * here.
 */
function lineCount() {
  let line = 1;
  let seen: Counts = { lines: 0, empty_lines: 0 };
  const next = (info: Pick<Counts, 'empty_lines'>) => line + info.empty_lines - seen.empty_lines;
  return {
    next,
    placeOf(fields: readonly string[], info: Counts): Omit<Row, 'fields'> {
      const start = next(info);
      const isAfterBlank = start > line;
      const oneLine = info.lines - seen.lines === start - line + 1;
      line = start + 1 + (oneLine ? 0 : breaksIn(fields));
      seen = { lines: info.lines, empty_lines: info.empty_lines };
      return { line: start, isAfterBlank };
    },
  };
}

function breaksIn(fields: readonly string[]): number {
  return fields.reduce((sum, field) => sum + (field.match(/\r\n|\n|\r/g)?.length ?? 0), 0);
}
