/**
 * Decides what an email address is. The part before the @ follows zod's rule for RFC 5322, and the
 * domain follows zod's rule for host names. The latter accepts ASCII only, so a domain with other
 * letters (müller.de) is checked in its ASCII form. Before the @, letters of any script and a plus
 * sign are allowed; quotes, a comma or a dot at the end, and a domain without a dot are not.
 */
import type { Fault } from '../../../domain/record.ts';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { email as emailForm } from '../../../platform/request-schemas.ts';

const local = z.email({ pattern: z.regexes.rfc5322Email });
const host = z.hostname();

/** The maximum number of characters that a mail server accepts (RFC 5321). */
const most = { all: 254, local: 64 };

/** Returns whether a text is an email address. */
export function isAddress(text: string): boolean {
  if (text.length > most.all || !emailForm.safeParse(text).success) return false;
  // An invisible character would make a known person look like another one.
  if (/[\p{Cc}\p{Cf}"]/u.test(text)) return false;
  const at = text.lastIndexOf('@');
  return isLocal(text.slice(0, at)) && isDomain(text.slice(at + 1));
}

function isLocal(text: string): boolean {
  return text.length <= most.local && local.safeParse(`${text}@example.com`).success;
}

function isDomain(text: string): boolean {
  // Only letters and digits are converted, because the result for other characters is
  // unpredictable.
  const isPlain = /^[\x21-\x7e]+$/.test(text);
  if (!isPlain && !/^[\p{L}\p{M}\p{N}.-]+$/u.test(text)) return false;
  const ascii = isPlain ? text : domainToASCII(text);
  const last = ascii.slice(ascii.lastIndexOf('.') + 1);
  return ascii.includes('.') && /[a-z]/i.test(last) && host.safeParse(ascii).success;
}

/** Returns the fault of a value that is not an address. */
export function notAnAddress(field: string, address: string): Fault {
  const [end = ''] = /[\p{P}\p{S}]+$/u.exec(address.slice(-10)) ?? [];
  const isOdd = end !== '' && isAddress(address.slice(0, -end.length));
  const odd = isOdd ? `, for it ends with ${JSON.stringify(end)}` : '';
  const reason = `"${field}" is not an email address${odd}`;
  return {
    cause: 'address-invalid',
    reason,
    value: address,
    fix: 'correct the address in the CRM; if contacts.email names the wrong column, correct that',
  };
}
