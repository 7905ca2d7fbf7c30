/** The rows of a sheet: the text of each cell as a CSV file would hold it. */
import type { Flaw } from '../shared/read-certificate.ts';
import { fieldFault } from '../shared/record-fields.ts';
import { SaxesParser, type SaxesTagNS } from 'saxes';
import { markedEncoding, strictDecoder } from '../shared/files/file-origin.ts';

export interface SheetRow {
  /** The row number that spreadsheet programs display. */
  number: number;
  cells: (string | Flaw)[];
}

export type RowReader = ReturnType<typeof rowReader>;

/** Creates the reader of a sheet's rows, whose cells refer to `context`. */
export function rowReader(context: CellContext) {
  const rows: SheetRow[] = [];
  const inline = richText();
  let row: SheetRow | undefined;
  let cell: StoredCell | undefined;
  let [last, column, isInData, isValue] = [0, -1, false, false];
  return {
    opened(name: string, { r = '', t = 'n', s = '' }: Attributes): void {
      if (!row) {
        if (name === 'sheetData') isInData = true;
        if (name !== 'row' || !isInData) return;
        last = /^\d{1,9}$/.test(r) ? Number(r) : last + 1;
        row = { number: last, cells: [] };
        column = -1;
      } else if (name === 'c') {
        column = parseColumn(r) ?? column + 1;
        cell = { type: t, style: s, value: '', hasFormula: false };
        inline.take();
      } else if (name === 'v') isValue = true;
      else if (name === 'f' && cell) cell.hasFormula = true;
      else inline.opened(name);
    },
    text(found: string): void {
      if (isValue && cell) cell.value += found;
      else inline.text(found);
    },
    closed(name: string): boolean {
      if (name === 'sheetData') isInData = false;
      if (!row) return true;
      if (name === 'v') isValue = false;
      inline.closed(name);
      if (name === 'c' && cell) {
        const value = cell.type === 'inlineStr' ? inline.take() : cell.value;
        const text = cellText({ ...cell, value }, context);
        if (text !== '') row.cells[column] = text;
        cell = undefined;
      }
      if (name !== 'row') return false;
      if (row.cells.length > 0) rows.push(row);
      row = undefined;
      return true;
    },
    take: () => rows.splice(0),
    last: () => last,
  };
}

/** Returns the column of a reference such as AB12, counted from 0. */
function parseColumn(place: string): number | undefined {
  const letters = /^[A-Z]{1,3}(?=\d)/i.exec(place)?.[0].toUpperCase();
  if (!letters) return undefined;
  let column = 0;
  for (let at = 0; at < letters.length; at += 1) column = column * 26 + letters.charCodeAt(at) - 64;
  return column - 1;
}

const MOST_MERGED = 500_000;

/** Reads the merged ranges by the number of their first row; columns are counted from 0. */
export function mergeReader() {
  const ranges = new Map<number, { left: number; bottom: number }[]>();
  let count = 0;
  return {
    ranges,
    isFull: () => count > MOST_MERGED,
    opened(name: string, { ref = '' }: Attributes): void {
      const [first = '', last = ''] = name === 'mergeCell' ? ref.split(':') : [];
      const left = parseColumn(first);
      if (left === undefined || parseColumn(last) === undefined) return;
      count += 1;
      if (count > MOST_MERGED) throw new XmlFault('holds more than 500,000 merged cells');
      const [top = 0, bottom = 0] = ref.match(/\d+/g)?.map(Number) ?? [];
      const row = ranges.get(top) ?? [];
      row.push({ left, bottom });
      ranges.set(top, row);
    },
    // Only what is open can grow, and a range is one element.
    closed: () => true,
  };
}

/**
 * Returns a function that gives empty cells below the first of a merged range its value, in rows
 * below the header. The cells beside it stay empty: a "yes" may be meant for the first column only.
 */
export function unmerging(ranges: ReturnType<typeof mergeReader>['ranges']) {
  const above = new Map<number, { value: string | Flaw; bottom: number }>();
  return ({ number, cells }: SheetRow): void => {
    for (const [at, { value, bottom }] of above) {
      if (number <= bottom) cells[at] ??= value;
      else above.delete(at);
    }
    for (const { left, bottom } of ranges.get(number) ?? []) {
      const value = cells[left];
      if (value !== undefined) above.set(left, { value, bottom });
    }
  };
}

interface CellContext {
  strings: readonly string[];
  kinds: readonly NumberKind[];
  since1904: boolean;
  /** Whether the stored results of formulas are not to be relied on. */
  isStale: boolean;
}

interface StoredCell {
  type: string;
  style: string;
  value: string;
  hasFormula: boolean;
}

