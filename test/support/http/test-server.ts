import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import {
  createBudget,
  type Budget,
  type BudgetOptions,
} from '../../../src/http/rate-limit/route-budget.ts';
import type { Observation } from '../../../src/http/rate-limit-headers.ts';

type Reply = (request: IncomingMessage & { text: string }, response: ServerResponse) => void;

/** A real HTTP server for one test; answers its address. */
export async function serve(reply: Reply): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () =>
      reply(Object.assign(request, { text: Buffer.concat(chunks).toString() }), response),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return address(server.address());
}

/** A real TCP server for one test, for what no HTTP server would do. */
export async function serveRaw(talk: (socket: Socket) => void): Promise<string> {
  const open = new Set<Socket>();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    talk(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return address(server.address());
}

/** A port that no program is given by chance: nobody listens there while tests run side by side. */
export function nowhere(): string {
  return 'http://127.0.0.1:1';
}

function address(bound: AddressInfo | string | null): string {
  if (bound === null || typeof bound === 'string') throw new Error('not bound to a port');
  return `http://127.0.0.1:${bound.port}`;
}

export const TRIP_MS = 40;

const nothing: Observation = {
  refused: false,
  limit: undefined,
  remaining: undefined,
  windowMs: undefined,
  resetInMs: undefined,
  dateMs: undefined,
  retryAfterMs: undefined,
};

/** What an answer says: unless told otherwise of 60 per 60 s; `undefined` is not said. */
export function left(remaining?: number, more: Partial<Observation> = {}): Observation {
  return { ...nothing, limit: 60, windowMs: 60_000, remaining, ...more };
}

/** Without jitter. */
export function budget(options: Partial<BudgetOptions> = {}): Budget {
  return createBudget({ random: () => 0, ...options });
}

/** One request on its own, whose answer comes at this time. */
export function lone(made: Budget, seen: Observation, nowMs: number): void {
  made.answer(made.ticket(nowMs - TRIP_MS), seen, nowMs);
}

/** How many of many may leave. */
export function leaves(made: Budget, nowMs: number, waiting = 1000): number {
  return made.decide(nowMs, waiting).leave;
}

/** When none of many may. */
export function waits(made: Budget, nowMs: number, waiting = 1000): number {
  return made.decide(nowMs, waiting).waitMs;
}
