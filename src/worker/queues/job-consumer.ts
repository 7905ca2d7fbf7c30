/** Taking the jobs of a queue (BullMQ), and letting go of them however Redis is. */
import { DelayedError, Worker, type Job, type WorkerOptions } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { prefix } from './queue-names.ts';
import type { Patient } from './waiting-connection.ts';

const elsewhereMs = 1_000;
/** How long Redis has to hear that the last job is over. */
const farewellMs = 1_000;

/**
 * A job of a worker that died is another's when its lock is over and it was looked at twice, so
 * within 11 s. However many died with it, it is still to be done.
 */
const dead = { lockDuration: 5_000, stalledInterval: 3_000, maxStalledCount: 1_000_000 };

export interface TakeOptions<Data> extends Pick<WorkerOptions, 'concurrency' | 'settings'> {
  connection: Patient;
  clock: Clock;
  /**
   * What it answers is kept with the job; `elsewhere`: another process is the one to do it, and it
   * is offered again a moment later.
   */
  work(job: Job<Data>): Promise<string>;
}

/** Where Redis is lost meanwhile its farewell has no end, and its locks keep the process up. */
class Taker<Data> extends Worker<Data> {
  abandon(): void {
    void this.lockManager.close();
  }
}

/**
 * Works on what is due, until it is closed: that takes nothing more, waits for the work under way,
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
    await job.moveToDelayed(clock.now() + elsewhereMs, token);
    throw new DelayedError();
  };
  const worker = new Taker<Data>(name, take, { connection: redis, prefix, ...dead, ...options });
  worker.on('error', () => undefined);
  return {
    async close() {
      // Without Redis, BullMQ's own farewell has no end.
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
