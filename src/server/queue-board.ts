/** The queues, to be looked at in a browser and not to be touched (bull-board). */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { FastifyInstance } from 'fastify';
import type { QueueView } from '../worker/queues/queue-view.ts';

const path = '/queues';

/** It brings its own scripts; styles that it writes while it runs are all that is let in beside. */
const policy = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
  "connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

export function serveBoard(app: FastifyInstance, queues: QueueView['queues']): void {
  const adapter = new FastifyAdapter();
  adapter.setBasePath(path);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'crm-mirror', hideRedisDetails: true, hideDocsLink: true } },
  });
  adapter.setErrorHandler(() => ({ status: 500, body: { error: 'Redis cannot be asked' } }));
  app.addHook('onRequest', async ({ method }, reply) => {
    reply.header('content-security-policy', policy);
    if (method === 'GET' || method === 'HEAD') return;
    await reply.code(405).send({ error: 'the queues are only shown here' });
  });
  app.register(adapter.registerPlugin(), { prefix: path });
}
