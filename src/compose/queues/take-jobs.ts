/** Takes the jobs of a queue (BullMQ), for which the shared bell waits (shared-connections.ts). */
import { createRedisBackend, DelayedError, type Job, Worker, type WorkerOptions } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import { prefix } from './redis-connections.ts';
import type { Connections } from './shared-connections.ts';

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
      const ended = new AbortController();
      const late = clock.sleep(farewellMs, ended.signal).catch(() => undefined);
      await Promise.race([closing, late]);
      ended.abort();
      worker.abandon();
    },
  };
}
