/** Recognizes dates, which a workbook stores as numbers of days with a format (styles.xml). */
import type { XmlReader } from './xml-stream.ts';

/** How a number is displayed. */
export type NumberKind = 'number' | 'date' | 'time';

/** The ids of the built-in formats, which files do not describe. */
const builtIn: readonly [from: number, to: number, kind: NumberKind][] = [
  [14, 17, 'date'],
  [18, 21, 'time'],
  [22, 22, 'date'],
  [27, 31, 'date'],
  [32, 35, 'time'],
  [36, 36, 'date'],
  [45, 45, 'time'],
  [47, 47, 'time'],
  [50, 58, 'date'],
];

/** Reads styles.xml. */
export function formatReader(): XmlReader & { kinds(): NumberKind[] } {
  const codes = new Map<number, string>();
  const formats: number[] = [];
  const within: string[] = [];
  const kindOf = (format: number): NumberKind => {
    const code = codes.get(format);
    if (code !== undefined) return kindOfCode(code);
    return builtIn.find(([from, to]) => format >= from && format <= to)?.[2] ?? 'number';
  };
  return {
    opened(name, { numFmtId = '0', formatCode = '' }) {
      const parent = within.at(-1);
      within.push(name);
      if (name === 'numFmt' && parent === 'numFmts') codes.set(Number(numFmtId), formatCode);
      if (name === 'xf' && parent === 'cellXfs') formats.push(Number(numFmtId));
    },
    closed() {
      within.pop();
      return false;
    },
    /** Returns how numbers are displayed, by the style of their cells. */
    kinds: () => formats.map(kindOf),
  };
}

/** Returns what a custom format displays. Only its first section counts: positive numbers. */
function kindOfCode(code: string): NumberKind {
  // Texts, colours, conditions and languages do not make a date. A duration is a number.
  const plain = code.replaceAll(/"[^"]*"|\\.|[_*]./g, '');
  if (/\[[hms]+\]/i.test(plain)) return 'number';
  const [letters = ''] = plain.replaceAll(/\[[^\]]*\]|AM\/PM|A\/P/gi, '').split(';');
  if (/[yd]/i.test(letters)) return 'date';
  if (/[hs]/i.test(letters)) return 'time';
  return /m/i.test(letters) ? 'date' : 'number';
}

const DAY_MS = 86_400_000;
/** The days before 10000-01-01. */
const MOST_DAYS = 2_958_466;

/**
 * Converts a number of days to ISO 8601: a day, a day with a time, or a time. There is no zone,
 * because workbooks have none. Returns undefined if the number is not a date. `since1904` states
 * that the workbook counts from 1904-01-01 instead of 1900-01-00.
 */
export function isoOf(
  days: number,
  { kind, since1904 }: { kind: NumberKind; since1904: boolean },
): string | undefined {
  if (kind === 'number' || !(days >= 0 && days < MOST_DAYS)) return undefined;
  const ms = Math.round(days * DAY_MS);
  const [whole, rest] = [Math.floor(ms / DAY_MS), ms % DAY_MS];
  const time = new Date(rest).toISOString().slice(11, 23).replace('.000', '');
  if (kind === 'time' && whole === 0) return time;
  const day = since1904 ? dayAfter(Date.UTC(1904, 0, 1), whole) : dayOf1900(whole);
  return rest === 0 ? day : `${day}T${time}`;
}

/** Returns the day that Excel displays. Day 0 and the leap day of 1900 do not exist. */
function dayOf1900(days: number): string {
  if (days === 0) return '1900-01-00';
  if (days === 60) return '1900-02-29';
  return dayAfter(Date.UTC(1899, 11, days < 60 ? 31 : 30), days);
}

function dayAfter(first: number, days: number): string {
  return new Date(first + days * DAY_MS).toISOString().slice(0, 10);
}
