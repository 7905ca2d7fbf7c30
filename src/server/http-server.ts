/**
 * Runs the worker's HTTP server:
 *
 *   GET   /healthz            alive
 *   GET   /readyz             accepts events; 503 with the reasons while it cannot
 *   POST  /webhooks/<mirror>  events of a CRM (webhooks.ts)
 *   GET   /                   the status of all mirrors
 *   GET   /metrics            for Prometheus
 *   GET   /queues             waiting jobs and jobs in progress
 *
 * All but the first three require the token (access-check.ts). Every failure returns one line of
 * JSON.
 */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { Clock } from '../domain/clock.ts';
import { Invalid, Unavailable } from '../domain/errors.ts';
import type { Fault } from '../domain/record.ts';
import type { QueueView } from '../worker/queues/queue-view.ts';
import { mayEnter } from './access-check.ts';
import type { Metrics } from './metrics.ts';
import { type MirrorStatus, pagePolicy, renderPage } from './status-page.ts';
import { serveWebhooks, type Webhook } from './webhooks.ts';

/** The parts and settings of the server. */
export interface ServerOptions {
  host: string;
  /** The port; 0 picks any free port. */
  port: number;
  /** The token; undefined if `host` is a loopback address, so that only this machine has access. */
  token: string | undefined;
  /**
   * The URL under which the CRM calls this server, without a trailing slash; undefined if it is
   * taken from the requests.
   */
  publicUrl: string | undefined;
  /** The webhooks of the mirrors that accept events, by mirror. */
  webhooks: ReadonlyMap<string, Webhook>;
  /** The queues to show. The server does not close them. */
  queues: QueueView['queues'];
  metrics: Metrics;
  /**
   * Returns the reasons why no event can be accepted now, one line each. An outage of a CRM does
   * not count.
   */
  ready(): readonly string[];
  statuses(): Promise<readonly MirrorStatus[]>;
  clock: Clock;
  /** Called with each bug that occurs while a request is served. */
  failed(error: unknown): void;
}

/** A server that can be started once. */
export interface Server {
  /** Starts to listen and resolves to the address. Throws Invalid if it cannot listen there. */
  listen(): Promise<string>;
  /** Accepts no more requests, and waits up to three seconds for those in progress. */
  close(): Promise<void>;
}

const mostBytes = 1024 * 1024;
const closeMs = 3_000;
const retryAfterSeconds = 5;
const open = new Set(['/healthz', '/readyz', '/webhooks/:mirror']);

/** Creates the server. It does not listen yet. */
export function createServer(options: ServerOptions): Server {
  const { host, port, clock } = options;
  const app = Fastify({
    bodyLimit: mostBytes,
    forceCloseConnections: 'idle',
    requestTimeout: 15_000,
    keepAliveTimeout: 30_000,
    http: { headersTimeout: 10_000, maxHeaderSize: 16_384 },
  });
  guard(app, options);
  answerFaults(app, options);
  servePages(app, options);
  app.register(async (scope) => serveWebhooks(scope, options));
  app.register(async (scope) => serveBoard(scope, options.queues));
  return {
    async listen() {
      try {
        return await app.listen({ host, port });
      } catch (error) {
        throw unusable(error, `${host}:${port}`);
      }
    },
    async close() {
      const over = new AbortController();
      const cut = () => app.server.closeAllConnections();
      void clock.sleep(closeMs, over.signal).then(cut, () => undefined);
      await app.close();
      over.abort();
    },
  };
}

function guard(app: FastifyInstance, { token }: ServerOptions): void {
  app.addHook('onRequest', async ({ routeOptions, headers }, reply) => {
    reply.headers({
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    if (open.has(routeOptions.url ?? '') || mayEnter(headers, token)) return;
    if (token === undefined) {
      const error = 'without a token only localhost is answered: add server.token';
      await reply.code(403).send({ error });
      return;
    }
    reply.header('www-authenticate', 'Basic realm="crm-mirror", charset="UTF-8"');
    await reply.code(401).send({ error: 'the token is missing or wrong' });
  });
}

function servePages(app: FastifyInstance, options: ServerOptions): void {
  const { metrics, ready, statuses } = options;
  app.get('/healthz', async () => 'ok');
  app.get('/readyz', async (_request, reply) => {
    const reasons = ready();
    return reply
      .code(reasons.length === 0 ? 200 : 503)
      .send({ ready: reasons.length === 0, reasons });
  });
  app.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );
  app.get('/', async (_request, reply) =>
    reply
      .header('content-security-policy', pagePolicy)
      .type('text/html; charset=utf-8')
      .send(renderPage(await statuses())),
  );
}

function answerFaults(app: FastifyInstance, { failed }: ServerOptions): void {
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'not found' }));
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

/**
 * Returns Invalid for an address on which the system does not allow listening. Any other error is a
 * bug and is returned unchanged.
 */
function unusable(error: unknown, address: string): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const fault = faults[code];
  if (fault === undefined) return error;
  return new Invalid(`server: ${address} ${fault.reason}`, { fix: fault.fix, cause: error });
}

const boardPath = '/queues';

/**
 * The Content-Security-Policy of the board, which has its own scripts and inserts styles at run
 * time. Nothing else is allowed.
 */
const boardPolicy = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
  "connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

/** Serves the board under /queues, and responds with 405 to every method except GET and HEAD. */
function serveBoard(app: FastifyInstance, queues: QueueView['queues']): void {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(boardPath);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'crm-mirror', hideRedisDetails: true, hideDocsLink: true } },
  });
  adapter.setErrorHandler(() => ({ status: 500, body: { error: 'Redis cannot be asked' } }));
  app.addHook('onRequest', async ({ method }, reply) => {
    reply.header('content-security-policy', boardPolicy);
    if (method === 'GET' || method === 'HEAD') return;
    await reply.code(405).send({ error: 'the queues are only shown here' });
  });
  app.register(adapter.registerPlugin(), { prefix: boardPath });
}
