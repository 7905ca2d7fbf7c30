/**
 * Recognizes signs that a person must not be mailed besides opting out: a bounce, a complaint, a
 * block, a death or the loss of the personal data. Terms are written as in `opt-out-terms`.
 */
import { plain, termFinder } from './name-terms.ts';
import { isAboutOptOut, isAboutOtherWays, isOptOutField } from './opt-out-names.ts';

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
