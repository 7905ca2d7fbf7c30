/** Takes the jobs of a queue (BullMQ), and ends cleanly whatever Redis does. */
import { DelayedError, type Job, Worker, type WorkerOptions } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { prefix } from './queue-names.ts';
import type { Patient } from './redis-connections.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';

/** How long Redis has to hear that the last job is over. */
const farewellMs = 1_000;

/**
 * The job of a worker that died goes to another when its lock has expired and it was looked at
 * twice: within 11 s. It stays to be done however many workers die with it.
 */
const dead = { lockDuration: 5_000, stalledInterval: 3_000, maxStalledCount: 1_000_000 };

/** How to take jobs. */
export interface TakeOptions<Data> extends Pick<WorkerOptions, 'concurrency' | 'settings'> {
  connection: Patient;
  clock: Clock;
  /**
   * Works on a job. The answer is kept with the job; `elsewhere`: another process has to do it, and
   * it is offered again a moment later.
   */
  work(job: Job<Data>): Promise<string>;
}

/**
 * A worker that can be abandoned: if Redis is lost while it closes, it never ends closing, and its
 * locks keep the process alive.
 */
class Taker<Data> extends Worker<Data> {
  abandon(): void {
    void this.lockManager.close();
  }
}

/**
 * Works on what is due until it is closed. Closing takes no more jobs, waits for the work under
 * way, and ends the connection.
 */
export function takeJobs<Data>(
  name: string,
  { connection: { redis, leave, close }, clock, work, ...options }: TakeOptions<Data>,
): { close(): Promise<void> } {
  const underWay = new Set<Promise<unknown>>();
  const take = async (job: Job<Data>, token?: string): Promise<string> => {
    const working = work(job);
    underWay.add(working);
    const end = await working.finally(() => underWay.delete(working));
    if (end !== 'elsewhere') return end;
    await job.moveToDelayed(clock.now() + retrySchedules.jobElsewhere.firstMs, token);
    throw new DelayedError();
  };
  const worker = new Taker<Data>(name, take, { connection: redis, prefix, ...dead, ...options });
  worker.on('error', () => undefined);
  return {
    async close() {
      // Without Redis, BullMQ waits for ever.
      const closing = worker.close(redis.status !== 'ready');
      while (underWay.size > 0) await Promise.allSettled(underWay);
      leave();
      const heard = new AbortController();
      const late = clock.sleep(farewellMs, heard.signal).catch(() => undefined);
      await Promise.race([closing, late]);
      heard.abort();
      worker.abandon();
      close();
    },
  };
}
