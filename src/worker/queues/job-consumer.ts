/** Takes the jobs of a queue (BullMQ), and shuts down cleanly whatever happens to Redis. */
import { DelayedError, type Job, Worker, type WorkerOptions } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { prefix } from './queue-names.ts';
import type { Patient } from './redis-connections.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';

/** How long to wait for Redis to record that the last job has ended. */
const farewellMs = 1_000;

/**
 * The job of a dead worker goes to another one when its lock has expired and two checks have found
 * it stalled, that is, within 11 s. A job is never abandoned, no matter how many workers die while
 * processing it.
 */
const dead = { lockDuration: 5_000, stalledInterval: 3_000, maxStalledCount: 1_000_000 };

/** The settings for taking jobs. */
export interface TakeOptions<Data> extends Pick<WorkerOptions, 'concurrency' | 'settings'> {
  connection: Patient;
  clock: Clock;
  /**
   * Processes a job. The returned text is stored with the job. `elsewhere` means that another
   * process has to do it; it is offered again a moment later.
   */
  work(job: Job<Data>): Promise<string>;
}

/**
 * A worker that can be abandoned. If the connection to Redis is lost during closing, the closing
 * never ends, and the worker's locks would keep the process alive.
 */
class Taker<Data> extends Worker<Data> {
  abandon(): void {
    void this.lockManager.close();
  }
}

/**
 * Processes jobs until it is closed. Closing takes no more jobs, waits for the work in progress,
 * and ends the connection.
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
      // Without Redis, BullMQ waits forever.
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
