/** Prints sections in a terminal. */
import { styledTable } from '../../compose/output/table.ts';
import { type Line, lineOf, styled, wrapped } from '../../compose/output/text-style.ts';
import {
  filled,
  isEmpty,
  itemOf,
  rowOf,
  type Section,
  type Span,
  spansOf,
  type Table,
  type Text,
  type Tone,
} from '../sections.ts';

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
  const after = aside === undefined ? [] : ['  ', styled('dim', styledText(aside))];
  const heading = title === undefined ? [] : [lineOf(styled('bold', styledText(title)), ...after)];
  return [
    ...heading.flatMap((line) => wrapped(line, { width: place.width })),
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

function tableLines({ columns, rows, isBare = false }: Table, place: Place): Line[] {
  if (rows.length === 0) return [];
  const titles = columns.map((one) => {
    const title = typeof one === 'string' ? one : one.title;
    return title === '' ? '' : styled('dim', title);
  });
  const right = columns.flatMap((one, at) =>
    typeof one === 'object' && one.holds === 'numbers' ? [at] : [],
  );
  const all = rows.map(rowOf);
  const below = all.map(({ notes }) => noteLines(notes, place));
  return styledTable(
    [...(isBare ? [] : [titles]), ...all.map(({ cells }) => cells.map(styledText))],
    { ...place, right, below: [...(isBare ? [] : [[]]), ...below] },
  );
}

function noteLines(notes: readonly Text[], { indent, width }: Place) {
  return notes.flatMap((note) => wrapped(styledText(note), { indent: indent + 4, width }));
}

function styledText(text: Text): Line {
  return lineOf(...spansOf(text).map(styledSpan));
}

function styledSpan(span: Span): Line {
  if (typeof span === 'string') return span;
  if ('channel' in span) return span.channel;
  if ('record' in span) return span.name;
  if ('verbatim' in span) return span.verbatim;
  return 'tone' in span ? styled(styles[span.tone], span.text) : span.text;
}
