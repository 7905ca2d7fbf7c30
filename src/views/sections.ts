/**
 * What is shown of a subject, alike in a terminal, in a browser and in a file. A view makes a
 * document of facts, which is the JSON, and sections from it; the renderers in render/ print them.
 */
import type { Key, RecordTypeName } from '../domain/record.ts';

/** How something stands: well, under way, or so that somebody has to act; `quiet` is an aside. */
export type Tone = 'good' | 'busy' | 'bad' | 'quiet';

/** A part of a text. In a string, `words in backticks` are code, and times in UTC are times. */
export type Span =
  | string
  | { tone: Tone; text: string }
  /** When something happened, among others of one minute: a browser shows the second, too. */
  | { moment: string }
  /** What decides among other facts. */
  | { strong: string }
  /** The id of a channel; a browser shows its name. */
  | { channel: string }
  /** A record, under the name that the reader may see; a browser links a person to their page. */
  | { record: { kind: RecordTypeName; key: Key }; name: string }
  /** A time; a browser shows how long ago that was, and the time as a title. */
  | { at: string; ago: string }
  /** A page of the console; elsewhere its text. */
  | { page: string; text: string }
  /** A text as it is, which may have several lines. */
  | { verbatim: string };

/** A line, a value or a cell. */
export type Text = Span | readonly Span[];

/** What became of a record: it was added, removed, changed, refused, or left as it was. */
export type Sign = '+' | '−' | '~' | '!' | '·';

export interface Item {
  /** By this id, a page of the console adds forms. */
  id?: string | undefined;
  sign?: Sign | undefined;
  text: Text;
  notes: readonly Text[];
}

/** The cells of a row. The notes are about all of it; by the id, a page adds forms. */
export type TableRow =
  | readonly Text[]
  | { id?: string; cells: readonly Text[]; notes: readonly Text[] };

/**
 * A column: its title alone if it has text. Numbers are at the right; a name heads its row; a
 * browser leaves out marks, such as + and -.
 */
export type TableColumn = string | { title: string; holds: 'numbers' | 'names' | 'marks' };

/** Returns a column with numbers. */
export function numbers(title: string): TableColumn {
  return { title, holds: 'numbers' };
}

/** Returns a column with the names of the rows. */
export function names(title: string): TableColumn {
  return { title, holds: 'names' };
}

/** A table; a terminal leaves out the titles if it `isBare`. */
export interface Table {
  columns: readonly TableColumn[];
  rows: readonly TableRow[];
  isBare?: boolean | undefined;
  /** The titles of columns that a terminal too narrow for all leaves out, the first one first. */
  leavesOut?: readonly string[];
}

/** Something that happened; a terminal leaves out its facts unless all is asked for. */
export interface Happening {
  at: string;
  title: Text;
  facts: readonly (readonly [name: string, value: Text])[];
  /** Long texts as they are, which a browser folds. */
  texts?: readonly (readonly [name: string, text: string])[];
}

/** How many of how many, and how many are allowed; a browser draws it as a bar. */
interface Measure {
  text: string;
  n: number;
  of: number;
  most: number;
}

/** A part of what is shown. What it has is shown in the order of these fields. */
export interface Section {
  /** By this id, a page of the console adds forms. */
  id?: string | undefined;
  /** Without one, the section continues the one before. */
  title?: Text | undefined;
  /** What stands behind the title, less prominent. */
  aside?: Text | undefined;
  measure?: Measure | undefined;
  facts?: readonly (readonly [name: string, value: Text])[] | undefined;
  /** Paragraphs; a browser shows those that belong to a `list` as one. */
  lines?: readonly (Text | Item)[] | undefined;
  isList?: boolean | undefined;
  table?: Table | undefined;
  happened?: readonly Happening[] | undefined;
  /** What stands in the place of a section that has nothing to show; without it, it is left out. */
  none?: string | undefined;
  /** Whether a browser folds the section; a terminal leaves it out unless all is asked for. */
  isFolded?: boolean | undefined;
}

/** Returns the sections that have something to show. */
export function filled(sections: readonly Section[]): Section[] {
  return sections.filter((section) => section.none !== undefined || !isEmpty(section));
}

/** Returns whether a section has nothing to show. */
export function isEmpty(section: Section): boolean {
  const { measure, facts = [], lines = [], table, happened = [] } = section;
  if (measure) return false;
  return facts.length + lines.length + (table?.rows.length ?? 0) + happened.length === 0;
}

/** Returns the values that are there, such as the lines whose condition holds. */
export function present<Value>(...values: readonly (Value | false | undefined | null)[]): Value[] {
  return values.flatMap((one) => (one === false || one === undefined || one === null ? [] : [one]));
}

/** Returns spans as a list with commas. */
export function listed(spans: readonly Span[]): Span[] {
  return spans.flatMap((span, at) => (at === 0 ? [span] : [', ', span]));
}

/** Returns a line with its notes. */
export function itemOf(line: Text | Item): Item {
  return typeof line === 'object' && 'notes' in line ? line : { text: line, notes: [] };
}

/** Returns a row with its notes. */
export function rowOf(row: TableRow): Exclude<TableRow, readonly Text[]> {
  return 'cells' in row ? row : { cells: row, notes: [] };
}

/** Returns the spans of a text. */
export function spansOf(text: Text): readonly Span[] {
  return typeof text === 'object' && !('length' in text) ? [text] : [text].flat();
}
