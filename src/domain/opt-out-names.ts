/** Recognizes in a dozen languages what a column is about, by its name. */

/** Names of opt-outs, as words of `plain` text. */
const optOutNames = [
  // English
  /\bunsub|\bopt(ed)? ?out|\bdo not ((e ?)?mail|contact|send|market|disturb|call|phone|fax)|\bdn[cm]\b/,
  /\bno ((e ?)?mail|mailing|contact|marketing)s?\b|\b(consent|permission) (withdrawn|revoked)/,
  // German
  /ab(ge)?meld|abbestell|ausgetragen|widerruf|widerspr|(werbe|mail|kontakt|newsletter) ?sperr/,
  /\bkeine? ((e ?)?mail|werbung|mailing|newsletter|kontakt)|\b(mail|newsletter|kontakt) gesperrt/,
  /\bnicht (mehr )?(anschreiben|kontaktieren|(an)?mailen|(e ?)?mail|bewerben)/,
  // Dutch, Danish, Norwegian, Swedish
  /uitgeschreven|uitschrij|af(ge)?meld|avmeld|\bframeld|avregistrer|avanmal|avprenumer/,
  /\bniet (meer )?(e ?)?(mail|contact|benader)|\bgeen ((e ?)?mail|mailing|nieuwsbrief|contact)/,
  /\b(ikke|ej|inte|ingen|inga) (kontakt|(e ?)?mail|maila|e ?post|send|utskick|reklam|nyhetsbrev)/,
  // French
  /\bdes(in|ab)(scri|onn)|\bne (pas|plus) (contact|sollicit|envoy|(e ?)?mail|demarch)/,
  /\b(pas d[e ]? ?|refus |stop )((e ?)?mail|mailing|contact|newsletter|prospection)/,
  // Spanish, Portuguese, Italian, Romanian
  /\bbaja\b|\b(des|de)(s|sub|in)?(uscri|scri[pt])|\bdescadastr|\bdisiscri|\bdisiscritt|\bdezabon/,
  /\b(no|nao|non|nu) ((e ?)?mail|correo|conta|envi|invi|desea|molest|pertu|disturb|scriv|trimite)/,
  /\bcancel\p{L}* ((de|a|la) )*(suscripcion|inscricao|subscricao|assinatura|iscrizione)/u,
  // Polish, Czech, Hungarian, Finnish, Turkish
  /\bwypisan|\brezygnacj|\bnie (kontakt|wysyl|mail|(e ?)?mail)|\bodhlas|\bne(zasil|kontakt|posil)/,
  /\bleirat|\bne (kuldj|keress)|\babonelik.* iptal|\p{L}kielto\b/u,
  /\bei (sahkopost|markkinoin|uutiskirj)/,
  // Russian, Ukrainian, Greek, Japanese, Chinese, Korean
  /отпис|відпис|не (писать|беспокоить|отправлять)|απεγγραφ|配信停止|退订|取消订阅|수신거부/,
];

/** Names of deletions, in more languages than `deleted` is proposed for. */
const deletionNames = [
  /delet|gel(o|oe)scht|archiv|arkiv|supprim|elimin|anulad|borrad|cancellat|verwijder|removed/,
  /slettet|raderad|borttag|poistettu|usuniet|smazan|torolt|\bsters|silindi|удален|видален/,
];

/** Columns about other ways to reach a person. */
const aboutOtherWays = /\b(sms|fax|phone|telefon|whatsapp|call|mobile)|\p{L}phone|telefon/u;
/** Columns about why, or in which campaign, a person opted out. */
const aboutReasons =
  /reason|grund|campaign|comment|source|\breden|raison|motif|motiv|razon|powod|duvod|syy\b/;

/**
 * Returns what a name says: an opt-out, something about one, such as its reason or that of another
 * medium, or a deletion. Undefined: none of these.
 */
export function namedLike(name: string): 'opt-out' | 'reason' | 'other' | 'deletion' | undefined {
  const text = plain(name);
  if (optOutNames.some((form) => form.test(text))) {
    if (aboutOtherWays.test(text)) return 'other';
    return aboutReasons.test(text) ? 'reason' : 'opt-out';
  }
  return deletionNames.some((form) => form.test(text)) ? 'deletion' : undefined;
}

/** Returns whether a name says that a person must not be mailed. */
export function isNamedLikeOptOut(name: string): boolean {
  return namedLike(name) === 'opt-out';
}

/** Returns a name in lower case as words with single spaces, without accents on Latin letters. */
function plain(name: string): string {
  return name
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .normalize('NFD')
    .replaceAll(/(\p{Script=Latin})\p{M}+/gu, '$1')
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('ł', 'l')
    .replaceAll('ø', 'o')
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
