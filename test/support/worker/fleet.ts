import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createEmulator } from '../../../src/emulator/emulator.ts';
import type { Limit } from '../../../src/emulator/limits/route-limits.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { serve } from '../../../src/emulator/http-listener.ts';
import { createGate } from '../../../src/http/rate-limit/request-gate.ts';
import { createSend } from '../../../src/http/send-request.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import {
  organizationOf,
  sharedBudgets,
} from '../../../src/http/rate-limit/shared/shared-budget.ts';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { readFleet } from '../../../src/compose/fleet/fleet.ts';
import { connectQuickly } from '../../../src/compose/queues/redis-connections.ts';
import { createWorld, launch, type World } from '../engine/engine-world.ts';
import { untilHolds } from '../waiting.ts';

// Several workers on one limit: each with a gate of its own, and its own connections.

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
  const platform = createSend({ url, timeoutMs: 120_000, userAgent: name });
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

// Two machines: a folder of configurations each, with the same mirrors, and a local disk each for
// the snapshots. They have one Redis, one platform for each mirror, and exports of one CRM.

interface Setting {
  redis: string;
  mirrors: readonly string[];
  /** Lines that every configuration has. */
  lines?: object;
}

/** The environment of a machine, with the folder of its snapshots. */
const machines = ['one', 'two'] as const;
type Machine = (typeof machines)[number];

export async function twoMachines({ redis, mirrors, lines = {} }: Setting) {
  const root = mkdtempSync(join(tmpdir(), 'crm-mirror-machines-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const worlds = new Map<string, World>();
  const folderOf = (machine: Machine): string => join(root, machine, 'mirrors');
  const stateOf = (machine: Machine): string => join(root, machine, 'state');
  for (const mirror of mirrors) {
    const world = await createWorld({ kinds: ['contact'], channels: ['ch_news'] });
    worlds.set(mirror, world);
    world.people([{ email: `ann@${mirror}.example`, news: 'yes' }]);
    const config = {
      mirror,
      redis,
      snapshot: `\${STATE}/${mirror}.sqlite`,
      memoryKeyFile: `\${STATE}/${mirror}.key`,
      platform: { url: world.server.url, apiKey: 'key_live_world' },
      schedule: { full: '*/2 * * * * *' },
      guards: { optOuts: { percent: 100 } },
      contacts: {
        source: { type: 'csv', path: join(world.folder, 'people.csv') },
        id: 'id',
        email: 'email',
        channels: [{ id: 'ch_news', subscription: 'news' }],
      },
      ...lines,
    };
    for (const machine of machines) {
      mkdirSync(folderOf(machine), { recursive: true });
      writeFileSync(join(folderOf(machine), `${mirror}.yaml`), JSON.stringify(config));
    }
  }
  const quick = connectQuickly(redis);
  onTestFinished(() => quick.close());
  const look = async () => readFleet(quick);
  return {
    worlds,
    folderOf,
    stateOf,
    quick,
    look,
    /** Starts the worker of a machine, and answers once the others know it. */
    async start(machine: Machine, env: Record<string, string> = {}) {
      const before = new Set((await look()).nodes.map(({ name }) => name));
      const worker = startFolder(folderOf(machine), { STATE: stateOf(machine), ...env });
      onTestFinished(() => worker.kill('SIGKILL'));
      let node = '';
      await until(async () => {
        node = (await look()).nodes.find(({ name }) => !before.has(name))?.name ?? '';
        return node !== '';
      });
      return { ...worker, node };
    },
    /** Runs a command of `fleet` on the first machine. */
    async fleet(...words: string[]) {
      const args = ['fleet', ...words, '--mirrors', folderOf('one')];
      return launch(args, { STATE: stateOf('one') }).ended;
    },
    homeOf: async (mirror: string): Promise<string | undefined> =>
      (await look()).mirrors.find(({ name }) => name === mirror)?.holder,
  };
}

// A worker, as a process of its own.

/** Until it holds. */
export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> =>
  untilHolds(async () => expect(await holds()).toBe(true));

export function start(file: string, ...flags: string[]) {
  return launchWorker(['-c', file, ...flags]);
}

/** A worker of a folder of mirrors. */
export function startFolder(folder: string, env: Record<string, string> = {}) {
  return launchWorker(['--mirrors', folder], env);
}

function launchWorker(args: readonly string[], env: Record<string, string> = {}) {
  const { child, ended } = launch(['worker', ...args], env);
  let err = '';
  child.stderr?.on('data', (chunk: Buffer) => void (err += chunk.toString()));
  const said = async (text: string) => until(() => err.includes(text));
  return {
    ended,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    heard: () => err,
    said,
    /** Where its server listens, once it does and the mirrors are served. */
    async url(): Promise<string> {
      await said('worker serves');
      await said('listens on');
      return /listens on (\S+)/.exec(err)?.[1] ?? '';
    },
    /** Asked to end, it does; its exit code. */
    async ends(): Promise<number | null> {
      child.kill('SIGTERM');
      return (await ended).code;
    },
  };
}
