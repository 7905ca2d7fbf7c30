/**
 * Registers the routes that only a worker has. Anybody may ask these:
 *
 *   GET   /healthz            alive
 *   GET   /readyz             accepts events; 503 with the reasons while it cannot. `failing` says
 *                             what does not work now, such as the platform
 *   POST  /webhooks/<mirror>  events of a CRM (webhooks.ts)
 *
 * A path that does not exist requires the token (access-rules.ts). These are for programs and for
 * those who look after the worker; only operators see addresses in the queues:
 *
 *                    no users are configured     users are configured
 *   GET  /metrics    the token, or localhost     the token, or any user
 *   GET  /queues     the token, or localhost     the token, or an operator
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { QueueView } from '../../compose/queues/run-queue.ts';
import { denial, mayEnter } from '../../console/access/access-rules.ts';
import { sendFault } from './http-server.ts';
import type { Metrics } from './metrics.ts';
import { serveWebhooks, type WebhookOptions } from './webhooks.ts';

export interface WorkerRoutes extends WebhookOptions {
  /** The token; undefined if the server listens on this machine only. */
  token: string | undefined;
  metrics: Metrics;
  /** Returns why no event can be accepted now, one line each. An outage of a CRM does not count. */
  ready(): readonly string[];
  /** Returns what fails now in the mirrors, worst first. Events still come in. */
  failing(): readonly { mirror: string; code: string; since: string | null }[];
  /** Undefined if the worker has no folder of files. The other mirrors accept events meanwhile. */
  refused?: (() => readonly { file: string }[]) | undefined;
}

const open = new Set(['/healthz', '/readyz', '/webhooks/:mirror']);

/** Adds the routes. Routes with `hasOwnAccess` check access themselves. */
export function serveWorkerRoutes(app: FastifyInstance, options: WorkerRoutes): void {
  const { token, ready, failing, refused } = options;
  app.addHook('onRequest', async (request, reply) => {
    const { routeOptions, headers } = request;
    if (routeOptions.config.hasOwnAccess === true) return;
    if (open.has(routeOptions.url ?? '') || mayEnter(headers, token)) return;
    const { code, error, headers: asked } = denial(token);
    await sendFault(request, reply.headers(asked), { code, error });
  });
  app.get('/healthz', async () => 'ok');
  app.get('/readyz', async (_request, reply) => {
    const reasons = ready();
    return reply.code(reasons.length === 0 ? 200 : 503).send({
      ready: reasons.length === 0,
      reasons,
      failing: failing(),
      ...(refused && { refused: refused().map(({ file }) => file) }),
    });
  });
  app.register(async (scope) => serveWebhooks(scope, options));
}

declare module 'fastify' {
  interface FastifyContextConfig {
    hasOwnAccess?: boolean;
  }
}

interface WorkerPages {
  /** The token; undefined if the server listens on this machine only. */
  token: string | undefined;
  /** Whether the configuration names users or a proxy that does. */
  hasUsers: boolean;
  roleOf(request: FastifyRequest): 'viewer' | 'operator' | undefined;
  /** Returns the queues to show, which may come and go. The server does not close them. */
  queues(): QueueView['queues'];
  metrics: Metrics;
}

/** Adds the pages to a scope in which requests have a role. */
export function serveWorkerPages(scope: FastifyInstance, pages: WorkerPages): void {
  const { metrics } = pages;
  scope.register(async (inside) => {
    admit(inside, pages, ['viewer', 'operator']);
    inside.get('/metrics', async (_request, reply) =>
      reply.type(metrics.contentType).send(await metrics.text()),
    );
  });
  scope.register(async (inside) => {
    admit(inside, pages, ['operator']);
    // The board is under /queues, and answers 405 to every method except GET and HEAD.
    const { queues, roleOf } = pages;
    const asking = new AsyncLocalStorage<{ seesAddresses: boolean }>();
    const show = (data: unknown): unknown =>
      asking.getStore()?.seesAddresses ? data : withoutAddresses(data);
    const known = new WeakMap<QueueView['queues'][number], BullMQAdapter>();
    const boards = () =>
      queues().map((queue) => {
        const board = known.get(queue) ?? new BullMQAdapter(queue, { readOnlyMode: true });
        board.setFormatter('data', show);
        board.setFormatter('returnValue', show);
        known.set(queue, board);
        return board;
      });
    const adapter = new FastifyAdapter();
    adapter.setBasePath(boardPath);
    const { replaceQueues } = createBullBoard({
      queues: boards(),
      serverAdapter: adapter,
      options: {
        uiConfig: { boardTitle: 'crm-mirror', hideRedisDetails: true, hideDocsLink: true },
      },
    });
    adapter.setErrorHandler(() => ({ status: 500, body: { error: 'Redis cannot be asked' } }));
    inside.addHook('onRequest', async ({ method }, reply) => {
      reply.header('content-security-policy', boardPolicy);
      replaceQueues(boards());
      if (method === 'GET' || method === 'HEAD') return;
      await reply.code(405).send({ error: 'the queues are only shown here' });
    });
    inside.addHook('onRequest', (request, _reply, done) =>
      asking.run({ seesAddresses: roleOf(request) === 'operator' }, done),
    );
    inside.register(adapter.registerPlugin(), { prefix: boardPath });
  });
}

function admit(
  scope: FastifyInstance,
  { token, hasUsers, roleOf }: WorkerPages,
  roles: readonly string[],
): void {
  scope.addHook('onRequest', async (request, reply) => {
    const role = roleOf(request);
    const isByToken = (token !== undefined || !hasUsers) && mayEnter(request.headers, token);
    if (isByToken || (hasUsers && role !== undefined && roles.includes(role))) return;
    if (hasUsers) {
      const error = `sign in ${roles.includes('viewer') ? 'at /sign-in' : 'as an operator at /sign-in'}, or send server.token`;
      await reply.code(role === undefined ? 401 : 403).send({ error });
      return;
    }
    const { code, error, headers } = denial(token);
    await reply.code(code).headers(headers).send({ error });
  });
}

const boardPath = '/queues';

/** The board has its own scripts, and inserts styles at run time. */
const boardPolicy = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
  "connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

function withoutAddresses(data: unknown): unknown {
  if (typeof data === 'string') return data.includes('@') ? '(an address)' : data;
  if (Array.isArray(data)) return data.map(withoutAddresses);
  if (typeof data !== 'object' || data === null) return data;
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, withoutAddresses(value)]),
  );
}
