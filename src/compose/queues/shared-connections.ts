/**
 * Provides the connections that the mirrors of a worker share, among them the bell. It waits for
 * the jobs of many queues (BullMQ) with one blocking read of Redis, instead of one connection and
 * one read for each queue.
 *
 * BullMQ keeps a marker for each queue: a sorted set that gets a member when a job can be taken
 * (score 0), or when a delayed job is added (its time as the score). The bell blocks on the markers
 * of all its queues (BZPOPMIN) and passes what it pops to the queue. When a job is due later is
 * remembered by the queue's own timer, so an idle bell reads once in ten seconds for all queues.
 *
 *   a marker pops         its queue waits          it is woken
 *                         its queue is busy        kept for its next wait
 *   a queue comes, goes   the bell blocks          it blocks anew, with the other markers
 *   the connection ends   markers may be lost      every queue is woken, and looks
 */
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../domain/clock.ts';
import {
  createNodeHeartbeat,
  type NodeHeartbeat,
  bellKeys,
  fleetMember,
} from './node-heartbeat.ts';
import { connectPatiently, connectQuickly, type Quick, type Patient } from './redis-connections.ts';
import { z } from 'zod';

/** What the mirrors of a worker need of one Redis. */
export interface Connections {
  /** Returns a connection that fails fast. Its user closes it, which closes the user's queues. */
  quick(): Quick;
  /** A connection that waits for Redis. */
  patient: Redis;
  /** Returns why Redis is away; undefined if it is there. */
  away(): string | undefined;
  /** Calls `listener` whenever Redis is lost or back, until the returned function is called. */
  listen(listener: () => void): () => void;
  bell: ReturnType<typeof createJobBell>;
  node: NodeHeartbeat;
}

export interface QueuePlace {
  mirror: string;
  clock: Clock;
  connections: Connections;
}

/** Each queue listens to its connection. BullMQ adds to the number, so 0 does not mean any. */
const mostListeners = 1_000_000;

/**
 * Three for each Redis, however many mirrors use them. `name` is unique to this process. `note`
 * prints when a Redis is lost, and when it is back.
 */
export function shareConnections(
  name: string,
  clock: Clock,
  note: (line: string) => void = () => undefined,
) {
  const known = new Map<string, { connections: Connections; close(): void }>();
  const open = (url: string) => {
    let away: string | undefined = 'Redis has not answered yet';
    const listeners = new Set<() => void>();
    const quick = connectQuickly(url);
    const patient = connectPatiently(url, (lost) => {
      away = lost === undefined ? undefined : `Redis is away (${lost})`;
      // Never the whole URL, which may hold a password.
      const { host } = new URL(url);
      note(
        lost === undefined
          ? `crm-mirror: Redis at ${host} is there again, the schedule goes on`
          : `crm-mirror: Redis at ${host} is away (${lost}); the schedule waits for it`,
      );
      for (const listener of listeners) listener();
    });
    patient.redis.once('ready', () => (away = undefined));
    const listen = (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    };
    const blocking = connectPatiently(url);
    for (const { redis } of [quick, patient]) redis.setMaxListeners(mostListeners);
    const node = createNodeHeartbeat(quick, name, clock);
    const bell = createJobBell(blocking, patient.redis, node, clock);
    const share = (): Quick => {
      const queues: Queue[] = [];
      return {
        ...quick,
        queue<Data, Answer>(of: string) {
          const queue = quick.queue<Data, Answer>(of);
          queues.push(queue);
          return queue;
        },
        // Without Redis, closing may never end.
        close: () => queues.forEach((queue) => void queue.close().catch(() => undefined)),
      };
    };
    const close = (): void => {
      node.close();
      bell.close();
      for (const one of [quick, patient]) one.close();
    };
    const own = { patient: patient.redis, away: () => away, listen, bell, node };
    return { connections: { quick: share, ...own }, close };
  };
  return {
    /** Returns those to this Redis. The users do not close them. */
    to(url: string): Connections {
      const one = known.get(url) ?? open(url);
      known.set(url, one);
      return one.connections;
    },
    close: () => known.forEach((one) => one.close()),
  };
}

