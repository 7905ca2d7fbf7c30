/** Decides who may see the server's pages, and answers the failures of its routes. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyError, FastifyInstance } from 'fastify';
import { isLoopback } from '../../domain/values/config-value.ts';
import { Unavailable } from '../../domain/errors.ts';

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
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

function credentialOf(authorization: string): string {
  const [scheme = '', credential = ''] = authorization.split(' ', 2);
  if (/^bearer$/i.test(scheme)) return credential;
  if (!/^basic$/i.test(scheme)) return '';
  const pair = Buffer.from(credential, 'base64').toString('utf8');
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : '';
}

/** The largest body of a request. */
export const mostBytes = 1024 * 1024;

const retryAfterSeconds = 5;

/**
 * Has every failure in a scope answered with one line of JSON. `failed` is called with each bug.
 */
export function answerFaults(app: FastifyInstance, failed: (error: unknown) => void): void {
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    if (error instanceof Unavailable) {
      reply.code(503).header('retry-after', retryAfterSeconds);
      return reply.send({ error: 'not now: Redis cannot be asked' });
    }
    const { statusCode = 500 } = error;
    if (statusCode < 500)
      return reply.code(statusCode).send({ error: words[statusCode] ?? 'bad request' });
    failed(error);
    return reply.code(500).send({ error: 'internal error' });
  });
}

const words: Record<number, string> = {
  413: `the body is larger than ${mostBytes} bytes`,
  415: 'the body is not application/json',
};
