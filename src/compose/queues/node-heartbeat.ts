/**
 * Shows in Redis that a worker process is alive: once, however many mirrors it serves. The lock of
 * a mirror names the process (lock-store.ts), and holds as long as that is alive.
 *
 *   a beat finds             result
 *   a beat of the last 10 s  nothing
 *   none, or an older one    the locks are in doubt, and are checked: Redis was emptied, or this
 *                            process stood still so long that others may have taken its mirrors
 *   no Redis                 nothing: the next beat finds an older one
 *
 * A worker of a folder also has a record, which the others read (fleet/fleet.ts). Every change in
 * the fleet changes one value, which a beat returns, and rings the bell of those that have a record
 * (shared-connections.ts): a process looks at the others only after that.
 */
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { prefix, type Quick } from './redis-connections.ts';

/** The period of silence after which a worker counts as dead. */
export const aliveMs = 10_000;
const beatMs = 3_000;
/** How often the locks are checked without a doubt. */
const checkMs = 300_000;
/** How long to wait for further changes of the fleet. */
const gatherMs = 200;

/** What Redis stores of the workers. */
export const fleetKeys = {
  /** The processes, by the time of their last beat in milliseconds of Redis' clock. */
  nodes: `${prefix}:fleet:nodes`,
  records: `${prefix}:fleet:records`,
  draining: `${prefix}:fleet:draining`,
  /**
   * The process that has each mirror of which a snapshot was begun; '' if none has it. The lock
   * does not hold if the process is dead.
   */
  holders: `${prefix}:fleet:holders`,
  /** Another value after each change in the fleet. */
  changed: `${prefix}:fleet:changed`,
} as const;

/** The bell of a process (shared-connections.ts), and its member when the fleet has changed. */
export const bellKeys = `${prefix}:bell:`;
export const fleetMember = 'fleet';

/** The part of scripts that knows which processes are alive, and tells of changes. */
export const fleetScript = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function isAlive(node)
  local beat = redis.call('ZSCORE', '${fleetKeys.nodes}', node)
  return beat and tonumber(beat) > now() - ${aliveMs}
end
local function holderOf(mirror)
  local holder = redis.call('HGET', '${fleetKeys.holders}', mirror)
  return holder ~= '' and holder
end
local function fleetChanged()
  local time = redis.call('TIME')
  redis.call('SET', '${fleetKeys.changed}', time[1] .. '.' .. time[2])
  for _, node in ipairs(redis.call('HKEYS', '${fleetKeys.records}')) do
    redis.call('ZADD', '${bellKeys}' .. node, 0, '${fleetMember}')
    redis.call('PEXPIRE', '${bellKeys}' .. node, ${aliveMs})
  end
end
local function leaveFleet(node)
  redis.call('HDEL', '${fleetKeys.records}', node)
  redis.call('SREM', '${fleetKeys.draining}', node)
end
`;

const beatScript = `${fleetScript}
local me, record = ARGV[1], ARGV[2]
local known = isAlive(me)
redis.call('ZADD', '${fleetKeys.nodes}', now(), me)
local dead = redis.call('ZRANGEBYSCORE', '${fleetKeys.nodes}', '-inf', now() - ${aliveMs})
for _, one in ipairs(dead) do
  redis.call('ZREM', '${fleetKeys.nodes}', one)
  leaveFleet(one)
end
if record ~= '' then
  redis.call('HSET', '${fleetKeys.records}', me, record)
  for _, mirror in ipairs(cjson.decode(ARGV[3])) do
    redis.call('HSETNX', '${fleetKeys.holders}', mirror, '')
  end
end
if record ~= '' or #dead > 0 then fleetChanged() end
return { known and 1 or 0, redis.call('GET', '${fleetKeys.changed}') or '' }
`;

const quitScript = `${fleetScript}
leaveFleet(ARGV[1])
fleetChanged()
`;

const answer = z.tuple([z.number(), z.string()]);

export type NodeHeartbeat = ReturnType<typeof createNodeHeartbeat>;

/** Begins to beat, until it is closed. `name` is unique to this process. */
export function createNodeHeartbeat({ redis, ask }: Quick, name: string, clock: Clock) {
  const over = new AbortController();
  const begun = Promise.withResolvers<void>();
  let woken = new AbortController();
  let member: { record: string; begun: string; isTold: boolean } | undefined;
  let listener: ((changed: string) => void) | undefined;
  const doubt = { times: 0, atMs: clock.monotonic() };
  const waiting = new Set<() => void>();
  const beat = async (): Promise<void> => {
    const own = member;
    const told = own && !own.isTold ? [own.record, own.begun] : ['', ''];
    const found = await ask(() => redis.eval(beatScript, 0, name, ...told));
    const [known, changed] = answer.parse(found);
    if (known === 0 || clock.monotonic() - doubt.atMs >= checkMs) {
      doubt.times += 1;
      doubt.atMs = clock.monotonic();
      for (const wake of waiting) wake();
    }
    begun.resolve();
    if (!own || own !== member) return;
    const isForgotten = own.isTold && known === 0;
    own.isTold = !isForgotten;
    if (isForgotten) await beat();
    else listener?.(changed);
  };
  const go = async (): Promise<void> => {
    while (!over.signal.aborted) {
      woken = new AbortController();
      await beat().catch(() => undefined);
      const ends = AbortSignal.any([over.signal, woken.signal]);
      await clock.sleep(beatMs, ends).catch(() => undefined);
      // Changes come in groups.
      if (woken.signal.aborted) await clock.sleep(gatherMs, over.signal).catch(() => undefined);
    }
  };
  void go();
  return {
    name,
    /** Resolves when Redis knows the process. */
    begun: begun.promise,
    /** Returns how often the locks have been in doubt. */
    doubts: () => doubt.times,
    /** Waits until the locks have been in doubt more often than this, or until `stop`. */
    async doubted(times: number, stop: AbortSignal): Promise<void> {
      if (doubt.times > times || stop.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      stop.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      waiting.delete(resolve);
    },
    /** `begun`: the mirrors with a snapshot here, of which an emptied Redis learns again. */
    join(record: string, begun: readonly string[]): void {
      const text = JSON.stringify(begun);
      if (member?.record === record && member.begun === text) return;
      member = { record, begun: text, isTold: false };
      woken.abort();
    },
    /** Takes the record back. The process stays alive, and has its mirrors until it leaves them. */
    async quit() {
      member = undefined;
      listener = undefined;
      await ask(() => redis.eval(quitScript, 0, name));
    },
    /** Calls `heard` after each beat with the value that differs after a change in the fleet. */
    listen: (heard: (changed: string) => void) => void (listener = heard),
    /** Beats soon, because the fleet has changed. */
    wake: () => woken.abort(),
    close: () => over.abort(),
  };
}
