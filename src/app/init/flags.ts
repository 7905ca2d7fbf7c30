/**
 * The flags of `init`: what they say about the columns of a sample, and the refusal of what cannot
 * be decided without a guess. A refusal has the flags that decide it: printed as one command line,
 * and on a terminal asked for by a question, whose answer is a flag, too.
 */
import type { FlagsOf, OptionRows } from '../../compose/command-options.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Use } from '../../records/contact/values/value-vocabulary.ts';
import { hintsFor, listed, quoted } from '../../sources/shared/record-fields.ts';
import type { GivenWords } from './column-words.ts';
import type { PlatformChannel } from './platform-channels.ts';
import type { Column, Value } from './sample.ts';

/** The argument and the options. */
export const options = {
  '[source]':
    'an export (.csv, .tsv, .txt, .ndjson, .jsonl, .xlsx, .sqlite), an address (https://, postgres://, mysql://), hubspot or salesforce',
  yes: 'accept what is proposed, and ask nothing',
  'output <file>': {
    text: 'the configuration to write; never overwritten',
    default: 'mirror.yaml',
  },
  'mirror <name>': 'name of the mirror (default: from the name of the source)',
  'table <name>': 'the table of a database',
  'header <text...>':
    "a header for an HTTP API, with its secret from the environment: 'Authorization: Bearer ${CRM_TOKEN}'",
  'channel <id=column...>':
    'the column with the consent to a channel of the platform, such as ch_news=Newsletter',
  'opt-out <column...>':
    'a column of a --channel in which a yes is an opt-out; everything else is no opinion',
  'else-in <column...>':
    'the same for a list in which everybody is in who has not objected: a no or an empty value opts in',
  'id <column>': 'the column with the stable id of a record',
  'email <column>': 'the column with the email address',
  'unsubscribed <column>': {
    text: 'a column that says that a person wants no mail at all, or several as A,B; those that are named so need no flag',
    parse: (column: string, before: unknown): unknown[] => [before || [], column].flat(),
  },
  'no-unsubscribed': 'no column says so',
  'unused <column...>':
    'a column that is named or looks like an opt-out and says something else, or several as A,B; a comma within a name is written \\,',
  'deleted <column>': 'the column that says that a person is gone',
  'no-deleted': 'no column says so',
  'words <column:in=word,word...>':
    'what all words of a column mean, such as KZ:yes=X,no=Y: in, out or none for a channel, otherwise yes (wants no mail, or is gone) or no; a comma within a word is written \\,',
  addresses: 'show addresses and values also where stdout is no terminal',
} satisfies OptionRows;

type Paired = `${'unsubscribed' | 'deleted'} <column>` | `no-${string}`;

/** The flags as commander parses them, and the argument. */
export type Flags = FlagsOf<Omit<typeof options, Paired>> & {
  /** A file, an address, `hubspot` or `salesforce`. */
  source?: string | undefined;
  /** false: no column says so. */
  unsubscribed?: string[] | false | undefined;
  deleted?: string | false | undefined;
};

/** What the user has said; everything else is proposed. */
export interface Choices {
  id: string | undefined;
  email: string | undefined;
  /** false: no column, whatever is recognized. */
  unsubscribed: readonly string[] | false | undefined;
  deleted: string | false | undefined;
  /** Columns that are named or look like an opt-out, and are none. */
  unused: readonly string[];
  channels: readonly { id: string; column: string }[];
  /** Columns of channels in which a yes is an opt-out. */
  optOut: readonly string[];
  /** The same, and everybody else is opted in. */
  elseIn: readonly string[];
  words: ReadonlyMap<string, GivenWords>;
  platform: readonly PlatformChannel[];
  /** Channels of the platform that get no column, if a person is asked about each. */
  leftAlone?: ReadonlySet<string> | undefined;
  asTheyAre: boolean;
}

