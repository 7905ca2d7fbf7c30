/**
 * Recognizes in two dozen languages what a column is about, by its name or a value: an opt-out,
 * another sign that a person must not be mailed, or something that is never about consent. A name
 * without spaces may have neutral words before, within and after a term: `hasoptedoutofemail`.
 */
import { aboutLinks, falseFriends, namesOfNo, neutralWords, optOutTerms } from './opt-out-terms.ts';

const deletionNames = [
  /delet|gel(o|oe)scht|archiv|arkiv|supprim|elimin|anulad|borrad|cancellat|verwijder|removed/,
  /slettet|raderad|borttag|poistettu|usuniet|smazan|torolt|\bsters|silindi|удален|видален/,
];

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
 * Returns whether the name of a column, or the dotted path of a field, holds a term of opting out
 * or begins with a no: "No events". The built-in words of a subscription do not read its values,
 * because a yes may mean no mail, also in "Opt-out page" or "not unsubscribed".
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
 * Names of columns that are never about consent, as `plain` returns them: one of `nouns`, alone or
 * after one of `beforeNouns`, with or without a space, or one of `wholeNames`.
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

type Term = readonly RegExp[];

const mostNeutral = 4;
const spaceless = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** Returns the finder of a table, prepared at its first use. `neutral` words change no term. */
function termFinder(
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
        for (const { 0: found, index } of name.matchAll(term))
          yield { start: index, end: index + found.length };
      }
    },
  };
}

function prepare(rows: readonly string[], neutral: readonly string[]) {
  const words = neutral.map(plain);
  return {
    anywhere: rows.filter((row) => spaceless.test(row)).map((row) => expression(row, 'gu')),
    termsAt: indexTerms(rows.filter((row) => !spaceless.test(row))),
    words: new Set(words),
    // The first two letters of all that may stand beside another word without a space.
    beginnings: new Set([...words, ...shortGlued].map((word) => word.slice(0, 2))),
  };
}

const sizes = [1, 2, 3];

/** Finds the terms that may begin at a place. Compiles when needed: all of them take too long. */
function indexTerms(rows: readonly string[]): (name: string, start: number) => Term[] {
  const byLetters = new Map<string, (() => Term)[]>();
  for (const row of rows) {
    let compiled: Term | undefined;
    const term = () => (compiled ??= row.split(' … ').map((part) => expression(part, 'uy')));
    // The first letters of a term: `{opt|opts} out` begins with `opt`.
    const [, choice, literal = ''] = /^(?:\{([^}]*)\}|([^{]*))/.exec(row) ?? [];
    const texts = (choice ?? literal).split('|').map((text) => text.replace(/[*…].*$/s, ''));
    const all = texts.map((text) => plained(text).replaceAll(' ', '').slice(0, sizes.length));
    for (const letters of new Set(all))
      byLetters.set(letters, [...(byLetters.get(letters) ?? []), term]);
  }
  return (name, start) => {
    const letters = name.slice(start, start + 2 * sizes.length).replaceAll(' ', '');
    const found = sizes.filter((size) => size <= letters.length);
    return found.flatMap((size) => byLetters.get(letters.slice(0, size)) ?? []).map((one) => one());
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
  const source = plained(part)
    .replaceAll(/\{([^}]*)\}/g, (_, choice: string) => {
      const words = choice.split('|').toSorted((a, b) => b.length - a.length);
      return `(?:${words.join('|')})`;
    })
    .replaceAll(' ', ' ?')
    .replaceAll('*', String.raw`\p{L}*`);
  return new RegExp(source, flags);
}

const plained = (part: string): string => part.replaceAll(/[^ {|}*]+/g, plain);

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