export type SharedConnections = ReturnType<typeof shareConnections>;

/** What a marker says: a job can be taken, or one is due at this time. */
interface Ring {
  member: string;
  score: number;
}

interface Rope {
  kept: Ring | null;
  wake: ((ring: Ring | null) => void) | undefined;
}

/** The longest blocking read, in seconds; a longer one may outlive its connection. */
const longestRead = 10;
/** How long to wait for further queues before the read begins anew: they come in groups. */
const gatherMs = 50;

/** A read that takes longer than this hangs. */
const hangsMs = 15_000;
const refusedMs = 500;
/** How long the marker of the bell itself stays if nobody reads it. */
const ownMs = 60_000;

const popped = z.tuple([z.string(), z.string(), z.string()]);

/** The bell closes the connection that blocks; `asking` is another one, which wakes it. */
function createJobBell(blocking: Patient, asking: Redis, node: NodeHeartbeat, clock: Clock) {
  /** A marker of the bell itself, to begin the read anew. */
  const own = bellKeys + node.name;
  const ropes = new Map<string, Rope>();
  let isClosed = false;
  let isWaking = false;

  const wake = async (): Promise<void> => {
    await clock.sleep(gatherMs);
    isWaking = false;
    if (!isClosed) await asking.multi().zadd(own, 0, own).pexpire(own, ownMs).exec();
  };
  /** Has the read begin anew with the queues of now, which change in groups. */
  const changed = (): void => {
    if (isWaking || isClosed) return;
    isWaking = true;
    // Without Redis there is no read to interrupt.
    wake().catch(() => undefined);
  };
  /** Renews the connection of a read that outlives its time, which sends the read again. */
  const endHanging = async (over: AbortSignal): Promise<void> => {
    for (;;) {
      await clock.sleep(hangsMs, over).catch(() => undefined);
      if (over.aborted) return;
      if (blocking.redis.status === 'ready') blocking.redis.disconnect(true);
    }
  };
  const listen = async (): Promise<void> => {
    for (;;) {
      if (isClosed) return;
      const over = new AbortController();
      void endHanging(over.signal);
      try {
        const found = await blocking.redis.bzpopmin([own, ...ropes.keys()], longestRead);
        if (found === null) continue;
        const [marker, member, score] = popped.parse(found);
        if (marker === own && member === fleetMember) node.wake();
        const rope = ropes.get(marker);
        const ring = { member, score: Number(score) };
        if (rope?.wake) rope.wake(ring);
        else if (rope) rope.kept = ring;
      } catch {
        // Redis refuses, for example while it loads its data.
        await clock.sleep(refusedMs);
      } finally {
        over.abort();
      }
    }
  };

  blocking.redis.on('close', () => {
    for (const rope of ropes.values()) {
      if (rope.wake) rope.wake(null);
      else rope.kept = { member: '0', score: 0 };
    }
  });
  void listen();
  return {
    rope: (marker: string) => {
      const rope: Rope = { kept: null, wake: undefined };
      ropes.set(marker, rope);
      changed();
      let isGone = false;
      let gone: (() => void) | undefined;
      return {
        /** Waits until a marker pops, or the time is over (null). Throws once it is let go. */
        async wait(timeoutMs: number): Promise<Ring | null> {
          // BullMQ takes this error as the end of its connection, and takes no job after it.
          if (isGone) throw new Error('Connection is closed.');
          const { kept } = rope;
          rope.kept = null;
          if (kept) return kept;
          const { promise, resolve, reject } = Promise.withResolvers<Ring | null>();
          rope.wake = resolve;
          gone = () => reject(new Error('Connection is closed.'));
          const over = new AbortController();
          clock.sleep(timeoutMs, over.signal).then(
            () => resolve(null),
            () => undefined,
          );
          try {
            return await promise;
          } finally {
            over.abort();
            rope.wake = undefined;
          }
        },
        /** Ends the wait, and every later one. */
        letGo(): void {
          isGone = true;
          gone?.();
          if (ropes.get(marker) === rope) ropes.delete(marker);
          changed();
        },
      };
    },
    close() {
      isClosed = true;
      blocking.close();
    },
  };
}
