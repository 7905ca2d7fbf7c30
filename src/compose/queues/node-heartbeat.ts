/**
 * Shows in Redis that a worker of many mirrors is alive: one key for the process, instead of one
 * for each mirror. The key of a mirror names the process (assignment-store.ts).
 *
 *   a beat finds             result
 *   the key of the process   nothing
 *   no key                   all assignments are checked: Redis was emptied, or this process stood
 *                            still so long that others may have taken its mirrors
 *   no Redis                 nothing: the key expires, and the next beat finds none
 *
 * A process that has joined the fleet is listed there with its record, and removes the processes
 * that are dead. Every change in the fleet changes one value, which a beat returns: a process looks
 * at the others only after that.
 */
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { aliveMs, fleetChanged, fleetKeys, forgetNode } from './fleet-keys.ts';
import { prefix } from './queue-names.ts';
import type { Quick } from './redis-connections.ts';

export const nodeKeys = `${prefix}:node:`;

const beatMs = 5_000;
/** How often an assignment is checked without a reason. */
const checkMs = 300_000;
/** How long to wait for further changes of the fleet. */
const gatherMs = 200;

/** The sign of life of a process. */
export type NodeHeartbeat = ReturnType<typeof createNodeHeartbeat>;

const beatScript = `${forgetNode}${fleetChanged}
local known = redis.call('EXISTS', KEYS[1])
redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])
local name, record = ARGV[2], ARGV[3]
if name == '' then return { known, '', 0 } end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local added = redis.call('ZADD', '${fleetKeys.nodes}', now, name)
local dead = redis.call('ZRANGEBYSCORE', '${fleetKeys.nodes}', '-inf', now - ARGV[1])
for _, one in ipairs(dead) do forgetNode(one) end
if record ~= '' then redis.call('HSET', '${fleetKeys.records}', name, record) end
if record ~= '' or #dead > 0 then fleetChanged() end
return { known, redis.call('GET', '${fleetKeys.changed}') or '', added }
`;

const quitScript = `${forgetNode}${fleetChanged}
forgetNode(ARGV[1])
fleetChanged()
`;

const answer = z.tuple([z.number(), z.string(), z.number()]);

/** Begins to beat, until it is closed. `name` is unique to this process. */
export function createNodeHeartbeat({ redis, ask }: Quick, name: string, clock: Clock) {
  const key = nodeKeys + name;
  const over = new AbortController();
  const begun = Promise.withResolvers<void>();
  let woken = new AbortController();
  let member: { record: string; isTold: boolean } | undefined;
  let listener: ((changed: string) => void) | undefined;
  const checks = createChecks(clock);
  const beat = async (): Promise<void> => {
    const own = member;
    const told = [own ? name : '', own && !own.isTold ? own.record : ''];
    const found = await ask(() => redis.eval(beatScript, 1, key, aliveMs, ...told));
    const [known, changed, added] = answer.parse(found);
    if (known === 0) checks.dueAll();
    begun.resolve();
    if (!own || own !== member) return;
    const isForgotten = own.isTold && added === 1;
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
    /** Waits until the assignment of the mirror has to be checked, or until `stop`. */
    due: checks.wait,
    /** Lists the process in the fleet with this record, or with another one than before. */
    join(record: string): void {
      if (member?.record === record) return;
      member = { record, isTold: false };
      woken.abort();
    },
    /** Removes the process from the fleet. Its mirrors stay assigned to it until they are left. */
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

/** The waits of mirrors for the next check of their assignment. */
function createChecks(clock: Clock) {
  /** The mirrors to check when they wait again. */
  const due = new Set<string>();
  const waiting = new Map<string, AbortController>();
  return {
    dueAll(): void {
      for (const [mirror, woken] of waiting) {
        due.add(mirror);
        woken.abort();
      }
    },
    async wait(mirror: string, stop: AbortSignal): Promise<void> {
      const woken = new AbortController();
      waiting.set(mirror, woken);
      const ends = AbortSignal.any([stop, woken.signal]);
      if (!due.delete(mirror)) await clock.sleep(checkMs, ends).catch(() => undefined);
      due.delete(mirror);
      if (stop.aborted) waiting.delete(mirror);
    },
  };
}
