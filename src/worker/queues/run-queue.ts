/**
 * The runs of one mirror in Redis (BullMQ): due by cron patterns, one at a time on however many
 * machines; the sentinel stands beside them, in a queue of its own. A tick that comes while its run
 * waits is that run: what was missed is done once.
 *
 * A job holds the name of its tick and nothing else. While Redis is away nothing is due; BullMQ
 * tries it again and again, and goes on when it is there.
 */
import { Queue, type Job } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { hearOf } from './connection-loss.ts';
import { takeJobs } from './job-consumer.ts';
import { looksOf, prefix, runsOf } from './queue-names.ts';
import { connectPatiently } from './waiting-connection.ts';
import { dueIn, looks, runs, ticks, type Schedule, type Tick } from './run-schedule.ts';

export interface RunQueueOptions {
  /** redis:// or rediss://. */
  url: string;
  mirror: string;
  clock: Clock;
  /** Redis was lost, and why; undefined: it is there, for the first time or again. */
  notice(lost: string | undefined): void;
}

export interface RunQueue {
  /** Makes this the schedule, in the place of whatever was; waits for Redis. */
  follow(schedule: Schedule): Promise<void>;
  /**
   * Calls `run` for whatever is due, one after the other, until `close`. It never throws, and
   * answers `elsewhere` where this process is not the one to do it: somebody does a moment later.
   */
  serve(run: (tick: Tick) => Promise<'over' | 'elsewhere'>): void;
  /** Takes nothing more, waits for the run under way, and lets go of Redis. */
  close(): Promise<void>;
}

/** How many that have ended BullMQ keeps, for its own counts: the snapshot has the history. */
const kept = { count: 100 };

export function openRunQueue({ url, mirror, clock, notice }: RunQueueOptions): RunQueue {
  const asking = connectPatiently(url);
  const { redis } = asking;
  const heard = hearOf(redis, notice);
  const rows = [
    { name: runsOf(mirror), due: runs },
    { name: looksOf(mirror), due: looks },
  ].map(({ name, due }) => {
    const queue = new Queue(name, { connection: redis, prefix });
    queue.on('error', () => undefined);
    return { name, queue, due: new Set<Tick>(due) };
  });
  let taken: { close(): Promise<void> }[] = [];
  return {
    async follow(schedule) {
      const wanted = dueIn(schedule);
      for (const { queue, due } of rows) {
        await followIn(
          queue,
          wanted.filter(({ tick }) => due.has(tick)),
          schedule.timezone,
        );
      }
    },
    serve(run) {
      const work = async (job: Job) => {
        const tick = ticks.find((known) => known === job.name);
        return tick === undefined ? 'over' : run(tick);
      };
      taken = rows.map(({ name }) =>
        takeJobs(name, { connection: connectPatiently(url), clock, work }),
      );
    },
    async close() {
      heard.ignore();
      await Promise.all(taken.map(async (one) => one.close()));
      asking.close();
    },
  };
}

async function followIn(
  queue: Queue,
  wanted: readonly { tick: Tick; pattern: string }[],
  tz: string,
): Promise<void> {
  await queue.setGlobalConcurrency(1);
  const opts = { removeOnComplete: kept, removeOnFail: kept };
  for (const { tick, pattern } of wanted) {
    await queue.upsertJobScheduler(tick, { pattern, tz }, { name: tick, opts });
  }
  const names = new Set<string>(wanted.map(({ tick }) => tick));
  for (const { key } of await queue.getJobSchedulers()) {
    if (!names.has(key)) await queue.removeJobScheduler(key);
  }
}