/** What is known beside the flags and the columns. */
export type Known = Pick<Choices, 'platform' | 'leftAlone' | 'asTheyAre'>;

/** Stands for what is not shown, and for what the user has to say: it is refused as it is. */
export const placeholder = 'WORD';

/** Returns what the flags decide. Throws Invalid for a flag or a column that is not understood. */
export function choicesOf(flags: Flags, columns: readonly Column[], known: Known): Choices {
  const { id, email, unsubscribed, unused = [], deleted, channel = [] } = flags;
  const { optOut = [], elseIn = [] } = flags;
  const channels = channel.map((text) => {
    const [id, column] = idAndColumn(text);
    if (id !== '' && column !== '') return { id, column };
    throw new Invalid(`--channel ${text} does not name a channel and its column`, {
      fix: 'write ID=COLUMN, such as ch_news=Newsletter',
    });
  });
  const words = wordsOf(flags.words ?? []);
  for (const [name, lists] of words) {
    const { values } = columnNamed(columns, name, '--words …');
    // A proposed flag has it in the place of what the user has to say.
    const isOpen = Object.values(lists).some((list) => list.includes(placeholder));
    if (!isOpen || values.some(({ text }) => text === placeholder)) continue;
    throw new Invalid(`--words: ${placeholder} is no value of column ${quoted(name)}`, {
      fix: 'write the values that it stands for, or --unused if the column says nothing about mail',
    });
  }
  const namesIn = (lists: readonly string[], option: string): string[] => {
    const names = lists.flatMap((list) => columnsIn(list, columns));
    return names.map((name) => columnNamed(columns, name, `--${option} …`).name);
  };
  const none = namesIn(unused, 'unused');
  const all = unsubscribed && namesIn(unsubscribed, 'unsubscribed');
  const named = { id, email, deleted, unsubscribed: all, unused: none };
  return { ...named, channels, optOut, elseIn, words, ...known };
}

/** Splits a channel at its first `=`; without one, both are empty. */
export function idAndColumn(channel: string): [id: string, column: string] {
  const at = channel.indexOf('=');
  return at < 0 ? ['', ''] : [channel.slice(0, at), channel.slice(at + 1)];
}

/** Returns the column of this name. Throws Invalid, with what to correct, if there is none. */
export function columnNamed(columns: readonly Column[], name: string, option: string): Column {
  const column = columns.find((one) => one.name === name);
  if (column) return column;
  const names = columns.map((one) => one.name);
  const hints = hintsFor([name], names).map((hint) => `; ${hint}`);
  const reason = `there is no column ${quoted(name)}; columns found: ${listed(names)}`;
  throw new Invalid(reason + hints.join(''), { fix: `correct ${option}` });
}

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

