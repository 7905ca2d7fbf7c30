/** What a fleet of workers costs: of Redis, of memory, of processor time. */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { fleetKeys } from '../../src/compose/queues/node-heartbeat.ts';

/** The commands that Redis executed, by name. */
async function callsOf(redis: Redis): Promise<Map<string, number>> {
  const stats = await redis.info('commandstats');
  return new Map(
    [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(
      ([, name = '', n]) => [name, Number(n)] as const,
    ),
  );
}

/** Commands per second for a while, by name, the most frequent first; without this reading. */
export async function ratesOf(redis: Redis, ms: number): Promise<[string, number][]> {
  const before = await callsOf(redis);
  await pause(ms);
  const after = await callsOf(redis);
  return [...after]
    .map(([name, n]): [string, number] => [name, ((n - (before.get(name) ?? 0)) / ms) * 1_000])
    .filter(([name, rate]) => rate > 0.1 && name !== 'info')
    .toSorted(([, a], [, b]) => b - a);
}

/** The sum, and of what. */
export function ratesIn(rates: readonly [string, number][]): { sum: string; parts: string } {
  const sum = rates.reduce((total, [, rate]) => total + rate, 0);
  return {
    sum: `${sum.toFixed(1)}/s`,
    parts: rates.map(([name, rate]) => `${name} ${rate.toFixed(1)}`).join(', '),
  };
}

/** The connections to Redis, without this one. */
export async function connectionsOf(redis: Redis): Promise<number> {
  const clients = (await redis.info('clients')).match(/connected_clients:(\d+)/)?.[1];
  return Number(clients) - 1;
}

/** The memory that a process uses now, or has used at most, in MB; 0 if it is gone. */
export function memoryOf(pid: number | undefined, which: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Math.round(Number(new RegExp(`${which}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}

/** The process of this Redis. */
export async function pidOf(redis: Redis): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]);
}

/** Watches how many processors these processes use from now on. */
export function watchProcessors(pids: readonly (number | undefined)[]) {
  const began = performance.now();
  const before = { own: pids.map(usedBy), all: usedByAll() };
  const each = (now: number, then: number | undefined): number =>
    (now - (then ?? 0)) / ((performance.now() - began) / 1_000);
  const used = () => pids.map((pid, at) => each(usedBy(pid), before.own[at]));
  return {
    used: () => used().map((number) => number.toFixed(2)),
    /** What is used by other processes of this machine, and by none. */
    rest(): string {
      const all = usedByAll();
      const own = used().reduce((sum, number) => sum + number, 0);
      const others = each(all.busy, before.all.busy) - own;
      return `${others.toFixed(2)}, ${each(all.idle, before.all.idle).toFixed(2)}`;
    },
  };
}

/** Seconds of processor time that a process has used; 0 if it is gone. */
function usedBy(pid: number | undefined): number {
  try {
    const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const [user, system] = rest.split(' ').slice(11, 13).map(Number);
    return ((user ?? 0) + (system ?? 0)) / 100;
  } catch {
    return 0;
  }
}

/** Seconds of processor time that all processes have used, and none. */
function usedByAll(): { busy: number; idle: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return { busy: (user + nice + system + irq + soft) / 100, idle: (idle + waiting) / 100 };
}

/** The number of mirrors that each worker serves. */
export async function sharesOf(redis: Redis): Promise<number[]> {
  const holders = await redis.hvals(fleetKeys.holders);
  return [...Map.groupBy(holders, (holder) => holder).values()].map((all) => all.length);
}
