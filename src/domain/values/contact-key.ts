/** Decides which spellings of an address are one person's. */
import { domainToASCII, domainToUnicode } from 'node:url';

const plain = /^[\x21-\x7e]*$/;
/** What a domain may be written with. Invisible characters stay, and make an address invalid. */
const hostLike = /^(?:[a-z\d.-]|(?![\p{C}\p{Z}])[\u0080-\u{10ffff}])+$/iu;

/**
 * Returns the key of a contact: its address, trimmed, in NFC and lower case, the domain in ASCII
 * (UTS 46), so that `Ana@ESPAÑA.example` and `ana@xn--espaa-rta.example` are one person. A domain
 * that has no ASCII form stays as it is.
 */
export function contactKey(address: string): string {
  const trimmed = address.trim();
  const isPlain = plain.test(trimmed);
  const text = isPlain
    ? trimmed.toLowerCase()
    : trimmed.normalize('NFC').toLowerCase().normalize('NFC');
  if (isPlain && !text.includes('xn--')) return text;
  const at = text.lastIndexOf('@') + 1;
  const host = text.slice(at);
  return at > 0 && hostLike.test(host) ? text.slice(0, at) + (domainToASCII(host) || host) : text;
}

/**
 * Returns the spellings of a key that a search may need: its domain in ASCII and in letters,
 * and the letters of each half in NFC and NFD, whatever those of the other half are in.
 */
export function spellingsOf(key: string): string[] {
  const at = key.lastIndexOf('@') + 1;
  const [local, host] = [key.slice(0, at), key.slice(at)];
  const letters = domainToUnicode(host) || host;
  const hosts = new Set([host, letters, letters.normalize('NFD')]);
  const locals = new Set([local, local.normalize('NFD')]);
  return [...locals].flatMap((one) => [...hosts].map((other) => one + other));
}

/** Returns what an address contains in every spelling: its `@`, and what must precede it. */
export function commonPart(key: string): string {
  return /[\w.!#$%&'*+/=?^{|}~@-]*$/.exec(key.slice(0, key.lastIndexOf('@') + 1))?.[0] ?? '';
}
