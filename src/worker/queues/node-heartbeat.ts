/**
 * Shows in Redis that a worker of many mirrors is alive: one key for the process, instead of one
 * for each mirror. The key of a mirror names the process (assignment-store.ts).
 *
 *   a beat finds             result
 *   the key of the process   nothing
 *   a mirror that is lost    its assignment is checked at once
 *   no key                   all assignments are checked: Redis was emptied, or this process stood
 *                            still so long that others may have taken its mirrors
 *   no Redis                 nothing: the key expires, and the next beat finds none
 */
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { prefix } from './queue-names.ts';
import type { Quick } from './redis-connections.ts';

/** The period of silence after which a worker counts as dead. */
export const aliveMs = 15_000;
/** The keys of processes begin with this. */
export const nodeKeys = `${prefix}:node:`;

const beatMs = 5_000;
/** How often an assignment is checked without a reason. */
const checkMs = 300_000;

/** The sign of life of a process. */
export interface NodeHeartbeat {
  /** The name of the process. */
  name: string;
  /** Resolves when Redis knows the process. */
  begun: Promise<void>;
  /** Waits until the assignment of the mirror has to be checked, or until `stop`. */
  due(mirror: string, stop: AbortSignal): Promise<void>;
  close(): void;
}

const beatScript = `
local known = redis.call('EXISTS', KEYS[1])
redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])
local lost = redis.call('SMEMBERS', KEYS[2])
if #lost > 0 then redis.call('DEL', KEYS[2]) end
return { known, lost }
`;

const answer = z.tuple([z.number(), z.array(z.string())]);

/** Begins to beat, until it is closed. `name` is unique to this process. */
export function createNodeHeartbeat(
  { redis, ask }: Quick,
  name: string,
  clock: Clock,
): NodeHeartbeat {
  const key = nodeKeys + name;
  const over = new AbortController();
  const begun = Promise.withResolvers<void>();
  /** The mirrors to check when they wait again. */
  const due = new Set<string>();
  const waiting = new Map<string, AbortController>();
  const check = (mirror: string): void => {
    due.add(mirror);
    waiting.get(mirror)?.abort();
  };
  const beat = async (): Promise<void> => {
    const found = await ask(() => redis.eval(beatScript, 2, key, `${key}:lost`, aliveMs));
    const [known, lost] = answer.parse(found);
    for (const mirror of known === 0 ? waiting.keys() : lost) check(mirror);
    begun.resolve();
  };
  const go = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await beat().catch(() => undefined);
      await clock.sleep(beatMs, over.signal).catch(() => undefined);
    }
  };
  void go();
  return {
    name,
    begun: begun.promise,
    async due(mirror, stop) {
      const woken = new AbortController();
      waiting.set(mirror, woken);
      const ends = AbortSignal.any([stop, woken.signal]);
      if (!due.delete(mirror)) await clock.sleep(checkMs, ends).catch(() => undefined);
      due.delete(mirror);
      if (stop.aborted) waiting.delete(mirror);
    },
    close: () => over.abort(),
  };
}
