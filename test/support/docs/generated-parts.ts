/**
 * Writes the parts of the pages that come from the code. In a page, the text between
 * `<!-- generated: NAME -->` and `<!-- end -->` is the part of that name.
 */
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import type { FileText } from '../../style/text.ts';

/** The parts by name, in Markdown. */
export type Parts = Readonly<Record<string, string>>;

const root = fileURLToPath(new URL('../../..', import.meta.url));
const marked = /^<!-- generated: (.+) -->\n(?:[^]*?\n)??^<!-- end -->$/gm;
const opening = /^<!-- generated: .+ -->$/gm;

/** Returns the names of the parts that a page has a place for. */
export function partsIn({ text }: Pick<FileText, 'text'>): string[] {
  return [...text.matchAll(marked)].map(([, name = '']) => name);
}

/** Returns a page with its parts written anew. Throws for a name that no part has. */
export async function withParts({ path, text }: FileText, parts: Parts): Promise<string> {
  const places = partsIn({ text }).length;
  if (places < [...text.matchAll(opening)].length) throw new Error(`${path}: a part has no end`);
  if (places === 0) return text;
  const written = text.replaceAll(marked, (_whole, name: string) => {
    const part = parts[name];
    if (part === undefined) throw new Error(`${path}: no part is called ${name}`);
    return `<!-- generated: ${name} -->\n\n${part}\n\n<!-- end -->`;
  });
  return format(written, { ...(await resolveConfig(`${root}${path}`)), parser: 'markdown' });
}

/** Returns a table whose cells are as wide as their text. Each row has a cell for each head. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(' | ')} |`;
  const rule = `|${heads.map(() => ' --- |').join('')}`;
  return ['<!-- prettier-ignore -->', line(heads), rule, ...rows.map(line)].join('\n');
}

/** A line in a cell would end it, in code too. */
function escaped(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');
}
