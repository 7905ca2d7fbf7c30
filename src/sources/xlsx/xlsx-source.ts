/**
 * Reads contacts from a sheet of an Excel workbook: a record per row, values as texts. The header
 * is the first row with more than one cell; a cell to the right of it is in a column without a
 * name. The read is certified if the sheet was read to the end, its bytes match their CRC, every
 * row could be read, and the file did not change. If it breaks off, the records read so far are
 * kept.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Clock } from '../../domain/clock.ts';
import { brokenRow, type FileTally, flawsOf, untilCut } from '../shared/files/line-file.ts';
import { localFile, rethrow, unreadable } from '../shared/files/file-origin.ts';
import { certificateOf, type Flaw, stoppedBy } from '../shared/read-certificate.ts';
import {
  type Columns,
  columnsOf,
  NAMING_ROWS,
  type NamingRow,
  noHeader,
  hintsFor,
  listed,
  quoted,
} from '../shared/record-fields.ts';
import type { Source, SourceRecord } from '../source.ts';
import type { XlsxOptions } from './options.ts';
import {
  type SheetRow,
  formatReader,
  mergeReader,
  type RowReader,
  rowReader,
  stringReader,
  unmerging,
  parseXml,
  XmlFault,
  type XmlReader,
  type Attributes,
} from './sheet-rows.ts';
import { posix } from 'node:path';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { type Entry, fromFdPromise, type ZipFile } from 'yauzl';

export function xlsxSource(
  { path, sheet: name, headerRow }: XlsxOptions,
  { clock }: { clock: Clock },
): Source {
  const file = localFile(path, clock);
  return {
    async *read(request) {
      const { signal } = request;
      const { handle, reading, flaws, close } = await file.open(signal);
      try {
        const sheet = await openSheet({ path, handle, signal }, name);
        const tally: Tally = { bytes: 0, lineEnded: true, broken: 0, records: 0 };
        let cut: Flaw | undefined;
        try {
          yield* untilCut(readRecords(sheet, request.fields, headerRow, tally), tally);
        } catch (error) {
          cut = stoppedBy(error, tally.records > 0, `at row ${sheet.rows.last()}`);
        }
        return certificateOf(reading, flawsOf(tally, cut, await flaws(false)));
      } finally {
        await close();
      }
    },
    still: file.still,
  };
}

interface Tally extends FileTally {
  records: number;
}

async function* readRecords(
  sheet: Sheet,
  fields: readonly string[],
  headerRow: number | undefined,
  tally: Tally,
): AsyncGenerator<SourceRecord[]> {
  const naming = { name: sheet.name, fields, headerRow };
  let header: readonly NamingRow[] = [];
  let columns: Columns | undefined;
  let above: NamingRow = { number: 0, cells: [] };
  const unmerge = unmerging(sheet.merged);
  const columnsUnder = ([names, ...below]: readonly NamingRow[], width: number): Columns => {
    const { number = 0, cells = [] } = names ?? {};
    const all = Array.from({ length: Math.max(cells.length, width) }, (_, at) => cells[at] ?? '');
    return columnsOf([{ number, cells: all }, ...below], naming);
  };
  for await (const bytes of sheet.read()) {
    tally.bytes += bytes;
    const group: SourceRecord[] = [];
    const rows = sheet.rows.take();
    for (const row of rows) {
      if (columns) {
        unmerge(row);
        const isWide = row.cells.length > columns.width;
        const own = isWide ? columnsUnder(header, row.cells.length) : columns;
        group.push(toRecord(row, own, fields, tally));
      } else if (
        headerRow === undefined
          ? namesIn(row).cells.filter((cell) => cell !== '').length > 1
          : row.number >= headerRow
      ) {
        const from = rows.indexOf(row) + 1;
        const below = rows.slice(from, from + NAMING_ROWS).map(namesIn);
        const names = headerRow === undefined ? namesIn(row) : underMerged(above, namesIn(row));
        header = [names, ...below];
        // Cells of requested columns without a name may come late.
        const unnamed = fields.map((field) => /^unnamed \((\d{1,5})\)$/.exec(field)?.[1] ?? 0);
        columns = columnsUnder(header, names.cells.length + Math.max(0, ...unnamed.map(Number)));
      } else above = underMerged(above, namesIn(row));
    }
    tally.records += group.length;
    yield group;
  }
  if (columns) return;
  if (headerRow !== undefined) throw noHeader(naming);
  const fix = 'name another sheet in the source, or add a row of column names';
  throw new Invalid(`${sheet.name} has no row with more than one cell`, { fix });
}

function namesIn({ number, cells }: SheetRow): NamingRow {
  const names = Array.from(cells, (cell) => (typeof cell === 'string' ? cell.trim() : ''));
  return { number, cells: names };
}

function underMerged({ cells: above }: NamingRow, { number, cells }: NamingRow): NamingRow {
  const length = Math.max(above.length, cells.length);
  return { number, cells: Array.from({ length }, (_, at) => cells[at] || (above[at] ?? '')) };
}

/** Returns a row's record, broken if a requested cell (any, if none is) cannot be read. */
function toRecord(
  { number, cells }: SheetRow,
  columns: Columns,
  fields: readonly string[],
  tally: Tally,
): SourceRecord {
  const where = `row ${number}`;
  const all = columns.valueOf(Array.from({ length: columns.width }, (_, at) => cells[at] ?? ''));
  if (cells.every((cell) => typeof cell === 'string')) return { where, value: all };
  const asked = fields.length === 0 ? Object.keys(all) : fields;
  const fault = asked.map((field) => all[field]).find((cell) => typeof cell === 'object');
  if (fault) return brokenRow(tally, where, fault);
  const texts = Object.entries(all).filter(([, cell]) => typeof cell === 'string');
  return { where, value: Object.fromEntries(texts) };
}

