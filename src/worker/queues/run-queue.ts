/**
 * Stores the runs of one mirror in Redis (BullMQ). They are due by cron patterns, and only one runs
 * at a time, on however many machines. The sentinel has a queue of its own and runs in parallel. A
 * tick that arrives while its run is waiting joins that run, so missed ticks are made up for only
 * once.
 *
 * A job holds only the name of its tick. While Redis is away, nothing is due; BullMQ keeps trying
 * to reconnect, and continues when Redis is back.
 */
import { type Job, Queue } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { hearOf } from './redis-connections.ts';
import { type Connections, ownConnections } from './shared-connections.ts';
import { takeJobs } from './job-consumer.ts';
import { looksOf, prefix, runsOf } from './queue-names.ts';
import { dueIn, looks, runs, type Schedule, type Tick, ticks } from './run-schedule.ts';

/** The Redis server and the mirror. */
export interface RunQueueOptions {
  /** A redis:// or rediss:// URL. */
  url: string;
  /** Connections to share; by default the queue opens its own. */
  connections?: Connections | undefined;
  mirror: string;
  clock: Clock;
  /**
   * Called with the reason when the connection to Redis is lost, and with undefined when it is
   * established or restored.
   */
  notice(lost: string | undefined): void;
}

/** The runs of one mirror. */
export interface RunQueue {
  /** Replaces the schedule with this one. Waits for Redis. */
  follow(schedule: Schedule): Promise<void>;
  /**
   * Calls `run` for due runs, one after the other, until `close`, with the time at which each was
   * due, in milliseconds since the epoch. `run` never throws. It returns `elsewhere` if another
   * process has to do the run, which is then offered again a moment later.
   */
  serve(run: (tick: Tick, dueMs: number) => Promise<'over' | 'elsewhere'>): void;
  /** Takes no more runs, and waits for the run in progress. */
  rest(): Promise<void>;
  /** Takes no more runs, waits for the run in progress, and closes its connections. */
  close(): Promise<void>;
}

/**
 * The number of ended jobs that BullMQ keeps for its own statistics; the history is in the
 * snapshot.
 */
const kept = { count: 100 };

/** Opens the queue. Nothing runs before `serve`. */
export function openRunQueue({
  url,
  mirror,
  clock,
  notice,
  connections = ownConnections(url),
}: RunQueueOptions): RunQueue {
  const asking = connections.patient();
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
  const rest = async (): Promise<void> => {
    await Promise.all(taken.map(async (one) => one.close()));
    taken = [];
  };
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
        return tick === undefined ? 'over' : run(tick, job.opts.prevMillis ?? job.timestamp);
      };
      taken = rows.map(({ name }) => takeJobs(name, { connections, clock, work }));
    },
    rest,
    async close() {
      heard.ignore();
      await rest();
      // Without Redis, closing may never end.
      for (const { queue } of rows) void queue.close().catch(() => undefined);
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
  const stored = await queue.getJobSchedulers();
  for (const { tick, pattern } of wanted) {
    const same = stored.find((one) => one.key === tick && one.pattern === pattern && one.tz === tz);
    if (same && (await isPending(queue, tick, same.next))) continue;
    await queue.upsertJobScheduler(tick, { pattern, tz }, { name: tick, opts });
  }
  const names = new Set<string>(wanted.map(({ tick }) => tick));
  for (const { key } of stored) {
    if (!names.has(key)) await queue.removeJobScheduler(key);
  }
}

/**
 * Returns whether the next run of an entry is stored. It may have been due while no worker had the
 * mirror: storing the entry again would replace it by a later one.
 */
async function isPending(queue: Queue, tick: Tick, next: number | undefined): Promise<boolean> {
  const job = await queue.getJob(`repeat:${tick}:${next}`);
  return job !== undefined && job.finishedOn === undefined;
}
