/**
 * Runs an HTTP server. The worker and `crm-mirror console` register their routes with it. Every
 * failure outside the console's pages returns one line of JSON, or a small page to a browser.
 */
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Clock } from '../../domain/clock.ts';
import { codeOf, Invalid } from '../../domain/errors.ts';
import { escapeHtml } from '../../domain/values/html-text.ts';
import type { Fault } from '../../domain/record.ts';
import { answerFaults, mostBytes } from '../../console/access/access-rules.ts';

export interface ServerOptions {
  host: string;
  /** The port; 0 picks any free port. */
  port: number;
  clock: Clock;
  register(app: FastifyInstance): void;
  failed(error: unknown): void;
}

const closeMs = 3_000;

const safeHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export type Server = ReturnType<typeof createServer>;

export function createServer({ host, port, clock, register, failed }: ServerOptions) {
  const app = Fastify({
    // An address that the router refuses, such as a too long one, meets no hook.
    frameworkErrors: (error, request, reply) => {
      reply.headers(safeHeaders);
      void sendFault(request, reply, { code: error.statusCode ?? 400, error: 'no such address' });
    },
    bodyLimit: mostBytes,
    forceCloseConnections: 'idle',
    requestTimeout: 15_000,
    keepAliveTimeout: 30_000,
    // The address of a person's page contains the encrypted key.
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: true },
    http: { headersTimeout: 10_000, maxHeaderSize: 16_384 },
  });
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(safeHeaders);
  });
  app.setNotFoundHandler((request, reply) =>
    sendFault(request, reply, { code: 404, error: 'not found' }),
  );
  answerFaults(app, failed);
  register(app);
  return {
    /** Starts to listen and resolves to the address. Throws Invalid if it cannot listen there. */
    async listen(): Promise<string> {
      try {
        return await app.listen({ host, port });
      } catch (error) {
        const fault = faults[codeOf(error)];
        if (!fault) throw error;
        const reason = `server: ${host}:${port} ${fault.reason}`;
        throw new Invalid(reason, { fix: fault.fix, cause: error });
      }
    },
    /** Accepts no more requests, and waits up to three seconds for those in progress. */
    async close(): Promise<void> {
      const over = new AbortController();
      const cut = () => app.server.closeAllConnections();
      void clock.sleep(closeMs, over.signal).then(cut, () => undefined);
      await app.close();
      over.abort();
    },
  };
}

/** Answers with a small page where a browser expects one, and with one line of JSON otherwise. */
export function sendFault(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { code, error }: { code: number; error: string },
): FastifyReply {
  reply.code(code);
  if (!headers.accept?.includes('text/html')) return reply.send({ error });
  const title = escapeHtml(error);
  return reply
    .type('text/html; charset=utf-8')
    .send(
      `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title} · crm-mirror</title>` +
        `<h1>${title}</h1><p><a href="/">To the console</a></p></html>`,
    );
}

const elsewhere: Fault = { reason: 'is no address of this machine', fix: 'mend server.host' };
const faults: Record<string, Fault> = {
  EADDRINUSE: {
    reason: 'is in use',
    fix: 'stop what listens there, or choose another server.port',
  },
  EACCES: { reason: 'may not be listened on', fix: 'choose a server.port above 1023' },
  EADDRNOTAVAIL: elsewhere,
  ENOTFOUND: elsewhere,
};
