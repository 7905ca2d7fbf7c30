/** Several workers on one limit: each with a gate of its own, and its own connections. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import type { Limit } from '../../../src/emulator/limits/algorithms.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { serve } from '../../../src/emulator/http-listener.ts';
import { createGate } from '../../../src/rate-limit/request-gate.ts';
import { createSend } from '../../../src/http/send-request.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { organizationOf } from '../../../src/rate-limit/shared/organization-name.ts';
import { sharedBudgets } from '../../../src/rate-limit/shared/shared-budget.ts';

const KEY = 'key-of-the-fleet';
const ROUTE = 'contacts.list';

export interface Server {
  url: string;
  /** Requests that came. */
  seen(): number;
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
  let seen = 0;
  const receive: typeof emulator.receive = (request) => {
    seen += 1;
    return emulator.receive(request);
  };
  const { url, close } = await serve({ receive }, 0);
  return { url, seen: () => seen, close };
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

/** `late`: how many of its requests may have been late, as countLate says. */
export type ChildDone = Done & { late: number };

export interface Worker {
  /** Resolves when all of them are answered. */
  send(requests: number): Promise<void>;
  standing(): ReturnType<ReturnType<typeof createGate>['limits']>[string] | undefined;
  result(): Done;
  close(): Promise<void>;
}

export function startWorker({ url, redis, name, reserve = 0 }: WorkerOptions): Worker {
  const [clock, random] = [systemClock, Math.random];
  const notices: string[] = [];
  const organization = organizationOf({ url, apiKey: KEY });
  const shared = sharedBudgets({
    url: redis,
    organization,
    worker: name,
    clock,
    random,
    reserve,
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
    standing: () => gate.limits()[ROUTE],
    result: () => ({ done, refused: gate.counts().rateLimited, notices }),
    async close() {
      await shared.close();
      await platform.close();
    },
  };
}

export function total(results: readonly Done[]): Done {
  return {
    done: results.reduce((sum, { done }) => sum + done, 0),
    refused: results.reduce((sum, { refused }) => sum + refused, 0),
    notices: results.flatMap(({ notices }) => notices),
  };
}

interface Child {
  result: Promise<ChildDone>;
  signal(name: NodeJS.Signals): void;
}

/** A worker in a process of its own; its result fails when it dies. */
export function startChild({ url, redis, name }: WorkerOptions, requests: number): Child {
  const program = fileURLToPath(new URL('fleet-process.ts', import.meta.url));
  const options = [program, url, redis, name, String(requests)];
  const child = spawn(process.execPath, options, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const result = once(child, 'close').then(([code, signal]): ChildDone => {
    if (code !== 0) throw new Error(`${name} ended with ${code ?? signal}`);
    return JSON.parse(said) as ChildDone;
  });
  result.catch(() => undefined);
  return { result, signal: (name) => void child.kill(name) };
}
