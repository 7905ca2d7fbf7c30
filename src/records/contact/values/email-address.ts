/**
 * Decides what an email address is, of an address in canonical form (`contactKey`). The part before
 * the @ follows zod's rule for RFC 5322, and the domain, which is in its ASCII form, follows zod's
 * rule for host names. Before the @, letters of any script and a plus sign are allowed; characters
 * that only look like others (’ for '), quotes, a comma or a dot at the end, and a domain without a
 * dot are not.
 */
import type { Fault } from '../../../domain/record.ts';
import { z } from 'zod';
import { contactKey } from '../../../domain/values/contact-key.ts';
import { isMarker } from '../../../domain/values/record-field.ts';
import { emailForm } from '../../../platform/request-schemas.ts';

const { rfc5322Email: local, hostname: host } = z.regexes;

/** The maximum number of characters that a mail server accepts (RFC 5321). */
const most = { all: 254, local: 64 };

export function isAddress(text: string): boolean {
  return hasAddressForm(text) && !holdsLookAlike(text);
}

/** Returns whether a text is an address but for characters that only look like others. */
export function hasAddressForm(text: string): boolean {
  if (text.length > most.all || !emailForm.test(text)) return false;
  if (text.includes('"') || invisible.test(text)) return false;
  const at = text.lastIndexOf('@');
  const name = text.slice(0, at);
  if (name.length > most.local || !local.test(`${name}@example.com`)) return false;
  const domain = text.slice(at + 1);
  const last = domain.slice(domain.lastIndexOf('.') + 1);
  return domain.includes('.') && /[a-z]/i.test(last) && host.test(domain);
}

/** Returns whether a text may stand for an address: it does not say that there is none. */
export function resemblesAddress(text: string): boolean {
  if (/[@＠]/u.test(text)) return true;
  if (isMarker(text) || /^(?:unknown|unbekannt|no|keine?)(?![\p{L}\p{N}.\-_])/iu.test(text))
    return false;
  return /[\p{L}\p{N}]/u.test(text);
}

/**
 * Returns the key of the address that a text holds beside a name, `mailto:`, invisible characters,
 * or punctuation at its ends; undefined if there is no such address, or if there are several.
 */
export function addressWithin(text: string): string | undefined {
  const visible = text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '');
  const [, inside = visible] = /^[^<>]*<([^<>]*)>[^<>]*$/u.exec(visible) ?? [];
  const bare = inside.trim().replace(/^mailto:/iu, '');
  const key = contactKey(bare.replaceAll(/^[\s"'([{]+|[\s\p{P}\p{S}]+$/gu, ''));
  return isAddress(key) ? key : undefined;
}

/** Returns whether a character in front of the @ only looks like another one. */
export function holdsLookAlike(address: string): boolean {
  return lookAlikeIn(address.slice(0, address.lastIndexOf('@'))) !== undefined;
}

/** Characters that nobody sees, which would make a known person look like another one. */
const invisible = /(?! )[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Cf}\p{Z}\u2800]/u;
/** Signs that no mailbox is named with, and letters that look like an apostrophe. */
const sign = /(?![\x21-\x7e])[^\p{L}\p{M}\p{N}]|[\u02b0-\u02ff\ua78b\ua78c]/u;
/** Cyrillic and Greek letters that look like Latin ones. */
const double = /[авекмнорстухѕіјһԁԛԝӏүαγικνορτυχϲϳ]/u;
const word = /[\p{L}\p{M}\p{N}]+/gu;

/**
 * Returns the first character that only looks like another one: a typographic sign, a letter or
 * digit in another width or style, or a Cyrillic or Greek double in an otherwise Latin word.
 */
function lookAlikeIn(text: string): string | undefined {
  if (/^[\x21-\x7e]*$/.test(text)) return undefined;
  const styled = [...text].find(
    (one) => one > '\x7e' && /^[\x21-\x7e]+$/.test(one.normalize('NFKC')),
  );
  if (styled !== undefined) return styled;
  const [odd] = sign.exec(text) ?? [];
  if (odd !== undefined) return odd;
  for (const [letters] of text.matchAll(word)) {
    const strange = [...letters].filter((one) => /(?!\p{sc=Latin})\p{L}/u.test(one));
    const isLatin = /\p{sc=Latin}/u.test(letters);
    if (isLatin && strange.length > 0 && strange.every((one) => double.test(one)))
      return strange[0];
  }
  return undefined;
}

/** Explains why a field holds no address; `address` is undefined for a list or an object. */
export function notAnAddress(field: string, address: string | undefined): Fault {
  if (address === undefined) {
    const fix = 'name in contacts.email the field within it that holds one address as text';
    return { cause: 'address-invalid', reason: `"${field}" is a list or an object`, fix };
  }
  const several = address.split(/[\s,;/|<>]+/u).filter((one) => isAddress(contactKey(one)));
  if (several.length > 1) {
    const reason = `"${field}" holds ${several.length} email addresses`;
    const fix = 'leave one of them in the field in the CRM';
    return { cause: 'address-invalid', reason, value: address, fix };
  }
  const [unseen] = invisible.exec(address) ?? [];
  const odd = unseen ?? lookAlikeIn(address.slice(0, Math.max(0, address.lastIndexOf('@'))));
  if (odd !== undefined) {
    const hex = (odd.codePointAt(0) ?? 0).toString(16).toUpperCase();
    const looks =
      odd === ' '
        ? ', a space in front of the @'
        : ' in front of the @, which only looks like another character';
    const how = unseen ? ', which is invisible' : looks;
    return {
      cause: 'address-invalid',
      reason: `"${field}" holds U+${hex.padStart(4, '0')}${how}`,
      value: address,
      fix: 'type the address anew in the CRM',
    };
  }
  const [end = ''] = /[\p{P}\p{S}]+$/u.exec(address.slice(-10)) ?? [];
  const isOdd = end !== '' && isAddress(contactKey(address.slice(0, -end.length)));
  const where = isOdd ? `, for it ends with ${JSON.stringify(end)}` : '';
  const reason = `"${field}" holds no email address${where}`;
  return {
    cause: 'address-invalid',
    reason,
    value: address,
    fix: 'correct the address in the CRM; if contacts.email names the wrong column, correct that',
  };
}
