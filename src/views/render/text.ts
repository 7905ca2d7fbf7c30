/** Prints sections in a terminal. */
import { table } from '../../compose/output/table.ts';
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
  return filled(sections)
    .filter(({ isFolded = false }) => isAll || !isFolded)
    .flatMap((section, at) => [...(at === 0 ? [] : ['']), ...linesOf(section)]);
}

function linesOf({ title, facts = [], lines = [], table: shown, none = '' }: Section): Line[] {
  const indent = title === undefined ? 0 : 2;
  const space = ' '.repeat(indent);
  const titles = shown?.columns.map((one) => (typeof one === 'string' ? one : one.title)) ?? [];
  const right = (shown?.columns ?? []).flatMap((one, at) =>
    typeof one === 'object' && one.holds === 'numbers' ? [at] : [],
  );
  const isEmpty = facts.length + lines.length + (shown?.rows.length ?? 0) === 0;
  return [
    ...(title === undefined ? [] : [styled('bold', title)]),
    ...table(
      facts.map(([name, value]) => [name, plainText(value)]),
      { indent },
    ),
    ...lines.map((line) => lineOf(space, ...spansOf(line).map(styledSpan))),
    ...(shown && shown.rows.length > 0
      ? table([titles, ...shown.rows.map((row) => row.map(plainText))], { indent, right })
      : []),
    ...(isEmpty ? [`${space}${none}`] : []),
  ];
}

/** Returns a text without colours. */
function plainText(text: Text): string {
  return spansOf(text).map(wordsOf).join('');
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
