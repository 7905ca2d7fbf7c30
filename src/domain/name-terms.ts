/**
 * Looks for the terms of a table in a name: `unsubscrib*`, `{mail|send}`, `do not … mail`. The
 * words of a term may be written as one word, and a name without spaces may have neutral words
 * before, within and after a term: `hasoptedoutofemail`.
 */

/** The parts of a term between gaps, as expressions that begin at a given place. */
type Term = readonly RegExp[];

/** The maximum number of neutral words in a row. */
const mostNeutral = 4;
/** Scripts that write no spaces between words. */
const spaceless = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** Returns the finder of a table, prepared at its first use. `neutral` words change no term. */
export function termFinder(
  table: Readonly<Record<string, readonly string[]>>,
  neutral: readonly string[],
) {
  let prepared: ReturnType<typeof prepare> | undefined;
  return {
    /** Yields where terms begin and end in a name in `plain` form. */
    *find(name: string): Generator<{ start: number; end: number }, void> {
      prepared ??= prepare(Object.values(table).flat(), neutral);
      const gaps = gapsIn(name, prepared);
      const starts = [...name.matchAll(/(?<!\S)\S/g)].flatMap(({ index }) => gaps.glued(index));
      for (const start of new Set(starts)) {
        for (const term of prepared.termsAt(name, start)) {
          const end = endOf(term, name, start, gaps);
          if (end !== undefined) yield { start, end };
        }
      }
      for (const term of spaceless.test(name) ? prepared.anywhere : []) {
        for (const { 0: found, index } of name.matchAll(term)) {
          yield { start: index, end: index + found.length };
        }
      }
    },
  };
}

function prepare(rows: readonly string[], neutral: readonly string[]) {
  const words = neutral.map(plain);
  const isSpaced = (row: string): boolean => !spaceless.test(row);
  return {
    anywhere: rows.filter((row) => !isSpaced(row)).map((row) => expression(row, 'gu')),
    termsAt: indexTerms(rows.filter(isSpaced)),
    words: new Set(words),
    // The first two letters of all that may stand beside another word without a space.
    beginnings: new Set([...words, ...shortGlued].map((word) => word.slice(0, 2))),
  };
}

/** By how many letters terms are looked up. */
const sizes = [1, 2, 3];

/** Returns the function that finds the terms that may begin at a place in a name. */
function indexTerms(rows: readonly string[]): (name: string, start: number) => Term[] {
  const byLetters = new Map<string, Term[]>();
  for (const row of rows) {
    const term = row.split(' … ').map((part) => expression(part, 'uy'));
    // The first letters of a term: `{opt|opts} out` begins with `opt`.
    const [, choice, literal = ''] = /^(?:\{([^}]*)\}|([^{]*))/.exec(row) ?? [];
    const texts = (choice ?? literal).split('|').map((text) => text.replace(/[*…].*$/s, ''));
    const all = texts.map((text) => plained(text).replaceAll(' ', '').slice(0, sizes.length));
    for (const letters of new Set(all)) {
      byLetters.set(letters, [...(byLetters.get(letters) ?? []), term]);
    }
  }
  return (name, start) => {
    const letters = name.slice(start, start + 2 * sizes.length).replaceAll(' ', '');
    const found = sizes.filter((size) => size <= letters.length);
    return found.flatMap((size) => byLetters.get(letters.slice(0, size)) ?? []);
  };
}

/** Returns where a term that begins at a place ends; undefined: it does not, or within a word. */
function endOf(
  [part, ...rest]: Term,
  name: string,
  start: number,
  gaps: ReturnType<typeof gapsIn>,
): number | undefined {
  if (!part) return gaps.glued(start).find((end) => end === name.length || name[end] === ' ');
  part.lastIndex = start;
  const [found] = part.exec(name) ?? [];
  if (found === undefined) return undefined;
  const end = start + found.length;
  if (rest.length === 0) return endOf([], name, end, gaps);
  const next = [...gaps.spaced(end), ...gaps.glued(end)];
  return next.map((at) => endOf(rest, name, at, gaps)).find((at) => at !== undefined);
}

/** Words of fewer letters are too likely to be a part of another word. */
const leastGlued = 4;
const shortGlued = new Set('is has of at on by to for the all dt flg crm me'.split(' '));
const mostLetters = 16;

function gapsIn(name: string, { words, beginnings }: ReturnType<typeof prepare>) {
  /** Returns the places that neutral words without spaces lead to; the first is `from`. */
  const glued = (from: number, left = mostNeutral): number[] => {
    const places = [from];
    if (left === 0 || !beginnings.has(name.slice(from, from + 2))) return places;
    for (let size = 2; size <= mostLetters && from + size <= name.length; size += 1) {
      const word = name.slice(from, from + size);
      if (size >= leastGlued ? words.has(word) : shortGlued.has(word))
        places.push(...glued(from + size, left - 1));
    }
    return places;
  };
  /** Returns the places that neutral words of their own lead to, each after a space. */
  const spaced = (from: number, left = mostNeutral): number[] => {
    if (name[from] !== ' ') return [];
    const [word = ''] = name.slice(from + 1).split(' ', 1);
    const isNeutral = left > 0 && words.has(word);
    return [from + 1, ...(isNeutral ? spaced(from + 1 + word.length, left - 1) : [])];
  };
  return { spaced, glued };
}

/** Returns the expression of a part of a term. Of several words the longest is tried first. */
function expression(part: string, flags: string): RegExp {
  const longest = (choice: string): string =>
    `(?:${choice
      .split('|')
      .toSorted((a, b) => b.length - a.length)
      .join('|')})`;
  const source = plained(part)
    .replaceAll(/\{([^}]*)\}/g, (_, choice: string) => longest(choice))
    .replaceAll(' ', ' ?')
    .replaceAll('*', String.raw`\p{L}*`);
  return new RegExp(source, flags);
}

function plained(part: string): string {
  return part.replaceAll(/[^ {|}*]+/g, plain);
}

/** The maximum number of characters of a name that are looked at. */
const mostCharacters = 1_000;
/** Letters that Unicode does not decompose. */
const letters: Readonly<Record<string, string>> = {
  ł: 'l',
  ø: 'o',
  đ: 'd',
  ı: 'i',
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
};

/** Returns a name in lower case as words with single spaces, without marks on letters. */
export function plain(name: string): string {
  return name
    .slice(0, mostCharacters)
    .replaceAll(/(\p{Ll})(\p{Lu})|(\p{Lu})(?=\p{Lu}\p{Ll})/gu, '$1$3 $2')
    .replaceAll(/n['’]t\b/gi, 'nt')
    .normalize('NFKD')
    .replaceAll(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll(/[łøđıßæœ]/g, (letter) => letters[letter] ?? letter)
    .replaceAll(/[^\p{L}\p{N}]+|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/gu, ' ')
    .replaceAll(/(?<!\S)e mail|email|courriel/g, 'mail')
    .trim();
}
