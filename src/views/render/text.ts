/** Prints sections in a terminal. */
import { styledTable } from '../../compose/output/table.ts';
import { type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import { filled, type Section, type Span, spansOf, type Text, type Tone } from '../sections.ts';

const styles = {
  good: 'green',
  busy: 'yellow',
  bad: 'red',
  quiet: 'dim',
} as const satisfies Record<Tone, string>;

/** Returns the lines of sections, with an empty line between two. `isAll`: with folded ones. */
export function sectionLines(sections: readonly Section[], { isAll = false } = {}): Line[] {
  const shown = filled(sections).filter(({ isFolded = false }) => isAll || !isFolded);
  return shown.flatMap((section, at) => {
    const indent = section.title === undefined && shown[0]?.title === undefined ? 0 : 2;
    return [...(at === 0 ? [] : ['']), ...linesOf(section, indent)];
  });
}

function linesOf(
  { title, facts = [], lines = [], table, none = '' }: Section,
  indent: number,
): Line[] {
  const { columns = [], rows = [], isBare = false } = table ?? {};
  const space = ' '.repeat(indent);
  const titles = columns.map((one) => (typeof one === 'string' ? one : one.title));
  const right = columns.flatMap((one, at) =>
    typeof one === 'object' && one.holds === 'numbers' ? [at] : [],
  );
  const isEmpty = facts.length + lines.length + rows.length === 0;
  const head = isBare || rows.length === 0 ? [] : [titles.map((one) => styled('dim', one))];
  return [
    ...(title === undefined ? [] : [styled('bold', title)]),
    ...styledTable(
      facts.map(([name, value]) => [name, styledText(value)]),
      { indent },
    ),
    ...lines.map((line) => lineOf(space, styledText(line))),
    ...styledTable([...head, ...rows.map((row) => row.map(styledText))], { indent, right }),
    ...(isEmpty && none !== '' ? [`${space}${none}`] : []),
  ];
}

function styledText(text: Text): Line {
  return lineOf(...spansOf(text).map(styledSpan));
}

function styledSpan(span: Span): Line {
  return typeof span === 'object' && 'tone' in span
    ? styled(styles[span.tone], span.text)
    : wordsOf(span);
}

function wordsOf(span: Span): string {
  if (typeof span === 'string') return span;
  if ('channel' in span) return span.channel;
  return 'record' in span ? span.name : span.text;
}
