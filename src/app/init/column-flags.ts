/** Reads and writes the flags that name columns and their words. */
import { Invalid } from '../../domain/errors.ts';
import type { GivenWords } from './column-words.ts';

/**
 * Returns the columns that a flag names: `KZ`, or several as `KZ,Blocked`. A column of exactly this
 * name comes first; `\,` is a comma within a name.
 */
export function columnsIn(list: string, columns: readonly { name: string }[]): string[] {
  const has = (text: string): boolean => columns.some(({ name }) => name === text);
  return has(list) ? [list] : itemsIn(list).map((item) => (has(item) ? item : item.trim()));
}

/** Returns the flag that names these columns. */
export function columnFlag(names: readonly string[]): string {
  return names.map(escaped).join(',');
}

const meaning = '(?:in|out|none|yes|no)';
const ofColumn = new RegExp(`^(?<column>.+?):(?<lists>${meaning}=.+)$`, 's');
const nextList = new RegExp(String.raw`(?<!\\),(?=${meaning}=)`);

/** Returns the words of each column. `Consent:in=Ja,Yes,out=Nein` are two lists of one column. */
export function wordsOf(all: readonly string[]): Map<string, GivenWords> {
  const byColumn = new Map<string, GivenWords>();
  for (const text of all) {
    const { column, lists } = ofColumn.exec(text)?.groups ?? {};
    const parts = lists?.split(nextList).map((part) => /^(\w+)=(.+)$/s.exec(part)) ?? [];
    if (column === undefined || parts.includes(null)) {
      throw new Invalid(`--words ${text} is not understood`, {
        fix: 'write COLUMN:in=WORD,WORD,out=WORD; a list begins with in, out, none, yes or no',
      });
    }
    const words: Record<string, readonly string[] | 'any'> = { ...byColumn.get(column) };
    for (const [, name = '', list = ''] of parts.filter((part) => part !== null)) {
      const before = words[name] ?? [];
      const isAny = before === 'any' || (['yes', 'no'].includes(name) && list === 'any');
      words[name] = isAny
        ? 'any'
        : [...new Set([...before, ...itemsIn(list).map((word) => word.trim())])];
    }
    if (words['yes'] === 'any' && words['no'] === 'any') {
      throw new Invalid(`--words ${text}: every value would be a yes and a no`, {
        fix: 'name the words of one of them',
      });
    }
    byColumn.set(column, words);
  }
  return byColumn;
}

/** Returns the flag that names words of a column. */
export function wordFlag(
  column: string,
  words: Readonly<Record<string, readonly string[] | 'any'>>,
): string {
  const lists = Object.entries(words).map(([name, list]) => {
    return `${name}=${list === 'any' ? list : list.map(escaped).join(',')}`;
  });
  return `${column}:${lists.join(',')}`;
}

/** Splits a list at its commas; `\,` is a comma within an item. */
function itemsIn(list: string): string[] {
  return list.split(/(?<!\\),/).map((item) => item.replaceAll(/\\([,=])/g, '$1'));
}

/** Escapes commas, and what would begin another list: the word `no=1`. */
function escaped(item: string): string {
  const plain = item.replaceAll(',', String.raw`\,`);
  return plain.replace(new RegExp(`^(${meaning})=`), String.raw`$1\=`);
}
