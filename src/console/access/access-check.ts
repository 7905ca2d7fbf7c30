/** Decides who may see the server's pages. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../../domain/values/config-value.ts';

/**
 * Returns whether a request is allowed. With a token, the request must contain it, either as
 * `Authorization: Bearer …` or as the password of HTTP Basic, which browsers send. Without a token,
 * the server listens on this machine only, and serves only requests that name it by a loopback
 * address, so that no web page can send requests under another name.
 */
export function mayEnter(headers: IncomingHttpHeaders, token: string | undefined): boolean {
  if (token === undefined) return isLoopback(`http://${headers.host ?? ''}`);
  return isSame(credentialOf(headers.authorization ?? ''), token);
}

/** Returns what answers a request without the right token: the HTTP status, a reason, headers. */
export function denial(token: string | undefined): {
  code: number;
  error: string;
  headers: Record<string, string>;
} {
  if (token === undefined) {
    const error = 'without a token only localhost is answered: add server.token';
    return { code: 403, error, headers: {} };
  }
  const headers = { 'www-authenticate': 'Basic realm="crm-mirror", charset="UTF-8"' };
  return { code: 401, error: 'the token is missing or wrong', headers };
}

/** Compares two texts in constant time, regardless of their lengths. */
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
