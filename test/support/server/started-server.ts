/** A server as a worker has it, on a free port of this machine. */
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { systemClock } from '../../../src/http/system-clock.ts';
import { createMetrics } from '../../../src/worker/server/metrics.ts';
import { createServer, type Server } from '../../../src/worker/server/http-server.ts';
import {
  serveWorkerPages,
  serveWorkerRoutes,
  type WorkerRoutes,
} from '../../../src/worker/server/worker-routes.ts';
import {
  type ConsoleOptions,
  pagesFor,
  serveConsole,
} from '../../../src/console/console-routes.ts';
import type { AccessRules } from '../../../src/console/access/access-rules.ts';
import type { QueueView } from '../../../src/compose/queues/run-queue.ts';
import type { ConsoleMirror } from '../../../src/console/view/console-mirror.ts';

export interface Started {
  url: string;
  server: Server;
  /** Bugs it met. */
  failures: unknown[];
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

export interface ServerParts extends WorkerRoutes {
  host: string;
  port: number;
  mirrors: readonly ConsoleMirror[];
  refused?: ConsoleOptions['refused'];
  queues(): QueueView['queues'];
  /** Who is let in, beside the token. */
  access: Partial<AccessRules>;
}

export async function startServer(options: Partial<ServerParts> = {}): Promise<Started> {
  const failures: unknown[] = [];
  const failed = (error: unknown): void => void failures.push(error);
  const { host, port, mirrors, refused, queues, access, ...routes }: ServerParts = {
    host: '127.0.0.1',
    port: 0,
    mirrors: [],
    token: undefined,
    publicUrl: undefined,
    webhookOf: () => undefined,
    queues: () => [],
    access: {},
    metrics: createMetrics([]),
    ready: () => [],
    failing: () => [],
    clock: systemClock,
    ...options,
  };
  const { token, clock, metrics } = routes;
  const none = {
    users: undefined,
    proxy: undefined,
    link: undefined,
    viewersSeeAddresses: false,
    secureHost: undefined,
  };
  const server = createServer({
    host,
    port,
    clock,
    failed,
    register(app) {
      serveWorkerRoutes(app, { ...routes, refused });
      const rules = { ...none, token, ...access };
      serveConsole(app, {
        mirrors: () => mirrors,
        refused,
        access: rules,
        clock,
        secret: '00'.repeat(32),
        random: randomBytes,
        failed,
        beside: (scope) => serveWorkerPages(scope, pagesFor(rules, { metrics, queues })),
      });
    },
  });
  const url = await server.listen();
  return {
    url,
    server,
    failures,
    get: async (path, headers = {}) => fetch(url + path, { headers }),
    close: async () => server.close(),
  };
}

export interface Raw {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** What fetch refuses to send: any Host, any path. */
export async function raw(
  url: string,
  { path = '/', headers = {} }: { path?: string; headers?: Record<string, string> },
): Promise<Raw> {
  const { promise, resolve, reject } = Promise.withResolvers<Raw>();
  request(url, { path, headers }, (answer) => {
    let body = '';
    answer.on('data', (chunk: Buffer) => (body += chunk.toString()));
    answer.on('end', () =>
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }),
    );
  })
    .on('error', reject)
    .end();
  return promise;
}
