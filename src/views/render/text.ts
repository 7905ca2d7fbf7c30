/** Prints sections in a terminal, and aligns rows of cells as tables without borders. */
import {
  leastWidth,
  type Line,
  lineOf,
  renderLine,
  styled,
  wrapped,
  type StyledLine,
} from '../../compose/output/text-style.ts';
import {
  filled,
  isEmpty,
  itemOf,
  rowOf,
  type Section,
  spansOf,
  type Table,
  type Text,
  type Tone,
} from '../sections.ts';
import PlainTable from 'cli-table3';

const styles = {
  good: 'green',
  busy: 'yellow',
  bad: 'red',
  quiet: 'dim',
} as const satisfies Record<Tone, string>;

const signTones = { '+': 'good', '−': 'bad', '~': 'busy', '!': 'bad', '·': 'quiet' } as const;

/**
 * Returns the lines of sections, with an empty line between two. `isAll`: with folded ones.
 * `width`: the columns of the terminal.
 */
export function sectionLines(
  sections: readonly Section[],
  { isAll = false, width }: { isAll?: boolean; width?: number | undefined } = {},
): Line[] {
  const shown = filled(sections).filter(({ isFolded = false }) => isAll || !isFolded);
  return shown.flatMap((section, at) => {
    const indent = section.title === undefined && shown[0]?.title === undefined ? 0 : 2;
    return [...(at === 0 ? [] : ['']), ...linesOf(section, { indent, width }, isAll)];
  });
}

interface Place {
  indent: number;
  width: number | undefined;
}

function linesOf(section: Section, place: Place, isAll: boolean): Line[] {
  const { title, aside, facts = [], lines = [], table, happened = [], none = '' } = section;
  const { measure } = section;
  const after = aside === undefined ? [] : ['  ', styled('dim', styledText(aside))];
  const heading = title === undefined ? [] : [lineOf(styled('bold', styledText(title)), ...after)];
  return [
    ...heading.flatMap((line) => wrapped(line, { width: place.width })),
    ...(measure ? wrapped(measure.text, place) : []),
    ...styledTable(
      facts.map(([name, value]) => [name, styledText(value)]),
      place,
    ),
    ...lines.flatMap((line) => {
      const { sign, text, notes } = itemOf(line);
      const before = sign === undefined ? [] : [styled(styles[signTones[sign]], sign), ' '];
      return [...wrapped(lineOf(...before, styledText(text)), place), ...noteLines(notes, place)];
    }),
    ...(table ? tableLines(table, place) : []),
    ...happened.flatMap((one) => [
      ...wrapped(lineOf(`${one.at}  `, styledText(one.title)), place),
      ...(isAll
        ? styledTable(
            [...one.facts, ...(one.texts ?? [])].map(([name, value]) => [name, styledText(value)]),
            { ...place, indent: place.indent + 4 },
          )
        : []),
    ]),
    ...(isEmpty(section) && none !== '' ? wrapped(none, place) : []),
  ];
}

function tableLines({ columns, rows, isBare = false, leavesOut = [] }: Table, place: Place) {
  if (rows.length === 0) return [];
  const all = rows.map(rowOf);
  let shown = columns.map((one, at) => ({
    ...(typeof one === 'string' ? { title: one, holds: '' } : one),
    cells: all.map(({ cells }) => styledText(cells[at] ?? '')),
  }));
  const dropped: string[] = [];
  const linesOf = (): StyledLine[][] =>
    [...(isBare ? [] : [-1]), ...all.keys()].map((row) =>
      shown.map(({ title, cells }) => lineOf(cells[row] ?? (title && styled('dim', title)))),
    );
  for (const title of leavesOut) {
    const { others, last } = widthsOf(linesOf());
    if (place.indent + others + Math.min(last, leastWidth) <= (place.width ?? Infinity)) break;
    shown = shown.filter((one) => one.title !== title);
    dropped.push(title);
  }
  const right = shown.flatMap(({ holds }, at) => (holds === 'numbers' ? [at] : []));
  const below = all.map(({ notes }) => noteLines(notes, place));
  const left = styled('dim', `Too narrow for: ${dropped.join(', ')}`);
  return [
    ...styledTable(linesOf(), { ...place, right, below: [...(isBare ? [] : [[]]), ...below] }),
    ...(dropped.length > 0 ? wrapped(left, place) : []),
  ];
}

function noteLines(notes: readonly Text[], { indent, width }: Place) {
  return notes.flatMap((note) => wrapped(styledText(note), { indent: indent + 4, width }));
}

function styledText(text: Text): Line {
  return lineOf(
    ...spansOf(text).map((span) => {
      if (typeof span === 'string') return span;
      if ('moment' in span) return span.moment;
      if ('channel' in span) return span.channel;
      if ('at' in span) return span.at;
      if ('record' in span) return span.name;
      if ('verbatim' in span) return span.verbatim;
      if ('strong' in span) return styled('bold', span.strong);
      return 'tone' in span ? styled(styles[span.tone], span.text) : span.text;
    }),
  );
}

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

/** Returns how wide the last column is, and all others with the space after each. */
function widthsOf(cells: readonly (readonly Line[])[]): { others: number; last: number } {
  const columns = Math.max(...cells.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.max(...cells.map((row) => renderLine(row[at] ?? '', false).length)),
  );
  const others = widths.slice(0, -1).reduce((sum, width) => sum + width + gap, 0);
  return { others, last: widths.at(-1) ?? 0 };
}

/** Returns one line for each row, with two spaces between columns, and the lines below it. */
export function styledTable(
  cells: readonly (readonly Line[])[],
  { indent = 0, right = [], width = Number.POSITIVE_INFINITY, below = [] }: Layout = {},
): StyledLine[] {
  if (cells.length === 0) return [];
  const rows = cells.map((row) => row.map((cell) => lineOf(cell).styled));
  const columns = Math.max(...rows.map((row) => row.length));
  const room = width - indent - widthsOf(cells).others;
  const last = rows.map((row) =>
    wrapped({ styled: row[columns - 1] ?? '' }, { width: room }).map(({ styled }) => styled),
  );
  const table = new PlainTable({
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
