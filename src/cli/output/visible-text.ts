/**
 * Makes text safe for a terminal. A CRM id or a file name may hold control characters that move the
 * cursor, change colours or overwrite what was printed, and marks that change the direction of
 * text. Each is shown as its code: \u001b.
 */
const controls = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const controlsInLines = /(?!\n)[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Makes one line safe; a line break is a control character here. */
export function visibleLine(line: string): string {
  return line.replace(controls, code);
}

/**
 * Makes several lines safe, JSON among them: within its strings the code means the same character.
 */
export function visibleLines(text: string): string {
  return text.replace(controlsInLines, code);
}

function code(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Formats a value of the platform as one table cell, safe for a terminal. */
export function cell(value: string | number | boolean | null | undefined): string {
  if (value === undefined || value === null || value === '') return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return String(value).replace(/[\p{C}\p{Z}]+/gu, ' ');
}