/** Returns the flag that names words of a column, without lists that are empty. */
export function wordFlag(
  column: string,
  words: Readonly<Record<string, readonly string[] | 'any'>>,
): string {
  const lists = Object.entries(words).flatMap(([name, list]) => {
    const text = list === 'any' ? list : list.map(escaped).join(',');
    return text === '' ? [] : [`${name}=${text}`];
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

/** Returns the flags with more of them: a list is continued, and another value is replaced. */
export function withFlags(flags: Flags, more: Partial<Flags>): Flags {
  const before = new Map(Object.entries<Flags[keyof Flags]>({ ...flags }));
  const merged = Object.entries<Flags[keyof Flags]>({ ...more }).map(([name, value]) => {
    const known = before.get(name);
    const isList = Array.isArray(known) && Array.isArray(value);
    return [name, isList ? [...new Set([...known, ...value])] : value] as const;
  });
  return { ...flags, ...Object.fromEntries(merged) };
}

const order = [
  ...(['output', 'mirror', 'table', 'id', 'email', 'unsubscribed', 'deleted'] as const),
  ...(['header', 'unused', 'channel', 'optOut', 'elseIn', 'words'] as const),
];

/** Returns the command line that does the same without questions. */
export function commandLine(flags: Flags): string {
  const parts = order.flatMap((name) => {
    const value = flags[name];
    const flag = name.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`);
    if (value === undefined || (name === 'output' && value === 'mirror.yaml')) return [];
    if (value === false) return [`--no-${flag}`];
    if (name === 'unsubscribed') return [value].flat().flatMap((one) => [`--${flag}`, one]);
    return value.length > 0 ? [`--${flag}`, ...[value].flat()] : [];
  });
  const inShell = (text: string): string =>
    /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return ['crm-mirror', 'init', flags.source ?? '', ...parts, '--yes'].map(inShell).join(' ');
}

/** What is to be decided: the column for a purpose, or the words of a column. */
export type Question =
  | {
      about: 'id' | 'email' | 'deleted' | 'table';
      /** The columns or tables that come into question; empty: any. */
      among: readonly string[];
    }
  /** `channels` are those that have a column, as in `--channel`. */
  | { about: 'channels'; among: readonly string[]; channels: readonly string[] }
  | {
      about: 'words';
      use: Use;
      /** Whether the column is the opt-out of a channel, not of all mail. */
      ofChannel?: true;
      column: Column;
      unknown: readonly Value[];
    }
  /** What a flag says. */
  | { about: 'flag'; column: Column; channels: readonly string[] }
  /** What a yes means in a channel's column that is named like an opt-out. */
  | { about: 'polarity'; column: Column };

/** Flags that decide something, and what they state about the data. */
export interface FlagAnswer {
  /** `unused` names a column of which only the user knows whether it says who wants no mail. */
  flags: Partial<Flags>;
  states: string;
}

interface Given {
  fix: string;
  question: Question;
  answer?: FlagAnswer | undefined;
  others?: readonly Undecided[];
}

/** Thrown with the option that decides it, and with the question. */
export class Undecided extends Invalid {
  readonly question: Question;
  /** The flags that are most likely right, for each problem. */
  readonly answers: readonly FlagAnswer[];
  constructor(reason: string, { fix, question, answer, others = [] }: Given) {
    super([{ code: 'invalid', reason, fix }, ...others.flatMap(({ problems }) => problems)]);
    this.question = question;
    this.answers = [...(answer ? [answer] : []), ...others.flatMap(({ answers }) => answers)];
  }
  /** Returns the same refusal with the problems of others. */
  with(others: readonly Undecided[]): Undecided {
    const [{ reason, fix = '' }] = this.problems;
    const [answer] = this.answers;
    return new Undecided(reason, { fix, question: this.question, answer, others });
  }
}

/** Returns the refusal with the command line as its last problem. */
export function withAnswerLine({ problems, answers }: Undecided, flags: Flags): Invalid {
  if (answers.length === 0) return new Invalid(problems);
  const open = answers.flatMap((one) => one.flags.unused ?? []).map(quoted);
  const stated = answers.filter((one) => one.flags.unused === undefined);
  const statements = stated.map(({ states }) => states);
  if (open.length > 0) {
    const [those, say] = open.length === 1 ? ['', 'if it says'] : ['those of ', 'that say'];
    statements.push(
      `COLUMN stands for ${those}${open.join(', ')} ${say} nothing about who wants no mail`,
    );
  }
  const reason = `all of it in one line, if this is true: ${statements.join('; ')}`;
  const optOuts = stated.flatMap((one) => one.flags.unsubscribed || []);
  const all = [
    ...stated.map(({ flags: { unsubscribed: _, ...others } }) => others),
    ...(optOuts.length > 0 ? [{ unsubscribed: [columnFlag(optOuts)] }] : []),
    ...(open.length > 0 ? [{ unused: ['COLUMN'] }] : []),
  ];
  const fix = commandLine(all.reduce<Flags>(withFlags, flags));
  return new Invalid([...problems, { code: 'invalid', reason, fix }]);
}
