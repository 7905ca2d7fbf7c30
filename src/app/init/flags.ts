/**
 * The flags of `init`, and the refusal of what cannot be decided without a guess. A refusal has the
 * flags that decide it, which are printed as one command line and on a terminal asked for; the user
 * reads what a flag states, and decides.
 */
import { type FlagsOf, type OptionRows, shellWord } from '../../compose/command-options.ts';
import { Invalid } from '../../domain/errors.ts';
import { isMarker } from '../../domain/values/record-field.ts';
import { type Use, vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { hintsFor, listed, quoted } from '../../sources/shared/record-fields.ts';
import {
  type GivenWords,
  type Chosen,
  isDate,
  mayBeAny,
  noWords,
  type ReadColumn,
  refuses,
  saysOptOut,
  yesMarks,
  yesWords,
} from './column-words.ts';
import type { Column, Value, PlatformChannel } from './sample.ts';
import { isNamedLikeRefusal } from '../../domain/opt-out-names.ts';
import { isPlain, sayUnknown } from '../../domain/unknown-words.ts';

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

/** What is known beside the flags and the columns. */
export interface Known {
  platform: readonly PlatformChannel[];
  /** Channels of the platform that get no column, if a person is asked about each. */
  leftAlone?: ReadonlySet<string> | undefined;
  asTheyAre: boolean;
}

/** What the user has said; everything else is proposed. */
export type Choices = ReturnType<typeof choicesOf>;

/** Stands for what is not shown, and for what the user has to say: it is refused as it is. */
const placeholder = 'WORD';

/** Returns what the flags decide. Throws Invalid for a flag or a column that is not understood. */
export function choicesOf(flags: Flags, columns: readonly Column[], known: Known) {
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

/** The columns of a flag: `KZ`, or `KZ,Blocked`. A column of exactly this name comes first. */
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
  return ['crm-mirror', 'init', flags.source ?? '', ...parts, '--yes'].map(shellWord).join(' ');
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
  | { about: 'flag'; column: Column; channels: readonly string[] }
  /** What a yes means in a channel's column that is named like an opt-out. */
  | { about: 'polarity'; column: Column };

export interface FlagAnswer {
  /** `unused` names a column of which only the user knows whether it says who wants no mail. */
  flags: Partial<Flags>;
  states: string;
}

/** Thrown with the option that decides it, and with the question. */
export class Undecided extends Invalid {
  readonly question: Question;
  /** The flags that are most likely right, for each problem. */
  readonly answers: readonly FlagAnswer[];
  constructor(
    reason: string,
    given: { fix: string; question: Question; answer?: FlagAnswer | undefined },
    others: readonly Undecided[] = [],
  ) {
    const { fix, question, answer } = given;
    super([{ code: 'invalid', reason, fix }, ...others.flatMap(({ problems }) => problems)]);
    this.question = question;
    this.answers = [...(answer ? [answer] : []), ...others.flatMap(({ answers }) => answers)];
  }
  with(others: readonly Undecided[]): Undecided {
    const [{ reason, fix = '' }] = this.problems;
    return new Undecided(reason, { fix, question: this.question, answer: this.answers[0] }, others);
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

/** Stands for values that are not shown, and of which the user has to say what they mean. */
const open: Value = { text: placeholder, records: Number.POSITIVE_INFINITY };

function leftOpen({ name }: Column, lists: GivenWords): FlagAnswer {
  const states = `each ${placeholder} is a value of ${quoted(name)} as you know it`;
  return { flags: { words: [wordFlag(name, lists)] }, states };
}

function optingOut({ name }: Column, yes: readonly string[] | 'any', no: readonly string[]) {
  const opting = yes === 'any' ? 'every value but a no' : listWords(yes) || 'a yes';
  const staying = no.filter((word) => word !== placeholder);
  const rest = staying.length > 0 ? `, and ${listWords(staying)} does not` : '';
  const states = `${opting} in ${quoted(name)} says that a person wants no mail${rest}`;
  return { flags: { words: [wordFlag(name, { yes, no })] }, states };
}

/**
 * In a column that is named like an opt-out, each unknown word opts out. In another one, and where
 * some words refuse something, those do; what the others mean is left to the user.
 */
export function optOutAnswer(
  { column, unknown }: ReadColumn,
  { isNamed, asTheyAre }: { isNamed: boolean; asTheyAre: boolean },
): FlagAnswer {
  if (unknown.length === 0) {
    const states = `a yes in ${quoted(column.name)} says that a person wants no mail`;
    return { flags: { unsubscribed: [column.name] }, states };
  }
  if (mayBeAny({ column, unknown })) return optingOut(column, 'any', []);
  const found = sortWords({ column, unknown }, isNamed);
  if (!found) return leftOpen(column, { yes: [placeholder], no: [placeholder] });
  const shown = (values: readonly Value[]): string[] => {
    const words = values.map((one) => (asTheyAre || isPlain(one) ? one.text : placeholder));
    return [...new Set(words)];
  };
  const yes = found.yes === 'any' ? found.yes : shown(found.yes);
  const { flags, states } = optingOut(column, yes, shown(found.no));
  const isOpen = found.no.includes(open);
  const rest = isOpen ? `, and ${placeholder} stands for the values that do not` : '';
  const masked = yes.includes(placeholder) ? ` (--addresses shows each ${placeholder})` : '';
  return { flags, states: `${states}${rest}${masked}` };
}

/** More words than this are not put into a flag. */
const mostWords = 30;

/** Undefined: the user has to say it. */
function sortWords(
  { column, unknown }: ReadColumn,
  isNamed: boolean,
): { yes: readonly Value[] | 'any'; no: readonly Value[] } | undefined {
  const isFew = unknown.length <= mostWords;
  const none = unknown.filter(({ text }) => isMarker(text));
  const words = unknown.filter((value) => !none.includes(value));
  // A mark among values that say no, such as J and N.
  const others = column.values.filter((value) => !unknown.includes(value));
  const isSingle = words.length === 1 && others.every(({ text }) => answerOf(text) === 'no');
  const yes = words.filter(isFew ? refuses : saysOptOut);
  if (isFew && (isSingle || words.length === 0)) return { yes: words, no: none };
  if (column.values.some(refuses)) {
    return { yes, no: yes.length < words.length ? [...none, open] : none };
  }
  if (isNamed) return isFew ? { yes: words, no: none } : undefined;
  return isNamedLikeRefusal(column.name) ? { yes: 'any', no: none } : undefined;
}

/** Makes consents an opt-out, in which a no opts out. Undefined: the column holds other values. */
export function denialAnswer(column: Column): FlagAnswer | undefined {
  const none = column.values.filter(({ text }) => isMarker(text));
  const words = column.values.filter((value) => !none.includes(value));
  const no = words.filter(({ text }) => answerOf(text) === 'no');
  const yes = words.filter(({ text }) => answerOf(text) === 'yes');
  if (no.length === 0 || no.length + yes.length < words.length) return undefined;
  const textsOf = (list: readonly Value[]) => list.map(({ text }) => text);
  return optingOut(column, textsOf(no), textsOf([...yes, ...none]));
}

/** Returns whether a value is a plain yes or no. A date, which means yes as a flag, is neither. */
function answerOf(text: string): unknown {
  return isDate(text) ? undefined : answers(text);
}

const answers = vocabulary('deleted', { yes: [...yesWords, ...yesMarks], no: noWords }, () => 0);

const mostListed = 6;

function listWords(words: readonly string[]): string {
  const more = words.length > mostListed ? [`${words.length - mostListed} more`] : [];
  return [...words.slice(0, mostListed).map((word) => JSON.stringify(word)), ...more].join(' or ');
}

const someWords = [placeholder, placeholder];

/** Returns the refusal of a column whose words have to be named. */
export function unreadable(
  read: Chosen,
  { use, ofChannel }: { use: Use; ofChannel?: true },
  { asTheyAre }: { asTheyAre: boolean },
): Undecided {
  const { column, unknown } = read;
  const name = quoted(column.name);
  const isConsent = use === 'subscription';
  const lists = isConsent
    ? { in: someWords, out: someWords, none: someWords }
    : { yes: someWords, no: someWords };
  const naming = `--words ${JSON.stringify(wordFlag(column.name, lists))}`;
  const any = `--words ${JSON.stringify(wordFlag(column.name, { yes: 'any' }))} if every value but a no means yes`;
  let other = 'name another column';
  if (!ofChannel && use === 'deleted') other += ', or add --no-deleted';
  if (!ofChannel && use === 'unsubscribed') {
    other = `if it says something else, add --unused ${name}; if no column says so, add --no-unsubscribed`;
  }
  // Only the user knows that a date says when somebody agreed, and not when they left.
  if (isConsent && unknown.every(({ text }) => isDate(text))) {
    const when = `record[${JSON.stringify(column.name)}] != "" ? true : null`;
    other += `; if a date in it means yes, only a file written by hand can say so: subscription: { when: '${when}' }`;
  }
  const values = unknown.map((value) => ({ ...value, unknown: 'word' as const }));
  const words = { option: '', fix: '', values, others: 0, first: '' };
  return new Undecided(`column ${name}: ${sayUnknown(words, { asTheyAre })}`, {
    fix: `say what they mean: ${!isConsent && mayBeAny(read) ? `${any}, ` : ''}${naming}; or ${other}`,
    question: { about: 'words', use, column, unknown, ...(ofChannel && { ofChannel }) },
    answer:
      use === 'unsubscribed'
        ? optOutAnswer(read, { isNamed: true, asTheyAre })
        : leftOpen(column, lists),
  });
}
