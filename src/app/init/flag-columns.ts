/**
 * Says which columns may be about opt-outs by what they hold. A name may be in any language and of
 * any kind: a column that looks like a flag is not passed over in silence.
 */
import { plain, isAboutOptOut, saysRefusal, isOtherName } from '../../domain/opt-out-names.ts';
import { wordOf } from '../../domain/values/record-field.ts';
import { isAddress } from '../../records/contact/values/email-address.ts';
import { holdsDates, isDate, recordsOf, isMarker, noWords, yesWords } from './column-words.ts';
import type { Column, Value } from './sample/sample.ts';

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
/** An entry of a list with more words is a sentence. */
const mostWords = 3;
/** No spaces, and no number but one digit. */
const shortWord = /^(?!.*\d\d)\S{1,6}$/u;

/**
 * Returns whether a column that is not used may say that a person must not be mailed. A value that
 * clearly says so is enough, whatever the column is named and whatever else it holds.
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

/**
 * Returns whether a column holds a text, an address or a token of each person, whatever its name
 * says: `Unsubscribe page`, `Fecha de baja` with a remark on each contract.
 */
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
    entries.every((one) => one.length <= longestWord && one.split(/\s+/).length <= mostWords);
  return isList && entries.some(isAboutOptOut);
}

/**
 * Returns whether a value refuses something, opts out, or names a bounce, complaint or death. Yes
 * and no alone do not.
 */
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
