/**
 * Registers the routes that only a worker has:
 *
 *   GET   /healthz            alive
 *   GET   /readyz             accepts events; 503 with the reasons while it cannot
 *   POST  /webhooks/<mirror>  events of a CRM (webhooks.ts)
 *   GET   /metrics            for Prometheus
 *   GET   /queues             waiting jobs and jobs in progress
 *
 * The last two require the token (access-check.ts), and so does any path that does not exist.
 */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../domain/clock.ts';
import type { QueueView } from '../worker/queues/queue-view.ts';
import { mayEnter } from './access-check.ts';
import type { Metrics } from './metrics.ts';
import { serveWebhooks, type Webhook } from './webhooks.ts';

/** The parts of a worker that its server shows. */
export interface WorkerRoutes {
  /** The token; undefined if the server listens on this machine only. */
  token: string | undefined;
  /**
   * The URL under which the CRM calls this server, without a trailing slash; undefined if it is
   * taken from the requests.
   */
  publicUrl: string | undefined;
  /** Returns the webhook of a mirror, or undefined if it accepts no events. */
  webhookOf(mirror: string): Webhook | undefined;
  /** Returns the queues to show. The server does not close them. */
  queues(): QueueView['queues'];
  metrics: Metrics;
  /**
   * Returns the reasons why no event can be accepted now, one line each. An outage of a CRM does
   * not count.
   */
  ready(): readonly string[];
  /**
   * Returns the files whose mirrors are stopped because they cannot be used; undefined if the
   * worker has no folder of files. The other mirrors accept events meanwhile.
   */
  refused?: (() => readonly { file: string }[]) | undefined;
  clock: Clock;
}

const open = new Set(['/healthz', '/readyz', '/webhooks/:mirror']);

/** Adds the routes. Routes with `hasOwnAccess` check access themselves. */
export function serveWorkerRoutes(app: FastifyInstance, options: WorkerRoutes): void {
  guard(app, options);
  const { metrics, ready, refused } = options;
  app.get('/healthz', async () => 'ok');
  app.get('/readyz', async (_request, reply) => {
    const reasons = ready();
    return reply.code(reasons.length === 0 ? 200 : 503).send({
      ready: reasons.length === 0,
      reasons,
      ...(refused && { refused: refused().map(({ file }) => file) }),
    });
  });
  app.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );
  app.register(async (scope) => serveWebhooks(scope, options));
  app.register(async (scope) => serveBoard(scope, options.queues));
}

function guard(app: FastifyInstance, { token }: WorkerRoutes): void {
  app.addHook('onRequest', async ({ routeOptions, headers }, reply) => {
    if (routeOptions.config.hasOwnAccess === true) return;
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

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route decides itself who may see it. */
    hasOwnAccess?: boolean;
  }
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
function serveBoard(app: FastifyInstance, queues: WorkerRoutes['queues']): void {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(boardPath);
  const adapters = new WeakMap<QueueView['queues'][number], BullMQAdapter>();
  const shown = (): BullMQAdapter[] =>
    queues().map((queue) => {
      const own = adapters.get(queue) ?? new BullMQAdapter(queue, { readOnlyMode: true });
      adapters.set(queue, own);
      return own;
    });
  const { replaceQueues } = createBullBoard({
    queues: shown(),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'crm-mirror', hideRedisDetails: true, hideDocsLink: true } },
  });
  adapter.setErrorHandler(() => ({ status: 500, body: { error: 'Redis cannot be asked' } }));
  app.addHook('onRequest', async ({ method }, reply) => {
    reply.header('content-security-policy', boardPolicy);
    // Mirrors come and go.
    replaceQueues(shown());
    if (method === 'GET' || method === 'HEAD') return;
    await reply.code(405).send({ error: 'the queues are only shown here' });
  });
  app.register(adapter.registerPlugin(), { prefix: boardPath });
}
