/** Converts the value of a cell to the text that a CSV file would hold. */
import { fieldFault } from '../shared/table-columns.ts';
import { isoOf, type NumberKind } from './number-formats.ts';

/** The parts of a workbook that its cells refer to. */
export interface CellContext {
  /** The shared strings. */
  strings: readonly string[];
  /** How numbers are displayed, by the style of their cells. */
  kinds: readonly NumberKind[];
  since1904: boolean;
  /** Whether the stored results of formulas are not to be relied on. */
  isStale: boolean;
}

/** A cell as the sheet stores it. */
export interface StoredCell {
  type: string;
  style: string;
  value: string;
  hasFormula: boolean;
}

/** The reason why a cell cannot be read. */
export interface CellFault {
  why: string;
  fix: string;
}

/** Returns the text of a cell, which is '' if the cell is empty. */
export function cellText(cell: StoredCell, context: CellContext): string | CellFault {
  const { type, value, hasFormula } = cell;
  // A program that does not compute formulas leaves the value empty. A result of '' has type str.
  if (hasFormula && (context.isStale || (value === '' && type !== 'str'))) {
    return {
      why: 'holds a formula without a computed result',
      fix: 'open the workbook in a spreadsheet program and save it again',
    };
  }
  const text = textOf(cell, context);
  if (text !== undefined) return fieldFault(text, true) ?? text;
  return {
    why: 'refers to a text that the workbook does not have',
    fix: 'open the workbook in a spreadsheet program and save it again',
  };
}

function textOf({ type, style, value }: StoredCell, context: CellContext): string | undefined {
  if (type === 's') return value === '' ? '' : context.strings[Number(value)];
  if (type === 'str' || type === 'inlineStr') return unescaped(value);
  if (type === 'b') return value.replace(/^1$/, 'true').replace(/^0$/, 'false');
  if (type === 'e' || type === 'd' || value.trim() === '') return value.trim();
  const kind = context.kinds[Number(style)] ?? 'number';
  const { since1904 } = context;
  return isoOf(Number(value), { kind, since1904 }) ?? numberText(value.trim());
}

/**
 * Returns all digits of a number. Excel keeps 15 digits but stores some numbers with more, which
 * are rounding errors. A whole number from another program keeps all its digits, so that two ids
 * never become one.
 */
function numberText(value: string): string {
  if (/^-?[1-9]\d*$/.test(value)) return value;
  const number = Number(value);
  return Number.isFinite(number) ? String(Number(number.toPrecision(15))) : value;
}

/** Decodes characters that XML cannot hold, which are written in the form _x000D_. */
export function unescaped(text: string): string {
  if (!text.includes('_x')) return text;
  return text.replaceAll(/_x([\dA-F]{4})_/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}
