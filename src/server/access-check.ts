/** Who may see what the server shows. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../domain/values/config-value.ts';

/**
 * With a token: who sends it, as `Authorization: Bearer …`, or as the password of HTTP Basic, as
 * browsers do. Without one the server listens on this machine alone, and only requests that name it
 * so are answered: no page of a browser can ask under another name.
 */
export function mayEnter(headers: IncomingHttpHeaders, token: string | undefined): boolean {
  if (token === undefined) return isLoopback(`http://${headers.host ?? ''}`);
  return isSame(credentialOf(headers.authorization ?? ''), token);
}

/** Takes as long whether they differ early, late, or in their lengths. */
export function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function credentialOf(authorization: string): string {
  const [scheme = '', credential = ''] = authorization.split(' ', 2);
  if (/^bearer$/i.test(scheme)) return credential;
  if (!/^basic$/i.test(scheme)) return '';
  const pair = Buffer.from(credential, 'base64').toString('utf8');
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : '';
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
