/** Aligns rows of cells as a table without borders. */
import Table from 'cli-table3';
import { visibleLine } from './visible-text.ts';
import { type Line, lineOf, type StyledLine } from './text-style.ts';

const borders =
  'top top-mid top-left top-right bottom bottom-mid bottom-left bottom-right ' +
  'left left-mid mid mid-mid right right-mid';

interface Layout {
  /** Spaces before each row. */
  indent?: number;
  /** The columns of numbers, which are aligned to the right; counted from 0. */
  right?: readonly number[];
}

/** Returns one line for each row, with two spaces between columns. */
export function table(rows: readonly (readonly string[])[], layout: Layout = {}): string[] {
  return drawn(
    rows.map((row) => row.map((cell) => visibleLine(cell))),
    layout,
  );
}

/** Does the same with cells that may have colours. */
export function styledTable(rows: readonly (readonly Line[])[], layout: Layout = {}): StyledLine[] {
  const cells = rows.map((row) => row.map((cell) => lineOf(cell).styled));
  return drawn(cells, layout).map((styled) => ({ styled }));
}

function drawn(rows: readonly string[][], { indent = 0, right = [] }: Layout): string[] {
  if (rows.length === 0) return [];
  const columns = Math.max(...rows.map((row) => row.length));
  const table = new Table({
    chars: { ...Object.fromEntries(borders.split(' ').map((name) => [name, ''])), middle: '  ' },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    colAligns: Array.from({ length: columns }, (_, at) => (right.includes(at) ? 'right' : 'left')),
  });
  table.push(...rows);
  const space = ' '.repeat(indent);
  return table
    .toString()
    .split('\n')
    .map((line) => `${space}${line}`.trimEnd());
}
