/** Answers the failures of a server's routes. */
import type { FastifyError, FastifyInstance } from 'fastify';
import { Unavailable } from '../../domain/errors.ts';

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
