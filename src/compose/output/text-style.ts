/**
 * Colours the lines of results, and makes text safe for a terminal. Colours never carry a meaning
 * of their own: the text reads the same without them.
 *
 * A CRM id or a file name may contain control characters that move the cursor, change colours or
 * overwrite earlier output, and marks that change the direction of text. Each one is shown as its
 * code, such as \u001b.
 */
import { stripVTControlCharacters, styleText } from 'node:util';

/** A line with colours. Its text is safe for a terminal: values in it are shown as visible text. */
export interface StyledLine {
  readonly styled: string;
}

/** A line of results. In plain text, control characters are shown as their codes. */
export type Line = string | StyledLine;

/** What a part of a line says: added, changed, removed, awaiting approval, explanation, heading. */
type Style = 'green' | 'yellow' | 'red' | 'magenta' | 'dim' | 'bold';

/** Returns the text in a style. */
export function styled(style: Style, text: Line): StyledLine {
  return { styled: styleText(style, codesOf(text), { validateStream: false }) };
}

/** Joins parts to one line. */
export function lineOf(...parts: readonly Line[]): StyledLine {
  return { styled: parts.map(codesOf).join('') };
}

/** The shortest lines that are wrapped: below that, a terminal breaks them no worse. */
export const leastWidth = 30;

/**
 * Breaks a line between words; those after the first stand `hang` columns further in. What stands
 * in backticks stays whole, and spaces between words align a line with the next.
 */
export function wrapped(
  line: Line,
  fit: { indent?: number; width?: number | undefined; hang?: number },
): StyledLine[] {
  const { indent = 0, width = Number.POSITIVE_INFINITY, hang = 2 } = fit;
  const text = codesOf(line);
  const lengthOf = (part: string): number => stripVTControlCharacters(part).length;
  const room = width - indent;
  const space = ' '.repeat(indent);
  if (room < leastWidth || lengthOf(text) <= room) return [{ styled: space + text }];
  const lines: string[] = [];
  let current = '';
  for (const word of text.match(/\s*(?:`[^`]*`|[^\s`]|`)+/g) ?? []) {
    const next = current + word;
    if (current === '' || lengthOf(next) <= room) current = next;
    else {
      lines.push(current);
      current = ' '.repeat(hang) + word.trimStart();
    }
  }
  return [...lines, current].map((one) => ({ styled: space + one }));
}

/** Returns the characters to print, with colours only if the stream is to have them. */
export function renderLine(line: Line, isColored: boolean): string {
  if (typeof line === 'string') return visibleLine(line);
  return isColored ? line.styled : stripVTControlCharacters(line.styled);
}

/** As NO_COLOR, FORCE_COLOR and TERM state; otherwise a terminal is coloured, and a pipe is not. */
export function takesColors(stream: NodeJS.WriteStream): boolean {
  return styleText('red', 'x', { stream }) !== 'x';
}

function codesOf(part: Line): string {
  return typeof part === 'string' ? visibleLine(part) : part.styled;
}

const controls = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const controlsInLines = /(?!\n)[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Makes one line safe. A line break counts as a control character here. */
export function visibleLine(line: string): string {
  return line.replace(controls, code);
}

/** Makes several lines safe. In JSON, the code within a string still means the same character. */
export function visibleLines(text: string): string {
  return text.replace(controlsInLines, code);
}

function code(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Formats a value from the platform as a table cell that is safe for a terminal. */
export function cell(value: string | number | boolean | null | undefined): string {
  if (value === undefined || value === null || value === '') return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return String(value).replace(/[\p{C}\p{Z}]+/gu, ' ');
}
