/** Says what is wrong with the syntax of a YAML file, in this project's own words. */
import type { YAMLError } from 'yaml';
import type { ConfigPlace, Mistake } from './config-mistake.ts';

/**
 * Returns the mistakes of a file with syntax errors. Each line gets at most one, because the others
 * follow from it. The parser's own wording is not used, because it may quote values.
 */
export function syntaxMistakes(
  faults: readonly YAMLError[],
  source: string,
  placeAt: (offset: number) => ConfigPlace,
): Mistake[] {
  const signs = signsIn(source);
  const byLine = new Map<number, Mistake>();
  for (const fault of faults) {
    const at = placeAt(fault.pos[0]);
    const sign = signOf(signs, at);
    const place = sign ? { line: sign.line, col: sign.col } : at;
    const [wrong, mend] = sign
      ? ['YAML reads this sign in its own way', `put the word in quotes: "${sign.word}"`]
      : (syntax[fault.code] ?? ['is no valid YAML here', 'see config/mirror.yaml']);
    if (!byLine.has(place.line)) byLine.set(place.line, { path: [], place, wrong, mend });
  }
  return [...byLine.values()];
}

/** A word of a list that begins with a sign of YAML and stands without quotes. */
interface Sign extends ConfigPlace {
  word: string;
}

const signs = /(?<=[[,][ \t]*)(?:[-*&@%!|>?`](?=[ \t]*[,\]])|#[^,\]\s]*(?=[^\n]*[\]}]))/g;

/** Finds such words in lists that stand on one line: `[-]`, `[Ja, #1]`. */
function signsIn(source: string): Sign[] {
  return source.split('\n').flatMap((text, at) =>
    [...text.matchAll(signs)].map(({ 0: word, index }) => ({
      line: at + 1,
      col: index + 1,
      word,
    })),
  );
}

/** Returns the word that explains a fault: on its line, or a comment that began just before it. */
function signOf(found: readonly Sign[], { line }: ConfigPlace): Sign | undefined {
  const before = found.filter((sign) => sign.line < line && sign.word[0] === '#');
  return found.find((sign) => sign.line === line) ?? before.at(-1);
}

const syntax: Partial<Record<YAMLError['code'], [wrong: string, mend: string]>> = {
  TAB_AS_INDENT: ['a tab is used to indent', 'use spaces'],
  BAD_INDENT: ['the indentation does not fit the lines above', 'indent by two spaces a level'],
  BLOCK_AS_IMPLICIT_KEY: [
    'a key stands where the value above or before it goes on',
    'indent keys of one level alike, and quote values that hold ": "',
  ],
  MISSING_CHAR: ['a quote, bracket or colon is missing', 'close what was opened'],
  BAD_SCALAR_START: ['a value may not begin with this character', 'put the value in quotes'],
  BAD_DQ_ESCAPE: ['an unknown escape stands in double quotes', 'use single quotes'],
  MULTIPLE_DOCS: ['a second document begins', 'keep one mirror in a file, without ---'],
  TAG_RESOLVE_FAILED: ['a tag (!name) is not known here', 'remove it'],
};
