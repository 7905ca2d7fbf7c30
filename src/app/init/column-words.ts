/**
 * The words of a column: which ones its configuration has to name, which are unknown, and whether
 * it may be about opt-outs. A column that looks like a flag is never passed over in silence.
 */
import { isMarker, wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { dateIn } from '../../records/contact/values/date-text.ts';
import { type Use, vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import {
  plain,
  isAboutOptOut,
  isOptOutField,
  saysRefusal,
  isOtherName,
} from '../../domain/opt-out-names.ts';
import type { Column, Value } from './sample.ts';
import { isPlain, shownValue } from '../../domain/unknown-words.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { isAddress } from '../../records/contact/values/email-address.ts';

/** The words of a column: `in`, `out` and `none` for a channel, `yes` and `no` for a flag. */
export type Words = Partial<Record<'in' | 'out' | 'none' | 'no', readonly string[]>> & {
  /** `any` stands for every value that is neither empty nor a no. */
  yes?: readonly string[] | 'any';
};

/** The words of a column as the user gives them. */
export type GivenWords = Omit<Words, 'no'> & {
  /** `any` stands for every other value that the sample holds, but for those that may opt out. */
  no?: readonly string[] | 'any';
};

export interface ReadColumn {
  column: Column;
  /** The values without a known meaning, the most frequent first. */
  unknown: readonly Value[];
}

export interface Chosen extends ReadColumn {
  /** Why it was proposed; undefined: the user named it. */
  why: string | undefined;
  /** The words that the configuration has to name. */
  words: Words;
}

/**
 * Reads a column by the words that the user gives, and by those of other languages; a consent that
 * is named like an opt-out, by the given words alone.
 */
export function withWords(column: Column, use: Use, all: GivenWords = {}): Chosen {
  const { no: noes, ...others } = all;
  if (noes === 'any') {
    const { unknown } = withWords(column, use, others);
    // A value that holds a term of opting out, also within a sentence, or is a date, may opt out.
    const rest = unknown.filter(({ text }) => !isAboutOptOut(text) && !isDate(text));
    return withWords(column, use, { ...others, no: rest.map(({ text }) => text) });
  }
  const given: Words = { ...others, ...(noes && { no: noes }) };
  const [yes, no] = use === 'subscription' ? (['in', 'out'] as const) : (['yes', 'no'] as const);
  const standAlone = use === 'subscription' && isOptOutField(column.name);
  const own = { yes: given[yes] ?? [], no: given[no] ?? [], none: given.none ?? [], standAlone };
  const unknownTo = (words: typeof own): Value[] => {
    const read = vocabulary(use, words, systemClock.now);
    return column.values.filter(
      ({ text }) => typeof read(column.isList ? [text] : text) === 'object',
    );
  };
  const isAny = own.yes === 'any';
  const foreign = (list: readonly string[]) =>
    (standAlone ? [] : unknownTo({ ...own, yes: isAny ? [] : own.yes })).flatMap(({ text }) =>
      list.includes(wordOf(text)) ? [text] : [],
    );
  const meant = {
    yes: own.yes === 'any' ? own.yes : [...own.yes, ...foreign(yesWords)],
    no: [...own.no, ...foreign(noWords)],
    none: own.none,
    standAlone,
  };
  const lists = Object.entries({ [yes]: meant.yes, [no]: meant.no, none: meant.none });
  const words: Words = Object.fromEntries(lists.filter(([, list]) => list.length > 0));
  return { column, why: undefined, words, unknown: unknownTo(meant) };
}

/** Returns whether most values of a column that are not empty are unknown. */
export function isUnreadable({ column, unknown }: Chosen): boolean {
  return recordsOf(unknown) * 2 > column.filled;
}

const mostMarks = 3;

/** Returns whether most values of a column would be known as a flag, or are single marks. */
export function looksLikeFlag(column: Column): boolean {
  const { unknown } = withWords(column, 'unsubscribed');
  const marks = unknown.filter(({ text }) => text.length === 1);
  // Up to three marks are ticks; more of them are grades, or numbers.
  const words = marks.length > mostMarks ? unknown : unknown.filter((one) => !marks.includes(one));
  return column.filled > 0 && recordsOf(words) * 2 < column.filled;
}

/** More unknown words than this cannot be named one by one. */
const mostWords = 12;

/** On free text, or where NULL stands for none, `yes: any` would opt out everybody. */
export function mayBeAny({ column, unknown }: ReadColumn): boolean {
  if (column.values.some(({ text }) => isMarker(text))) return false;
  return holdsDates(column) && unknown.length <= mostWords;
}

/** Returns the name of a column with its frequent values. */
export function nameWithValues(column: Column): string {
  const values = valuesOf(column);
  return values === undefined ? column.name : `${column.name} (${values})`;
}

/** Undefined: none may be shown. */
export function valuesOf(column: Column): string | undefined {
  const { values } = column;
  if (holdsDates(column)) return `dates, ${withCommas(values.length)} different`;
  const counts = frequent(values);
  return counts.length > 0 ? counts.join(', ') : undefined;
}

/** Returns whether most of the values are dates or times. */
export function holdsDates({ values, filled }: Column): boolean {
  const dates = values.filter(({ text }) => text.length >= 8 && dateIn(text, Infinity) === 'past');
  return filled > 0 && recordsOf(dates) * 2 > filled;
}

/** Returns whether a text is a date, past or not. */
export function isDate(text: string): boolean {
  return dateIn(text, Infinity) !== undefined;
}

export const mostCounted = 8;

/** Returns the values that several records hold, with their counts; others may be personal data. */
export function frequent(values: readonly Value[]): string[] {
  const plain = values.filter((value) => value.records >= 3 && isPlain(value));
  const shown = plain.slice(0, mostCounted);
  const others = values.length - shown.length;
  return [
    ...shown.map(({ text, records }) => `"${text}" ${withCommas(records)}×`),
    ...(others > 0 && shown.length > 0 ? [counted(others, 'other value')] : []),
  ];
}

/** Returns the values of a column with their counts, those of empty records last. */
export function countsOf(column: Column, records: number, asTheyAre: boolean): string {
  const { values, filled } = column;
  const shown = values
    .slice(0, mostCounted)
    .map((value) => [JSON.stringify(shownValue(value, asTheyAre)), value.records] as const);
  const rest = recordsOf(values.slice(mostCounted));
  const parts = [
    ...(holdsDates(column) ? [['dates', filled] as const] : shown),
    ...(rest > 0 && !holdsDates(column) ? [['other values', rest] as const] : []),
    ...(filled < records ? [['empty', records - filled] as const] : []),
  ];
  return parts.map(([name, count]) => `${name} ${withCommas(count)}×`).join(', ');
}

/** Returns the number of records that hold one of these values. */
export function recordsOf(values: readonly Value[]): number {
  return values.reduce((sum, { records }) => sum + records, 0);
}

/** Words for yes and no in other languages. They are proposed where a column holds them. */
export const yesWords =
  'ja oui sí si sì sim tak wahr vrai vero verdadero waar ano áno igen kyllä evet da да так ναι はい 是 예'.split(
    ' ',
  );
export const noWords =
  'nein non não nao nee nej nei nie falsch faux falso onwaar ne nem ei hayır nu нет ні όχι いいえ 否 아니요'.split(
    ' ',
  );

/** Single letters and marks for yes, which are only proposed: another may mean something else. */
export const yesMarks = 'j o s x ✓ ✔ ☑'.split(' ');

const flagWords = new Set([
  ...'true false yes no y n t f 1 0 -1 on off x j o s ✓ ✔ ☑ ☐ ✗ ✘ + - * • set checked'.split(' '),
  ...[...yesWords, ...noWords].map(wordOf),
]);

/** Beginnings of words that end or refuse something, and words that say no, by language. */
const refusals = [
  'deny|denied|refus|reject|declin|block|stop|cancel|suspend|disabl|inactiv|disallow|forbid',
  'withdraw|withdrew|revok|opt ?out|removed|lapsed|barred|banned|muted|paused',
  'gesperr|inakti|abgelehnt|gekundigt|gekuendigt|storniert|ausgetreten|widerruf|verweiger|beendet',
  'geblokkeerd|opgezegd|gestopt|sparrad|spaerret|avslut|opsagt|oppsagt',
  'inactif|bloqu|resili|desacti|anulad|cancelad|rechaz|inativ|recus|disattiv|bloccat|annullat|rifiut',
  'nieaktyw|zablok|odmow|neaktiv|zrusen|zakaz|letilt|estetty|pasif|iptal|engel|blocat|refuz',
  'отказ|заблок|отключ|стоп|відмов|вимкн|неактив',
];
const negations =
  'no|not|never|none|dont|left|kein|keine|nicht|niet|geen|non|ne|pas|nao|ikke|ingen|inte|ej|nie|nem|ei|не|нет|μη|οχι';
const refusal = new RegExp(`(?<!\\S)(?:(?:${refusals.join('|')})|(?:${negations})(?!\\S))`, 'u');

/** Words about mail, and words that deny one of them nearby: "not by mail", "Newsletter: nein". */
const ways =
  '(?:e ?)?(?:mail|mejl)\\p{L}*|epost\\p{L}*|post|news\\p{L}*|marketing\\p{L}*|contact\\p{L}*|kontakt\\p{L}*|' +
  'werb\\p{L}*|market\\p{L}*|correo\\p{L}*|reklam\\p{L}*|boletin\\p{L}*|nieuwsbrie\\p{L}*|nyhe\\p{L}*';
const nos = `(?:${negations}|nein|nee|nao|nej|nei|niemals|jamais|nunca|sans|sin|sem|senza|zonder|without)`;
const denial = new RegExp(
  `(?<!\\S)(?:${nos}(?: \\S+){0,2} (?:${ways})|(?:${ways}) (?:\\S+ )?${nos})(?!\\S)`,
  'u',
);

/** More different values than this are no states of a person. */
const mostStates = 8;
/** More different values than this are no wishes that a list offers. */
const mostWishes = 30;
const mostFlagValues = 3;
const longestWord = 40;
/** An entry of a list with as many words is a sentence. */
const sentenceWords = 4;
/** No spaces, and no number but one digit. */
const shortWord = /^(?!.*\d\d)\S{1,6}$/u;

/**
 * Returns whether an unused column may say that a person must not be mailed. A value that clearly
 * says so is enough, whatever else the column holds.
 */
export function mayBeOptOut(column: Column, records: number): boolean {
  const values = column.values.filter(({ text }) => !isMarker(text));
  const filled = recordsOf(values);
  if (filled === 0) return false;
  if (values.some(saysOptOut)) return true;
  if (isOtherName(column.name)) return false;
  const deniesMail = ({ text }: Value): boolean =>
    text.length <= longestWord && !isMachineText(text) && denial.test(plain(text));
  if (values.length <= mostWishes && values.some(deniesMail)) return true;
  if (values.length <= mostStates && values.some(refuses)) return true;
  const isMostlyEmpty = filled * 2 < records;
  if (holdsDates({ ...column, values, filled })) return isMostlyEmpty;
  if (values.length > mostFlagValues || (values.length === 1 && filled === records)) return false;
  // Two short words may be a yes and a no in a language that is not known.
  if (values.length <= 2 && !column.isList && values.every(({ text }) => shortWord.test(text)))
    return true;
  const flags = values.filter(({ text }) => flagWords.has(wordOf(text))).length;
  if (flags === values.length || flags > 1) return true;
  // What a single record holds is a remark, not a flag.
  const isRepeated = values.some((value) => value.records > 1);
  const isWord = ({ text }: Value): boolean =>
    text.length <= longestWord && !isMachineText(text) && (isDate(text) || !/\d{2}/.test(text));
  return isMostlyEmpty && isRepeated && values.every(isWord);
}

/** Returns whether each person has a text there, whatever the name says: `Unsubscribe page`. */
export function isTextOfEach({ values }: { values: readonly Value[] }, records: number): boolean {
  const texts = values.filter(
    ({ text }) => !isMarker(text) && !flagWords.has(wordOf(text)) && !mayBeDate(text),
  );
  if (recordsOf(texts) * 2 <= records) return false;
  return texts.every(({ text }) => isMachineText(text)) || texts.length > mostReasons;
}

/** More different texts than this, in most records, are no reasons for an opt-out. */
const mostReasons = 12;

function isMachineText(text: string): boolean {
  return (
    /^(?:https?:|www\.|mailto:)|^(?=.*\d)(?=.*[a-z])[\w.=-]{16,}$/i.test(text) || isAddress(text)
  );
}

/** Returns whether a text is a date, is written in digits alone, or names a year. */
function mayBeDate(text: string): boolean {
  if (isAddress(text) || /^(?:https?:|www\.)/i.test(text)) return false;
  return isDate(text) || /^[\d\W]+$/.test(text) || /(?<!\w)(?:19|20)\d\d(?!\w)/.test(text);
}

/** Returns whether a value, or an entry of a list in it, clearly opts out. No sentence does. */
export function saysOptOut({ text }: Value): boolean {
  if (!/\p{L}{3}/u.test(text) || isMachineText(text)) return false;
  if (text.length <= longestWord) return isAboutOptOut(text);
  const entries = text.split(/[,;|\n]/).map((entry) => entry.trim());
  const isList =
    entries.length > 1 &&
    entries.every((one) => one.length <= longestWord && one.split(/\s+/).length < sentenceWords);
  return isList && entries.some(isAboutOptOut);
}

/** Returns whether a value refuses something, or names a bounce, complaint or death; no is none. */
export function refuses(value: Value): boolean {
  const { text } = value;
  if (saysRefusal(text)) return true;
  if (flagWords.has(wordOf(text))) return false;
  return saysOptOut(value) || (text.length <= longestWord && refusal.test(plain(text)));
}

/** Returns whether a value is a yes, a no or a mark. */
export function isFlagWord({ text }: Value): boolean {
  return flagWords.has(wordOf(text)) || isMarker(text);
}
