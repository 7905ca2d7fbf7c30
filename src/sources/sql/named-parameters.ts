/** A statement with named parameters, taken apart: `where id = :id`. */

export const parameters = ['id', 'email', 'channel', 'cause', 'at', 'return'] as const;
type Parameter = (typeof parameters)[number];

/** What a name cannot stand in: texts, names, comments; nor is :: one. */
const opaque = [
  String.raw`'(?:[^']|'')*'`,
  String.raw`"(?:[^"]|"")*"`,
  '`[^`]*`',
  String.raw`--[^\n]*`,
  String.raw`/\*[\s\S]*?\*/`,
  String.raw`\$(\w*)\$[\s\S]*?\$\1\$`,
  '::',
].join('|');
const tokens = new RegExp(String.raw`${opaque}|(?<![\w:]):([A-Za-z]\w*)`, 'g');

/** Its text, and between the pieces of that what is bound. Unknown names stay text. */
export function namedIn(statement: string): (string | { name: Parameter })[] {
  const pieces: (string | { name: Parameter })[] = [];
  let from = 0;
  for (const found of statement.matchAll(tokens)) {
    const name = parameters.find((known) => known === found[2]);
    if (name === undefined) continue;
    pieces.push(statement.slice(from, found.index), { name });
    from = found.index + found[0].length;
  }
  return [...pieces, statement.slice(from)];
}

/** The first name that stands for nothing. */
export function unknownIn(statement: string): string | undefined {
  const names = [...statement.matchAll(tokens)].flatMap((found) => found[2] ?? []);
  return names.find((name) => !parameters.some((known) => known === name));
}