function cellText(cell: StoredCell, context: CellContext): string | Flaw {
  const { type, value, hasFormula } = cell;
  const fix = 'open the workbook in a spreadsheet program and save it again';
  // A program that does not compute formulas leaves the value empty. A result of '' has type str.
  if (hasFormula && (context.isStale || (value === '' && type !== 'str')))
    return { why: 'holds a formula without a computed result', fix };
  const text = toText(cell, context);
  if (text !== undefined) return fieldFault(text, true) ?? text;
  return { why: 'refers to a text that the workbook does not have', fix };
}

/**
 * Returns all digits of a number. Excel keeps 15 but stores some with more, which are rounding
 * errors. A whole number from another program keeps all, so that two ids never become one.
 */
function toText({ type, style, value }: StoredCell, context: CellContext): string | undefined {
  if (type === 's') return value === '' ? '' : context.strings[Number(value)];
  if (type === 'str' || type === 'inlineStr') return unescaped(value);
  if (type === 'b') return value.replace(/^1$/, 'true').replace(/^0$/, 'false');
  if (type === 'e' || type === 'd' || value.trim() === '') return value.trim();
  const number = Number(value);
  const date = toIso(number, context.kinds[Number(style)] ?? 'number', context.since1904);
  if (date !== undefined) return date;
  if (/^-?[1-9]\d*$/.test(value.trim()) || !Number.isFinite(number)) return value.trim();
  return String(Number(number.toPrecision(15)));
}

/** Decodes characters that XML cannot hold, which are written in the form _x000D_. */
function unescaped(text: string): string {
  if (!text.includes('_x')) return text;
  return text.replaceAll(/_x([\dA-F]{4})_/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}

type NumberKind = 'number' | 'date' | 'time';

/** The ids of the built-in formats, which files do not describe. */
const builtIn: readonly [from: number, to: number, kind: NumberKind][] = [
  [14, 17, 'date'],
  [18, 21, 'time'],
  [22, 22, 'date'],
  [27, 31, 'date'],
  [32, 35, 'time'],
  [36, 36, 'date'],
  [45, 45, 'time'],
  [47, 47, 'time'],
  [50, 58, 'date'],
];

/** Reads styles.xml, to recognize dates, which are numbers of days with a format. */
export function formatReader() {
  const codes = new Map<number, string>();
  const formats: number[] = [];
  const within: string[] = [];
  const kindOf = (format: number): NumberKind => {
    const code = codes.get(format);
    if (code !== undefined) return kindOfCode(code);
    return builtIn.find(([from, to]) => format >= from && format <= to)?.[2] ?? 'number';
  };
  return {
    opened(name: string, { numFmtId = '0', formatCode = '' }: Attributes): void {
      const parent = within.at(-1);
      within.push(name);
      if (name === 'numFmt' && parent === 'numFmts') codes.set(Number(numFmtId), formatCode);
      if (name === 'xf' && parent === 'cellXfs') formats.push(Number(numFmtId));
    },
    closed() {
      within.pop();
      return false;
    },
    kinds: () => formats.map(kindOf),
  };
}

/** Returns what a custom format displays. Only its first section counts: positive numbers. */
function kindOfCode(code: string): NumberKind {
  // Texts, colours, conditions and languages do not make a date. A duration is a number.
  const plain = code.replaceAll(/"[^"]*"|\\.|[_*]./g, '');
  if (/\[[hms]+\]/i.test(plain)) return 'number';
  const [letters = ''] = plain.replaceAll(/\[[^\]]*\]|AM\/PM|A\/P/gi, '').split(';');
  if (/[yd]/i.test(letters)) return 'date';
  if (/[hs]/i.test(letters)) return 'time';
  return /m/i.test(letters) ? 'date' : 'number';
}

const DAY_MS = 86_400_000;
/** The days before 10000-01-01. */
const MOST_DAYS = 2_958_466;

/**
 * Converts days since 1900-01-00 (or 1904-01-01) to ISO 8601: a day, a day with a time, or a time,
 * without a zone, because workbooks have none. Undefined if it is no date.
 */
function toIso(days: number, kind: NumberKind, since1904: boolean): string | undefined {
  if (kind === 'number' || !(days >= 0 && days < MOST_DAYS)) return undefined;
  const ms = Math.round(days * DAY_MS);
  const [whole, rest] = [Math.floor(ms / DAY_MS), ms % DAY_MS];
  const time = new Date(rest).toISOString().slice(11, 23).replace('.000', '');
  if (kind === 'time' && whole === 0) return time;
  const first = since1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, whole < 60 ? 31 : 30);
  let day = new Date(first + whole * DAY_MS).toISOString().slice(0, 10);
  // Excel displays these two days of 1900, which do not exist.
  if (!since1904 && whole === 0) day = '1900-01-00';
  if (!since1904 && whole === 60) day = '1900-02-29';
  return rest === 0 ? day : `${day}T${time}`;
}

