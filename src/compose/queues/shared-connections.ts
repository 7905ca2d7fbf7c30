/**
 * Provides the connections that the mirrors of a worker share, and takes the jobs of its queues
 * (BullMQ). The bell waits for the jobs of many queues with one blocking read of Redis, instead of
 * one connection and one read for each queue.
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
import {
  createRedisBackend,
  DelayedError,
  type Job,
  type Queue,
  Worker,
  type WorkerOptions,
} from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../domain/clock.ts';
import {
  createNodeHeartbeat,
  type NodeHeartbeat,
  bellKeys,
  fleetMember,
} from './node-heartbeat.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import {
  connectPatiently,
  connectQuickly,
  prefix,
  type Quick,
  type Patient,
} from './redis-connections.ts';
import { z } from 'zod';

/** What the mirrors of a worker need of one Redis. */
export interface Connections {
  /** Returns a connection that fails fast. Its user closes it, which closes the user's queues. */
  quick(): Quick;
  /** A connection that waits for Redis. */
  patient: Redis;
  /** Returns why Redis is away; undefined if it is there. */
  away(): string | undefined;
  /** Calls `heard` whenever Redis is lost or back, until the returned function is called. */
  hear(heard: () => void): () => void;
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
    const hearing = new Set<() => void>();
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
      for (const heard of hearing) heard();
    });
    patient.redis.once('ready', () => (away = undefined));
    const hear = (heard: () => void) => {
      hearing.add(heard);
      return () => void hearing.delete(heard);
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
    const shown = { patient: patient.redis, away: () => away, hear, bell, node };
    return { connections: { quick: share, ...shown }, close };
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

/** How long to wait for Redis to record that the last job has ended. */
const farewellMs = 1_000;

/** A queue is looked at unasked in case a notice was lost: there may be thousands, so seldom. */
const quietMs = 1_800_000;
/** A job of a dead worker is found by the second check after its lock has expired. */
const checksAtFirst = 5;
const checkMs = 3_000;

/**
 * The job of a dead worker goes to another one within 11 s: when its lock has expired and two
 * checks have found it stalled. It is never abandoned, no matter how many workers die.
 */
const fixed = {
  prefix,
  lockDuration: 5_000,
  maxStalledCount: 1_000_000,
  stalledInterval: checkMs,
  drainDelay: quietMs / 1_000,
  skipStalledCheck: true,
};

export interface TakeOptions<Data> {
  concurrency?: number;
  settings?: WorkerOptions['settings'];
  connections: Connections;
  clock: Clock;
  /** Returns a text to store, or `elsewhere`: another process has to do it, a moment later. */
  work(job: Job<Data>): Promise<string>;
}

/** Without Redis, closing never ends, and the worker's locks would keep the process alive. */
class Taker<Data> extends Worker<Data> {
  abandon(): void {
    void this.lockManager.close();
    void this.getBackend()
      .close(true)
      .catch(() => undefined);
  }
}

/** Processes jobs until it is closed. Closing takes no more, and waits for those in progress. */
export function takeJobs<Data>(
  name: string,
  { connections, clock, work, concurrency = 1, settings }: TakeOptions<Data>,
): { close(): Promise<void> } {
  const { patient: redis, bell } = connections;
  const underWay = new Set<Promise<unknown>>();
  const take = async (job: Job<Data>, token?: string): Promise<string> => {
    const working = work(job);
    underWay.add(working);
    const end = await working.finally(() => underWay.delete(working));
    if (end !== 'elsewhere') return end;
    await job.moveToDelayed(clock.now() + retrySchedules.jobElsewhere.firstMs, token);
    throw new DelayedError();
  };
  const own = { connection: redis, ...fixed, concurrency, ...(settings && { settings }) };
  const worker = new Taker<Data>(name, take, own, (name, options) => {
    const backend = createRedisBackend(name, options);
    const rope = bell.rope(backend.keys['marker'] ?? '');
    Object.defineProperty(backend, 'maximumBlockTimeout', { value: quietMs / 1_000 });
    return Object.assign(backend, {
      waitForJob: async (seconds: number) => rope.wait(Math.ceil(seconds * 1_000)),
      disconnectBlocking: async () => rope.letGo(),
      reconnectBlocking: async () => undefined,
    });
  });
  // This worker may have lost the lock of a job itself, so it looks after each error, too.
  const over = new AbortController();
  let left = checksAtFirst;
  let wake = new AbortController();
  const check = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const backend = worker.getBackend();
      await backend.moveStalledJobsToWait().catch(() => undefined);
      left = Math.max(0, left - 1);
      const pauseMs = left > 0 ? checkMs + 100 : quietMs;
      const signal = AbortSignal.any([over.signal, wake.signal]);
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    }
  };
  void check();
  worker.on('error', () => {
    if (left > 0) return;
    left = checksAtFirst;
    wake.abort();
    wake = new AbortController();
  });
  return {
    async close() {
      over.abort();
      // Without Redis, BullMQ waits forever.
      const closing = worker.close(redis.status !== 'ready');
      while (underWay.size > 0) await Promise.allSettled(underWay);
      const heard = new AbortController();
      const late = clock.sleep(farewellMs, heard.signal).catch(() => undefined);
      await Promise.race([closing, late]);
      heard.abort();
      worker.abandon();
    },
  };
}
