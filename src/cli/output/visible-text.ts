/**
 * Text that a terminal shows as it is. A CRM id or the name of a file may hold control characters
 * that move the cursor, change colours or rewrite what was printed before, and marks that turn the
 * direction of a text. Each is written as its code: \u001b.
 */
const controls = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const controlsInLines = /(?!\n)[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** One line: a line break in it is a control character, too. */
export function visibleLine(line: string): string {
  return line.replace(controls, code);
}

/** Several lines, JSON among them: within its texts a code stands for the same character. */
export function visibleLines(text: string): string {
  return text.replace(controlsInLines, code);
}

function code(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
