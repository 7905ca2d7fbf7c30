/**
 * Makes text safe for a terminal. A CRM id or a file name may contain control characters that move
 * the cursor, change colours or overwrite earlier output, and marks that change the direction of
 * text. Each one is shown as its code, such as \u001b.
 */
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
