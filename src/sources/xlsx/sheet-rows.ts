/** Reads the rows of a sheet. */
import { type CellContext, type CellFault, cellText, type StoredCell } from './cell-value.ts';
import { richText } from './shared-strings.ts';
import type { XmlReader } from './xml-stream.ts';

/** A row that is not empty. */
export interface SheetRow {
  /** The row number that spreadsheet programs display. */
  number: number;
  /** The cells by column. Empty cells are missing. */
  cells: (string | CellFault)[];
}

/** Reads a sheet. */
export interface RowReader extends XmlReader {
  /** Returns the rows completed since the last call. */
  take(): SheetRow[];
  /** Returns the number of the row that was started last. */
  last(): number;
}

/** Creates the reader of one sheet. */
export function rowReader(context: CellContext): RowReader {
  let rows: SheetRow[] = [];
  let row: SheetRow | undefined;
  let [last, isInData] = [0, false];
  const cell = cellReader();
  return {
    opened(name, attributes) {
      if (row) cell.opened(name, attributes);
      else if (name === 'sheetData') isInData = true;
      else if (name === 'row' && isInData) {
        last = wholeOf(attributes['r']) ?? last + 1;
        row = { number: last, cells: [] };
        cell.restart();
      }
    },
    closed(name) {
      if (name === 'sheetData') isInData = false;
      if (!row) return true;
      const { stored, column } = cell.closed(name) ?? {};
      if (stored && column !== undefined) {
        const text = cellText(stored, context);
        if (text !== '') row.cells[column] = text;
      }
      if (name !== 'row') return false;
      if (row.cells.length > 0) rows.push(row);
      row = undefined;
      return true;
    },
    text: cell.text,
    take() {
      const taken = rows;
      rows = [];
      return taken;
    },
    last: () => last,
  };
}

/** Reads the cells of a row, one after another. */
function cellReader() {
  let stored: StoredCell | undefined;
  let [column, isValue] = [-1, false];
  const inline = richText();
  return {
    restart: () => void (column = -1),
    opened(name: string, { r, t = 'n', s = '' }: Readonly<Record<string, string>>) {
      if (name === 'c') {
        column = columnOf(r) ?? column + 1;
        stored = { type: t, style: s, value: '', hasFormula: false };
        inline.take();
      } else if (name === 'v') isValue = true;
      else if (name === 'f' && stored) stored.hasFormula = true;
      else inline.opened(name);
    },
    text(found: string) {
      if (isValue && stored) stored.value += found;
      else inline.text(found);
    },
    /** Returns the cell if this element ends it. */
    closed(name: string): { stored: StoredCell; column: number } | undefined {
      if (name === 'v') isValue = false;
      inline.closed(name);
      if (name !== 'c' || !stored) return undefined;
      const value = stored.type === 'inlineStr' ? inline.take() : stored.value;
      const whole = { ...stored, value };
      stored = undefined;
      return { stored: whole, column };
    },
  };
}

function wholeOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** Returns the column of a reference such as AB12, counted from 0. */
function columnOf(place: string | undefined): number | undefined {
  const letters = place && /^[A-Z]{1,3}(?=\d)/i.exec(place)?.[0].toUpperCase();
  if (!letters) return undefined;
  let column = 0;
  for (let at = 0; at < letters.length; at += 1) column = column * 26 + letters.charCodeAt(at) - 64;
  return column - 1;
}
