/** Decides who may see what the server shows. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../domain/values/config-value.ts';

/**
 * Returns whether a request may enter. With a token: if the request carries it, as `Authorization:
 * Bearer …` or as the password of HTTP Basic, which browsers send. Without a token the server
 * listens on this machine only, and answers only requests that name it by a loopback address: no
 * web page can ask under another name.
 */
export function mayEnter(headers: IncomingHttpHeaders, token: string | undefined): boolean {
  if (token === undefined) return isLoopback(`http://${headers.host ?? ''}`);
  return isSame(credentialOf(headers.authorization ?? ''), token);
}

/** Compares two texts in constant time, whatever their lengths. */
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
