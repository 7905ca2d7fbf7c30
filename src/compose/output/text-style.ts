/**
 * Colours the lines of results. Colours never carry a meaning of their own: the text reads the same
 * without them.
 */
import { stripVTControlCharacters, styleText } from 'node:util';
import { visibleLine } from './visible-text.ts';

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
const leastWidth = 30;

/**
 * Returns the lines into which a line is broken between words, so that it fits a terminal; those
 * after the first stand `hang` columns further in. What stands in backticks is not broken, and the
 * spaces between two words of a line are kept, because they align the line with the next.
 */
export function wrapped(
  line: Line,
  {
    indent = 0,
    width = Number.POSITIVE_INFINITY,
    hang = 2,
  }: { indent?: number; width?: number | undefined; hang?: number },
): StyledLine[] {
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

/**
 * Returns whether output to a stream is coloured: a terminal is, and a pipe is not, unless the
 * environment (NO_COLOR, FORCE_COLOR, TERM) states otherwise.
 */
export function takesColors(stream: NodeJS.WriteStream): boolean {
  return styleText('red', 'x', { stream }) !== 'x';
}

function codesOf(part: Line): string {
  return typeof part === 'string' ? visibleLine(part) : part.styled;
}
