/** Several workers on one limit: each with a gate, and connections to Redis and platform, of its own. */
import { setTimeout as pause } from 'node:timers/promises';
import { createEmulator } from '../../src/emulator/emulator.ts';
import type { Limit } from '../../src/emulator/limit/meter.ts';
import { seeded } from '../../src/emulator/random.ts';
import { serve } from '../../src/emulator/serve.ts';
import { createGate } from '../../src/http/gate.ts';
import { createSend } from '../../src/http/send.ts';
import { systemClock } from '../../src/http/time.ts';
import { organizationOf, sharedBudgets } from '../../src/queue/shared-budget.ts';
import { leastMs } from '../rate/server.ts';

const KEY = 'key-of-the-fleet';
const ROUTE = 'contacts.list';

export interface Server {
  url: string;
  algorithm: string;
  limit: Limit;
  close(): Promise<void>;
}

export async function startServer(algorithm: string, limit: Limit): Promise<Server> {
  const emulator = createEmulator({
    clock: systemClock,
    random: seeded(1),
    apiKey: KEY,
    algorithm,
    limits: [`${ROUTE}=${limit.requests}/${limit.windowSeconds}`],
  });
  const { url, close } = await serve(emulator, 0);
  return { url, algorithm, limit, close };
}

export interface WorkerOptions {
  /** Of the platform. */
  url: string;
  redis: string;
  name: string;
  reserve?: number;
}

export interface Done {
  done: number;
  refused: number;
  /** What it was told of Redis. */
  notices: string[];
}

export interface Worker {
  /** Resolves when all of them are answered. */
  send(requests: number): Promise<void>;
  standing(): ReturnType<ReturnType<typeof createGate>['standings']>[string] | undefined;
  result(): Done;
  close(): Promise<void>;
}

export function startWorker({ url, redis, name, reserve = 0 }: WorkerOptions): Worker {
  const [clock, random] = [systemClock, Math.random];
  const notices: string[] = [];
  const organization = organizationOf({ url, apiKey: KEY });
  const shared = sharedBudgets({
    ...{ url: redis, organization, worker: name, clock, random, reserve },
    notice: (lost) => notices.push(lost ?? 'there'),
  });
  const gate = createGate({ clock, random, reserve, budgetOf: shared.budgetOf });
  const platform = createSend({ url, timeoutMs: 10_000, userAgent: name });
  const headers = { 'x-api-key': KEY };
  const request = { method: 'GET' as const, path: '/api/contacts/list?limit=1', headers };
  let done = 0;
  const one = () =>
    gate.through(ROUTE, async (signal) => {
      await pause(2 + random() * 6);
      const answer = await platform.send(request, signal);
      await pause(2 + random() * 6);
      return answer;
    });
  return {
    async send(requests) {
      const count = async () => {
        const { status } = await one();
        if (status !== 200) throw new Error(`the platform answers ${status}`);
        done += 1;
      };
      await Promise.all(Array.from({ length: requests }, count));
    },
    standing: () => gate.standings()[ROUTE],
    result: () => ({ done, refused: gate.counts().rateLimited, notices }),
    async close() {
      await shared.close();
      await platform.close();
    },
  };
}

/** The least time in which so many requests can pass, if a window begins with the first. */
export function least({ algorithm, limit }: Server, requests: number): number {
  return leastMs(algorithm, { limit, requests, epochMs: Date.now() });
}