export interface Sheet {
  name: string;
  rows: RowReader;
  merged: ReturnType<typeof mergeReader>['ranges'];
  /** Reads the sheet into `rows`. Yields the bytes of each chunk. Throws Invalid. */
  read(): AsyncGenerator<number>;
}

/** Opens the sheet with this name, or the first sheet that is not hidden. Throws Invalid. */
async function openSheet(place: ZipPlace, name: string | undefined): Promise<Sheet> {
  const { path } = place;
  const book: Book = { place, parts: await openParts(place) };
  const main = findPart(await readRelations(book, ''), 'officeDocument');
  if (main === undefined) throw notWorkbook(path);
  if (main.endsWith('.bin')) throw notWorkbook(path, 'this is a binary workbook (.xlsb)');
  const found = workbookReader();
  await readPart(book, main, found);
  const relations = await readRelations(book, main);
  const sheets = found.sheets.filter(({ id }) => isOf(relations.get(id), 'worksheet'));
  const sheet = chooseSheet(sheets, path, name);
  const sheetPart = relations.get(sheet.id)?.part ?? '';
  const [strings, formats] = [stringReader(), formatReader()];
  const stringPart = findPart(relations, 'sharedStrings');
  if (stringPart !== undefined) await readPart(book, stringPart, strings);
  const stylePart = findPart(relations, 'styles');
  if (stylePart !== undefined) await readPart(book, stylePart, formats);
  const rows = rowReader({ strings: strings.strings, kinds: formats.kinds(), ...found.settings() });
  return {
    name: `${path}: sheet ${quoted(sheet.name)}`,
    rows,
    merged: await readMerged(book, sheetPart),
    read: () => parsePart(book, sheetPart, rows),
  };
}

interface Book {
  place: ZipPlace;
  parts: Awaited<ReturnType<typeof openParts>>;
}

async function readPart(book: Book, part: string, reader: XmlReader): Promise<void> {
  for await (const _ of parsePart(book, part, reader));
}

/** Reads the merged ranges, which stand behind the rows: a sheet that has some is read twice. */
async function readMerged(book: Book, part: string) {
  const merged = mergeReader();
  const words = [Buffer.from('mergeCell'), Buffer.from('mergeCell', 'utf16le').subarray(0, -1)];
  let tail: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of book.parts.chunks(part)) {
      const text = Buffer.concat([tail, chunk]);
      if (!words.some((word) => text.includes(word))) {
        tail = chunk.subarray(-20);
        continue;
      }
      await readPart(book, part, merged);
      break;
    }
  } catch (error) {
    // Damage ends the reading of the rows, too, which keeps those above it.
    if (!(error instanceof Invalid) || merged.isFull()) throw error;
  }
  return merged.ranges;
}

async function* parsePart({ place, parts }: Book, part: string, reader: XmlReader) {
  try {
    yield* parseXml(parts.chunks(part), reader);
  } catch (error) {
    if (!(error instanceof XmlFault)) throw error;
    throw damaged(place.path, `${quoted(part)} ${error.message}`);
  }
}

/** The namespace of references, in the transitional and in the strict form of the format. */
const references = [
  'http://schemas.openxmlformats.org/officeDocument/2006/relationships',
  'http://purl.oclc.org/ooxml/officeDocument/relationships',
];

interface Relation {
  type: string;
  part: string;
}

type Relations = ReadonlyMap<string, Relation>;

function findPart(relations: Relations, type: string): string | undefined {
  return [...relations.values()].find((one) => isOf(one, type))?.part;
}

function isOf(relation: Relation | undefined, type: string): boolean {
  return references.some((uri) => relation?.type === `${uri}/${type}`);
}

/** Reads the references of a part, or of the whole package if the part is ''. */
async function readRelations(book: Book, part: string): Promise<Relations> {
  const relations = new Map<string, Relation>();
  const { dir, base } = posix.parse(part);
  const name = posix.join(dir, '_rels', `${base}.rels`);
  if (!book.parts.has(name)) return relations;
  await readPart(book, name, {
    opened(element, { Id = '', Type = '', Target = '', TargetMode }) {
      if (element !== 'Relationship' || TargetMode === 'External') return;
      const target = posix.resolve(`/${dir}`, Target);
      relations.set(Id, { type: Type, part: target.slice(1) });
    },
    closed: () => false,
  });
  return relations;
}

