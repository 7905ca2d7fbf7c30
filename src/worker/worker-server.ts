/** Creates the server that a worker runs for all its mirrors, with the console. */
import { randomBytes } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { Invalid } from '../domain/errors.ts';
import { systemClock } from '../http/system-clock.ts';
import { createMetrics, type Metrics } from '../server/metrics.ts';
import { createServer } from '../server/http-server.ts';
import { serveWorkerPages } from '../server/worker-pages.ts';
import { serveWorkerRoutes } from '../server/worker-routes.ts';
import type { Webhook } from '../server/webhooks.ts';
import { explain } from '../cli/output/failure-report.ts';
import { accessRulesOf } from '../console/access/access-rules.ts';
import { consoleMirror } from '../console/view/console-mirror.ts';
import { pagesFor, serveConsole } from '../console/console-routes.ts';
import type { Served } from './mirror-service.ts';
import type { Shell } from '../cli/compose/process-shell.ts';

/** The server of a worker. */
export interface WorkerServer extends Pick<Metrics, 'ended'> {
  /** Starts to listen. Throws Invalid if it cannot listen on the configured address. */
  listen(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Creates the server, or returns undefined if no configuration requests one. Throws Invalid if two
 * configurations request different ones.
 */
export function openServer(
  configs: readonly Config[],
  served: readonly Served[],
  shell: Shell,
): WorkerServer | undefined {
  const asked = serverOf(configs);
  if (!asked) return undefined;
  const metrics = createMetrics(served);
  const webhooks = new Map<string, Webhook>();
  for (const { mirror, webhook } of served) if (webhook) webhooks.set(mirror, webhook);
  const access = accessRulesOf(asked);
  const failed = (error: unknown): void => shell.note(`crm-mirror: server: ${explain(error).text}`);
  const { host, port, token, publicUrl } = asked.server;
  const server = createServer({
    host,
    port,
    clock: systemClock,
    failed,
    register(app) {
      serveWorkerRoutes(app, {
        token,
        publicUrl,
        webhooks,
        metrics,
        ready: () =>
          served.flatMap(({ mirror, away }) => {
            const why = away();
            return why === undefined ? [] : [`${mirror}: ${why}`];
          }),
        clock: systemClock,
      });
      const mirrors = configs.map((config) => {
        const own = served.find(({ mirror }) => mirror === config.mirror);
        const faults = () => own?.faults() ?? [];
        const shown = consoleMirror(config, shell, { clock: systemClock, faults });
        return { ...shown, limits: () => own?.limits() ?? {} };
      });
      const secret = randomBytes(32).toString('hex');
      const queues = served.flatMap((one) => one.queues);
      serveConsole(app, {
        mirrors,
        access,
        clock: systemClock,
        secret,
        failed,
        beside: (scope) => serveWorkerPages(scope, pagesFor(access, { metrics, queues })),
      });
    },
  });
  return {
    ended: metrics.ended,
    async listen() {
      shell.note(`crm-mirror: the server listens on ${await server.listen()}`);
    },
    close: server.close,
  };
}

/** Returns the server block that all configurations with one share, and the file of the first. */
function serverOf(configs: readonly Config[]) {
  const [first, ...others] = configs.filter(({ server }) => server);
  if (!first?.server) return undefined;
  for (const { file, server } of others) {
    if (JSON.stringify(server) === JSON.stringify(first.server)) continue;
    throw new Invalid(`${first.file} and ${file} ask for different servers, and a worker has one`, {
      fix: 'write the same block, or leave one out',
    });
  }
  return { file: first.file, server: first.server };
}
