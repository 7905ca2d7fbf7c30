/**
 * Names of columns that most exports have and that are never about consent, in the form of `plain`:
 * lower case, without accents. A name is one of `nouns`, alone or after one of `before`, with or
 * without a space, or one of `wholeNames`.
 */
import { plain } from './name-terms.ts';

const before: readonly string[] = [
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
const all = new Set([
  ...listed(nouns),
  ...listed(before).flatMap((first) =>
    listed(nouns).flatMap((noun) => [first + noun, `${first} ${noun}`]),
  ),
  ...listed(Object.values(wholeNames).flat()),
]);

/** Returns whether a column is named like one of these. */
export function isOtherName(name: string): boolean {
  return all.has(plain(name));
}