interface NamedSheet {
  name: string;
  id: string;
  isHidden: boolean;
}

function workbookReader() {
  const sheets: NamedSheet[] = [];
  let [since1904, isStale] = [false, false];
  const isTrue = (value: string | undefined) => value === '1' || value === 'true';
  return {
    sheets,
    settings: () => ({ since1904, isStale }),
    opened(element: string, attributes: Attributes): void {
      const { name = '', state = 'visible', date1904, fullCalcOnLoad } = attributes;
      if (element === 'workbookPr') since1904 = isTrue(date1904);
      // Programs that do not compute formulas set this attribute, and some store 0 as the result.
      if (element === 'calcPr') isStale = isTrue(fullCalcOnLoad);
      if (element !== 'sheet') return;
      const [id = ''] = references.flatMap((uri) => attributes[`${uri} id`] ?? []);
      sheets.push({ name, id, isHidden: state !== 'visible' });
    },
    closed: () => false,
  };
}

function chooseSheet(sheets: readonly NamedSheet[], path: string, name: string | undefined) {
  const [first] = sheets;
  if (!first) throw notWorkbook(path, 'this is not a workbook with a sheet');
  if (name === undefined) return sheets.find(({ isHidden }) => !isHidden) ?? first;
  const found = sheets.find((one) => one.name === name);
  if (found) return found;
  const names = sheets.map((one) => one.name);
  const reason = [`there is no sheet ${quoted(name)}`, `sheets found: ${listed(names)}`];
  const fix = [...hintsFor([name], names), 'correct sheet in the source'].join('; ');
  throw new Invalid(`${path}: ${reason.join('; ')}`, { fix });
}

const MOST_PARTS = 20_000;

interface ZipPlace {
  path: string;
  handle: FileHandle;
  signal: AbortSignal;
}

/** Opens the zip and reads its directory. Throws Invalid if the file is not a workbook. */
async function openParts(place: ZipPlace) {
  const { path, handle, signal } = place;
  const head = Buffer.alloc(OLD.length);
  const { bytesRead } = await handle.read(head, 0, head.length, 0).catch(rethrow(path));
  if (bytesRead === 0) throw notWorkbook(path, 'the file is empty');
  if (head.equals(OLD)) throw locked(path);
  if (head.toString('latin1', 0, 2) !== 'PK') throw notWorkbook(path);
  const entries = new Map<string, Entry>();
  const zip = await guard(place, async () => {
    const opened = await fromFdPromise(handle.fd, { autoClose: false, lazyEntries: true });
    for await (const entry of opened.eachEntry()) {
      signal.throwIfAborted();
      if (entries.size === MOST_PARTS) throw new Error('too many parts');
      entries.set(entry.fileName.toLowerCase(), entry);
    }
    return opened;
  });
  return {
    has: (name: string) => entries.has(name.toLowerCase()),
    /** Yields a part's bytes. Throws Invalid without one, or with another length or CRC. */
    chunks(name: string): AsyncGenerator<Buffer> {
      const entry = entries.get(name.toLowerCase());
      if (!entry) throw damaged(path, `it has no ${quoted(name)}`);
      if (entry.isEncrypted()) throw locked(path);
      return chunksOf(zip, entry, place);
    },
  };
}

function damaged(path: string, how: string): Invalid {
  const fix = 'open it in a spreadsheet program and save it again as .xlsx';
  return new Invalid(`${path}: the workbook is damaged: ${how}`, { fix });
}

function notWorkbook(path: string, what = 'this is not an Excel workbook'): Invalid {
  return new Invalid(`${path}: ${what}`, { fix: 'save it as an Excel workbook (.xlsx)' });
}

function locked(path: string): Invalid {
  const fix = 'save it as .xlsx without a password';
  return new Invalid(`${path}: this is an old .xls workbook or has a password`, { fix });
}

const OLD = Buffer.from('d0cf11e0a1b11ae1', 'hex');

async function* chunksOf(zip: ZipFile, entry: Entry, place: ZipPlace): AsyncGenerator<Buffer> {
  const { path, signal } = place;
  const stream = await guard(place, async () => zip.openReadStreamPromise(entry));
  const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]();
  let sum = 0;
  try {
    for (;;) {
      const next = await guard(place, async () => chunks.next());
      signal.throwIfAborted();
      if (next.done) break;
      sum = crc32(next.value, sum);
      yield next.value;
    }
  } finally {
    stream.destroy();
  }
  if (sum === entry.crc32) return;
  throw damaged(path, `${quoted(entry.fileName)} is not what was stored`);
}

/** Returns the result of `read`. Errors other than those of the file system mean damage. */
async function guard<T>({ path, signal }: ZipPlace, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error && 'syscall' in error) throw unreadable(path, error);
    throw damaged(path, 'it is cut off, or a part of it cannot be unpacked');
  }
}