const MOST_BYTES = 256 * 1024 * 1024;
const TEXT_BYTES = 50;

/** Joins the parts of a formatted text. Pronunciation hints are left out. */
function richText() {
  let [isText, isPhonetic, text] = [false, false, ''];
  return {
    opened(name: string) {
      if (name === 't') isText = true;
      if (name === 'rPh') isPhonetic = true;
    },
    closed(name: string) {
      if (name === 't') isText = false;
      if (name === 'rPh') isPhonetic = false;
    },
    text(found: string) {
      if (isText && !isPhonetic) text += found;
    },
    take() {
      const taken = text;
      text = '';
      return taken;
    },
  };
}

/** Reads sharedStrings.xml: the texts of a workbook, to which its cells refer by number. */
export function stringReader() {
  const strings: string[] = [];
  const rich = richText();
  let bytes = 0;
  return {
    strings,
    opened: rich.opened,
    text: rich.text,
    closed(name: string): boolean {
      rich.closed(name);
      if (name !== 'si') return false;
      // A copy, so that the chunk from which the text was cut can be released.
      const text = Buffer.from(unescaped(rich.take())).toString();
      bytes += text.length + TEXT_BYTES;
      if (bytes > MOST_BYTES) throw new XmlFault('holds texts of more than 256 MiB');
      strings.push(text);
      return true;
    },
  };
}

const MIB = 1024 * 1024;
/** The maximum length between two tags. A cell may hold 1 MiB. */
const TEXT_CHARACTERS = 4 * MIB;
/** The maximum length of one piece: a row, a shared string, or the whole of a small part. */
const PIECE_CHARACTERS = 32 * MIB;
const MOST_LEVELS = 64;

/** The attributes of an element: `name`, or `namespace name` where a prefix stood. */
export type Attributes = Readonly<Record<string, string>>;

/**
 * Receives the parts of a document. Elements come with their local names; those of another
 * namespace than the root's with an empty one, as an extension may reuse the names.
 */
export interface XmlReader {
  opened(name: string, attributes: Attributes): void;
  closed(name: string): boolean;
  text?(text: string): void;
}

/** XML that cannot be read any further. The message states the reason and begins with a verb. */
export class XmlFault extends Error {}

/** Parses a document. Yields the number of bytes of each chunk that was read. Throws XmlFault. */
export async function* parseXml(
  chunks: AsyncIterable<Buffer>,
  reader: XmlReader,
): AsyncGenerator<number> {
  const parser = boundedParser(reader);
  let decode: ReturnType<typeof strictDecoder> | undefined;
  const write = (text: string | undefined) => {
    if (text === undefined) throw new XmlFault('holds text that is neither UTF-8 nor UTF-16');
    parser.write(text);
  };
  for await (const chunk of chunks) {
    decode ??= strictDecoder(markedEncoding(chunk) ?? 'utf-8');
    write(decode(chunk));
    yield chunk.length;
  }
  write(decode ? decode(undefined) : '');
  parser.end();
}

function boundedParser(reader: XmlReader) {
  const parser = new SaxesParser({ xmlns: true, position: false });
  let root: string | undefined;
  const nameOf = ({ uri, local }: SaxesTagNS) => (uri === root ? local : '');
  let fault: XmlFault | undefined;
  let [levels, sinceTag, sincePiece] = [0, 0, 0];
  // After an error, saxes continues with a guess.
  parser.on('error', () => void (fault ??= new XmlFault('holds no well-formed XML')));
  parser.on('opentag', (tag) => {
    root ??= tag.uri;
    sinceTag = 0;
    levels += 1;
    if (levels > MOST_LEVELS) fault ??= new XmlFault('nests its elements too deeply');
    if (fault) return;
    const attributes = Object.values(tag.attributes).map(
      ({ uri, local, value }): [string, string] => {
        return [uri === '' ? local : `${uri} ${local}`, value];
      },
    );
    reader.opened(nameOf(tag), Object.fromEntries(attributes));
  });
  parser.on('closetag', (tag) => {
    sinceTag = 0;
    levels -= 1;
    if (!fault && reader.closed(nameOf(tag))) sincePiece = 0;
  });
  const text = (found: string) => {
    if (!fault) reader.text?.(found);
  };
  parser.on('text', text);
  parser.on('cdata', text);
  return {
    write(part: string) {
      sinceTag += part.length;
      sincePiece += part.length;
      if (sinceTag > TEXT_CHARACTERS || sincePiece > PIECE_CHARACTERS)
        throw new XmlFault('holds more than 32 MiB in one row, or 4 MiB in one cell');
      parser.write(part);
      if (fault) throw fault;
    },
    end() {
      parser.close();
      if (fault) throw fault;
    },
  };
}
