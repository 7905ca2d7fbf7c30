/** Recognizes in two dozen languages what a column is about, by its name. */
import { aboutLinks, falseFriends, namesOfNo, neutralWords, optOutTerms } from './opt-out-terms.ts';
import { plain, termFinder } from './name-terms.ts';

/** Names of deletions, in more languages than `deleted` is proposed for. */
const deletionNames = [
  /delet|gel(o|oe)scht|archiv|arkiv|supprim|elimin|anulad|borrad|cancellat|verwijder|removed/,
  /slettet|raderad|borttag|poistettu|usuniet|smazan|torolt|\bsters|silindi|удален|видален/,
];

/** Columns about other ways to reach a person. */
const aboutOtherWays =
  /sms|(?<!co)mms|fax|phone|telefon|tele|whatsapp|call|mobile|handy|push|postal|anruf|llamar|bellen|звон/;
/** Columns about why, how, or in which campaign, a person opted out. */
const aboutReasons =
  /reason(?! enum)|grund|campaign|comment|source|method|\breden|raison|moti[fv]|razon|powod|duvod|syy\b|\bby$/;

/**
 * Returns what a name says: an opt-out, something about one, such as its reason or that of another
 * medium, or a deletion. Undefined: none of these.
 */
export function namedLike(name: string): 'opt-out' | 'reason' | 'other' | 'deletion' | undefined {
  const text = plain(name);
  if (saysOptOut(text)) {
    if (isAboutOtherWays(text)) return 'other';
    return aboutReasons.test(text) ? 'reason' : 'opt-out';
  }
  return deletionNames.some((form) => form.test(text)) ? 'deletion' : undefined;
}

/** Returns whether a name is about other ways to reach a person than email. */
export function isAboutOtherWays(name: string): boolean {
  const text = plain(name);
  return aboutOtherWays.test(text) && !/mail|newsletter/.test(text);
}

/** Returns whether a name says that a person must not be mailed. */
export function isNamedLikeOptOut(name: string): boolean {
  return namedLike(name) === 'opt-out';
}

/** Returns whether a text says that a person opted out of something, or why. */
export function isAboutOptOut(text: string): boolean {
  return saysOptOut(plain(text));
}

/**
 * Returns whether the name of a column, or the dotted path of a field, holds a term of opting out,
 * whatever else it says, or begins with a no: "No events". Its values are not read by the built-in
 * words of a subscription, because a yes may mean no mail, also in "Opt-out page" or "not
 * unsubscribed": the user says what it means.
 */
export function isOptOutField(field: string): boolean {
  if (terms.find(plain(field)).next().done !== true) return true;
  return refusing.test(plain(field.slice(field.lastIndexOf('.') + 1)));
}

/** The beginnings of a name that say no. A number is none: "No 1 news". */
const refusing = new RegExp(`^(?:${namesOfNo.join('|')}) \\p{L}`, 'u');

const neutral = neutralWords.flatMap((row) => row.split('|'));
const terms = termFinder(optOutTerms, neutral);
const friends = termFinder(falseFriends, neutral);
const links = new RegExp(`(?<!\\S)(?:${aboutLinks.join('|')})(?!\\S)`, 'u');
/** The same at the end of a word: `unsubscribeurl`, `abmeldequote`. */
const gluedLinks = /(?:url|(?<!mail)uri|links?|token|hash|quote|seite)(?!\S)/u;
/** The same after a term: `unsubscribecount`. */
const gluedCounts = /(?:scribe|optout|bounce)(?:count|rate|page)/u;
/** Before a term they turn it around: "not opted out". */
const negated = /(?<!\S)(?:not|no|never|nicht|keine?|non|ikke|inte|ej|niet|geen|nao|nie) $/;

function saysOptOut(name: string): boolean {
  let text = name;
  for (const { start, end } of friends.find(name))
    text = `${text.slice(0, start)}${' '.repeat(end - start)}${text.slice(end)}`;
  text = text.replaceAll(/ +/g, ' ').trim();
  if ([links, gluedLinks, gluedCounts].some((form) => form.test(text))) return false;
  for (const { start } of terms.find(text)) if (!negated.test(text.slice(0, start))) return true;
  return false;
}
