/** Aligns rows of cells as a table without borders. */
import { stripVTControlCharacters } from 'node:util';
import Table from 'cli-table3';
import { type Line, lineOf, type StyledLine, wrapped } from './text-style.ts';

const borders =
  'top top-mid top-left top-right bottom bottom-mid bottom-left bottom-right ' +
  'left left-mid mid mid-mid right right-mid';

interface Layout {
  indent?: number;
  /** The columns of numbers, which are aligned to the right; counted from 0. */
  right?: readonly number[];
  /** The columns of the terminal, into which the last cell of a row is wrapped; undefined: any. */
  width?: number | undefined;
  below?: readonly (readonly StyledLine[])[];
}

const gap = 2;

/** Returns one line for each row, with two spaces between columns, and the lines below it. */
export function styledTable(
  cells: readonly (readonly Line[])[],
  { indent = 0, right = [], width = Number.POSITIVE_INFINITY, below = [] }: Layout = {},
): StyledLine[] {
  if (cells.length === 0) return [];
  const rows = cells.map((row) => row.map((cell) => lineOf(cell).styled));
  const columns = Math.max(...rows.map((row) => row.length));
  const widest = (at: number): number =>
    Math.max(...rows.map((row) => stripVTControlCharacters(row[at] ?? '').length));
  const others = Array.from({ length: columns - 1 }, (_, at) => widest(at) + gap);
  const room = others.reduce((left, wide) => left - wide, width - indent);
  const last = rows.map((row) =>
    wrapped({ styled: row[columns - 1] ?? '' }, { width: room }).map(({ styled }) => styled),
  );
  const table = new Table({
    chars: { ...Object.fromEntries(borders.split(' ').map((name) => [name, ''])), middle: '  ' },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    colAligns: Array.from({ length: columns }, (_, at) => (right.includes(at) ? 'right' : 'left')),
  });
  table.push(
    ...rows.map((row, at) => {
      const cells = Array.from({ length: columns - 1 }, (_, column) => row[column] ?? '');
      return [...cells, last[at]?.join('\n') ?? ''];
    }),
  );
  const lines = table.toString().split('\n');
  const space = ' '.repeat(indent);
  return rows.flatMap((_, at) => [
    ...lines.splice(0, last[at]?.length).map((line) => ({ styled: `${space}${line}`.trimEnd() })),
    ...(below[at] ?? []),
  ]);
}
