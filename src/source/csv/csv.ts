/**
 * A CSV file as a source of contacts: one record a row, the column names as its fields.
 *
 * The reading is certified when it ended without error, the file is the same before and
 * after, every row could be read and has the header's width, and the last line is complete. A
 * file cut in mid-row looks like one that merely lacks its last line break, and taking the one for
 * the other would lose people: so the line break is demanded. A cut exactly between two rows leaves
 * no trace; the guards stand for that.
 */
import type { FileHandle } from 'node:fs/promises';
import type { Clock } from '../../model/clock.ts';
import { Invalid } from '../../model/errors.ts';
import type { Certificate, Source, SourceRecord } from '../source.ts';
import { type Columns, columnsOf } from './columns.ts';
import { delimiterOf } from './dialect.ts';
import { assertNotUtf16, utf8Check } from './encoding.ts';
import { chunksOf, opened } from '../file.ts';
import type { CsvOptions } from './options.ts';
import { type Row, rowParser, type RowParser } from './rows.ts';
import { type FileState, sameState, settled, stateNow, stateOf } from '../state.ts';

const BATCH_RECORDS = 500;
const BATCH_BYTES = 4 * 1024 * 1024;
const FIELD_BYTES = 1024 * 1024;

/** Reads `path` anew each time. Waits, at most a minute, for a file that is still being written. */
export function csvSource({ path }: CsvOptions, { clock }: { clock: Clock }): Source {
  let latest: FileState | undefined;
  return {
    async *read({ fields, signal }) {
      const before = await settled(path, { clock, signal });
      latest = before;
      const handle = await opened(path);
      const tally: Tally = { bytes: 0, lineEnded: true, nul: false, broken: 0 };
      try {
        yield* batchesOf(recordsOf(handle, { path, fields, signal, tally }), tally);
        return certificateOf(tally, {
          before,
          after: [await stateOf(handle), await stateOf(path)],
        });
      } finally {
        await handle.close();
      }
    },
    still(reading) {
      const isLatest = latest !== undefined && readingOf(latest) === reading;
      return isLatest && sameState(stateNow(path), latest);
    },
  };
}

/** A file of the same size and time is the same reading, wherever it lies. */
function readingOf({ size, mtimeMs }: FileState): string {
  return `${size}-${mtimeMs}`;
}

/** What a reading has seen so far, and its certificate rests on. */
interface Tally {
  bytes: number;
  /** Whether the last byte read is a line break. */
  lineEnded: boolean;
  /** Whether any byte so far is NUL: only then are fields searched for it. */
  nul: boolean;
  broken: number;
  firstBroken?: string;
  /** Set when the rest of the file was given up. */
  stopped?: { where: string; why: string };
}

interface Reading {
  path: string;
  fields: readonly string[];
  signal: AbortSignal;
  tally: Tally;
}

/** One group of records for each chunk of the file. */
async function* recordsOf(handle: FileHandle, reading: Reading): AsyncGenerator<SourceRecord[]> {
  let columns: Columns | undefined;
  for await (const rows of rowsOf(handle, reading)) {
    const group: SourceRecord[] = [];
    for (const row of rows) {
      if (columns === undefined) columns = columnsOf(row.fields, reading);
      else group.push(recordOf(row, columns, reading.tally));
    }
    const { stopped } = reading.tally;
    if (stopped) {
      if (columns === undefined) {
        throw new Invalid(`${reading.path}: the header row ${stopped.why}; ${QUOTE_FIX}`);
      }
      group.push(broken(reading.tally, stopped.where, { why: stopped.why, fix: QUOTE_FIX }));
    }
    yield group;
  }
  if (columns === undefined) {
    throw new Invalid(
      `${reading.path}: the file has no header row; export it again with column names in line 1`,
    );
  }
}

/** The rows of each chunk, until the end or a quote after which nothing can be trusted. */
async function* rowsOf(handle: FileHandle, reading: Reading): AsyncGenerator<Row[]> {
  const { path, fields, signal, tally } = reading;
  const checkUtf8 = utf8Check();
  let parser: RowParser | undefined;
  try {
    for await (const chunk of chunksOf(handle, { path, signal })) {
      if (parser === undefined) assertNotUtf16(chunk, path);
      if (!checkUtf8(chunk)) throw notUtf8(path, parser?.line() ?? 1);
      parser ??= rowParser(delimiterOf(chunk, fields));
      tally.bytes += chunk.length;
      tally.lineEnded = chunk.at(-1) === 0x0a || chunk.at(-1) === 0x0d;
      tally.nul ||= chunk.includes(0);
      const why = await parser.write(chunk);
      if (why !== undefined) tally.stopped = { where: `line ${parser.line()}`, why };
      yield parser.take();
      if (tally.stopped) return;
    }
    if (parser === undefined) return;
    if (!checkUtf8(undefined)) throw notUtf8(path, parser.line());
    const why = await parser.end();
    if (why !== undefined) tally.stopped = { where: `line ${parser.line()}`, why };
    yield parser.take();
  } finally {
    parser?.close();
  }
}

function notUtf8(path: string, line: number): Invalid {
  return new Invalid(
    `${path}: the text is not UTF-8 (at or soon after line ${line}); save the file as UTF-8`,
  );
}

const QUOTE_FIX =
  'put quotes around the whole field, double each quote within it, and export the file again';

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
    // A character is at most three bytes: the exact count is only taken where it may matter.
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

/** Regroups by records, and by bytes: rows of a megabyte must not be held by the hundred. */
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

function certificateOf(
  tally: Tally,
  { before, after }: { before: FileState; after: (FileState | undefined)[] },
): Certificate {
  const faults: { why: string; fix: string }[] = [];
  const { stopped, firstBroken } = tally;
  const count = tally.broken - (stopped ? 1 : 0);
  if (stopped) {
    faults.push({ why: `reading stopped: ${stopped.where} ${stopped.why}`, fix: QUOTE_FIX });
  }
  if (after.some((state) => !sameState(state, before))) {
    faults.push({ why: 'the file changed while it was read', fix: 'read it again' });
  } else if (!stopped && tally.bytes !== before.size) {
    const why = `${tally.bytes} of ${before.size} bytes were read`;
    faults.push({ why, fix: 'read it again' });
  }
  if (count > 0) {
    const rows = count === 1 ? '1 row' : `${count} rows`;
    const why = `${rows} cannot be read, the first at ${firstBroken}`;
    faults.push({ why, fix: 'mend those rows and export the file again' });
  }
  if (!stopped && !tally.lineEnded) {
    faults.push({
      why: 'the last line has no line break, so the file may be cut off',
      fix: 'end the file with a line break',
    });
  }
  const reading = readingOf(before);
  if (faults.length === 0) return { complete: true, reading };
  return {
    complete: false,
    reading,
    why: faults.map(({ why }) => why).join('; '),
    fix: faults.map(({ fix }) => fix).join('; '),
  };
}
