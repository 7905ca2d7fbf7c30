/**
 * Registers the routes that only a worker has, and that anybody may ask:
 *
 *   GET   /healthz            alive
 *   GET   /readyz             accepts events; 503 with the reasons while it cannot. `failing` says
 *                             what does not work now, such as the platform
 *   POST  /webhooks/<mirror>  events of a CRM (webhooks.ts)
 *
 * A path that does not exist requires the token (access-check.ts).
 */
import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../domain/clock.ts';
import { sendFault } from './http-server.ts';
import { denial, mayEnter } from '../../console/access/access-check.ts';
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
  metrics: Metrics;
  /**
   * Returns the reasons why no event can be accepted now, one line each. An outage of a CRM does
   * not count.
   */
  ready(): readonly string[];
  /** Returns what fails now in the mirrors, worst first. Events still come in. */
  failing(): readonly { mirror: string; code: string; since: string | null }[];
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
  const { ready, failing, refused } = options;
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

function guard(app: FastifyInstance, { token }: WorkerRoutes): void {
  app.addHook('onRequest', async (request, reply) => {
    const { routeOptions, headers } = request;
    if (routeOptions.config.hasOwnAccess === true) return;
    if (open.has(routeOptions.url ?? '') || mayEnter(headers, token)) return;
    const { code, error, headers: asked } = denial(token);
    await sendFault(request, reply.headers(asked), { code, error });
  });
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route decides itself who may see it. */
    hasOwnAccess?: boolean;
  }
}
