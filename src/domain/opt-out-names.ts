/**
 * Recognizes in two dozen languages what a column is about, by its name: an opt-out, another sign
 * that a person must not be mailed, or something that is never about consent. Values are looked
 * at for the same signs.
 */
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

/** Returns what a name says: an opt-out, something about one, or a deletion; else undefined. */
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

/** Signs besides opting out that a person must not be mailed: a bounce, a block, a death. */
const signTerms: Readonly<Record<string, readonly string[]>> = {
  English: [
    '{deceased|died|passed away|death|date of death|spam|abuse|bounc*|complain*|complaint*}',
    '{block|blocked|blocklisted|blacklist*|banned|barred|suppress*|quarantin*|on hold}',
    '{cleaned|clean time|clean date|clean campaign|clean reason}',
    '{anonymi*|pseudonymi*|redacted|undeliver*|invalid|user unknown|mailbox}',
  ],
  German: [
    '{verstorben*|gestorben|todesdatum|todestag|todesfall|sterbedatum|sterbetag|beschwerde*}',
    '{gesperrt*|sperre|sperrung|sperrkz|sperrdatum|sperrvermerk|anonymisier*|unzustellbar*|ungultig*}',
  ],
  'French, Spanish, Portuguese, Italian, Romanian': [
    '{decede*|deces|plainte*|bloque*|anonymise*|npai|rejete*|injoignable*}',
    '{fallecid*|difunto|difunta|defuncion|queja|quejas|bloquead*|rebotad*|rebote|anonimiza*}',
    '{falecid*|obito|queixa*|reclamacao|reclamacoes|devolvid*}',
    '{deceduto|deceduta|decesso|defunto|defunta|reclamo|reclami|bloccat*|respint*|rimbalz*}',
    '{decedat*|plangere|plangeri|reclamatie|blocat*|respins*}',
  ],
  'Dutch, Danish, Norwegian, Swedish': [
    '{overleden*|overlijden*|klacht*|geblokkeerd*|geanonimiseerd*|onbestelbaar}',
    '{afdod*|avdod*|dodsdato|klage|klager|klaget|spaerret|sperret|blokeret|blokkert|anonymiser*}',
    '{avliden*|avled|dodsdatum|klagomal|sparrad*|blockerad*|anonymiserad*|studsa*}',
  ],
  'Polish, Czech, Slovak, Hungarian, Finnish, Turkish': [
    '{zmarl*|zgon|zgonu|skarga|skargi|zablokowan*|odbit*|zanonimizowan*|anonimizacj*}',
    '{zemrel*|zomrel*|umrti|stiznost*|staznost*|zablokovan*|anonymizovan*}',
    '{elhunyt*|panasz*|letiltott|letiltva|visszapattan*|anonimizalt}',
    '{kuollut|kuolinpaiva|valitus|estetty|anonymisoitu}',
    '{vefat*|olum tarihi|sikayet*|engellendi|engellenen|anonimlestir*}',
  ],
  'Russian, Ukrainian, Greek': [
    '{умер|умерла|скончал*|жалоб*|спам|заблокирован*|анонимизирован*}',
    '{помер|померла|скарг*|заблокован*|анонімізован*}',
    '{αποβιω*|θανατ*|παραπον*|αποκλεισ*|ανωνυμοποι*}',
  ],
  'Chinese, Japanese, Korean': [
    '{死亡|故人|苦情|迷惑メール|ブロック|匿名化|已故|投诉|投訴|屏蔽|拉黑|사망|스팸|차단|신고|익명화}',
  ],
};

const signs = termFinder(signTerms, []);

/** Returns whether a name or a value holds a sign that a person must not be mailed. */
export function isRefusalSign(text: string): boolean {
  return signs.find(plain(text)).next().done !== true;
}

/** Returns whether a value opts out, or holds such a sign. */
export function saysRefusal(text: string): boolean {
  return isAboutOptOut(text) || isRefusalSign(text);
}

/** Returns whether a column is named like an opt-out, or like such a sign. */
export function isNamedLikeRefusal(name: string): boolean {
  return isOptOutField(name) || (isRefusalSign(name) && !isAboutOtherWays(name));
}

/**
 * Names of columns that most exports have and that are never about consent, in the form of `plain`:
 * lower case, without accents. A name is one of `nouns`, alone or after one of `beforeNouns`, with
 * or without a space, or one of `wholeNames`.
 */
const beforeNouns: readonly string[] = [
  'first|last|middle|full|given|family|nick|user|company|account|display|job|birth|second|street',
  'city|country',
  'vor|nach|zu|firmen|familien',
  'voor|achter|tussen',
  'for|efter|etter|mellan|mellem',
];

const nouns: readonly string[] = [
  'name|names|title|date|code',
  'navn|namn|naam|voegsel',
  'nombre|apellido|apellidos|nom|prenom|nome|cognome|sobrenome',
  'imie|nazwisko|jmeno|prijmeni',
];

const wholeNames: Readonly<Record<string, readonly string[]>> = {
  'Forms of address': [
    'middle initial|salutation|prefix|suffix|honorific|anrede|titel|akad titel|akad grad',
    'akademischer titel|akademischer grad|aanhef|civilite|titre|tratamiento|titulo|titolo',
  ],
  Gender: ['gender|sex|geschlecht|geslacht|kon|kjonn|sexe|sexo|sesso|plec|pohlavi'],
  Places: [
    'country|county|region|city|town|street|land|bundesland|kanton|ort|stadt|strasse',
    'pays|province|ville|pais|provincia|ciudad|cidade|paese|citta|kraj|miasto|zeme|mesto',
    'plaats|by|stad|website|homepage|time zone|timezone',
  ],
  Addresses: [
    'address|adresse|address 1|address 2|address 3|address line 1|address line 2|address line 3',
    'postcode|zip|zip code|postal code|plz',
  ],
  'Languages and currencies': [
    'language|lang|locale|sprache|langue|idioma|lingua|taal|sprak|sprog|jezyk|jazyk',
    'currency|wahrung|devise|moneda',
  ],
  'Days of birth': ['birthday|dob|date of birth|geburtstag|geburtsdatum'],
  'Other ways to reach a person': [
    'phone|mobile|fax|telefon|tel|telefono|telephone|telefoon|mobil|handy',
  ],
  Organizations: ['company|firma|organisation|organization|department|abteilung|industry|branche'],
};

const listed = (rows: readonly string[]): string[] => rows.flatMap((row) => row.split('|'));
const otherNames = new Set([
  ...listed(nouns),
  ...listed(beforeNouns).flatMap((first) =>
    listed(nouns).flatMap((noun) => [first + noun, `${first} ${noun}`]),
  ),
  ...listed(Object.values(wholeNames).flat()),
]);

/** Returns whether a column is named like one of these. */
export function isOtherName(name: string): boolean {
  return otherNames.has(plain(name));
}
