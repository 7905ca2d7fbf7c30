/** A server as a worker has it, on a free port of this machine. */
import { request } from 'node:http';
import { systemClock } from '../../../src/http/system-clock.ts';
import { createMetrics } from '../../../src/server/metrics.ts';
import { createServer, type Server, type ServerOptions } from '../../../src/server/http-server.ts';

export interface Started {
  url: string;
  server: Server;
  /** Bugs it met. */
  failures: unknown[];
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

export async function startServer(options: Partial<ServerOptions> = {}): Promise<Started> {
  const failures: unknown[] = [];
  const server = createServer({
    host: '127.0.0.1',
    port: 0,
    token: undefined,
    publicUrl: undefined,
    webhooks: new Map(),
    queues: [],
    metrics: createMetrics([]),
    ready: () => [],
    statuses: async () => [],
    clock: systemClock,
    failed: (error) => void failures.push(error),
    ...options,
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
