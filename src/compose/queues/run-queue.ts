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
import { evictionPolicyIn, hearOf } from './redis-connections.ts';
import type { QueuePlace } from './shared-connections.ts';
import { takeJobs } from './job-consumer.ts';
import { looksOf, prefix, runsOf } from './queue-names.ts';
import { dueIn, looks, runs, type Schedule, type Tick, ticks } from './run-schedule.ts';
import { dueSettings, storeEntries } from './stored-schedule.ts';

export type RunQueue = ReturnType<typeof openRunQueue>;

/**
 * Opens the queue. Nothing runs before `serve`. Calls `notice` with the reason when the connection
 * to Redis is lost, and with undefined when it is established or restored.
 */
export function openRunQueue({
  mirror,
  clock,
  notice,
  connections,
}: QueuePlace & { notice(lost: string | undefined): void }) {
  const { patient: redis } = connections;
  const heard = hearOf(redis, notice);
  const settings = dueSettings(clock);
  const rows = [
    { name: runsOf(mirror), due: runs },
    { name: looksOf(mirror), due: looks },
  ].map(({ name, due }) => {
    const queue = new Queue(name, { connection: redis, prefix, settings });
    queue.on('error', () => undefined);
    return { name, queue, due: new Set<Tick>(due) };
  });
  let taken: { close(): Promise<void> }[] = [];
  const rest = async (): Promise<void> => {
    await Promise.all(taken.map(async (one) => one.close()));
    taken = [];
  };
  return {
    /**
     * Replaces the schedule with this one. Returns the entries that were not in Redis like this, or
     * of which Redis had lost a part. Waits for Redis.
     */
    async follow(schedule: Schedule): Promise<Tick[]> {
      const wanted = dueIn(schedule);
      const mended: Tick[] = [];
      for (const { queue, due } of rows) {
        const own = wanted.filter(({ tick }) => due.has(tick));
        const { timezone } = schedule;
        mended.push(...(await storeEntries(queue, { wanted: own, timezone, now: clock.now() })));
      }
      return mended;
    },
    /**
     * Returns by which policy Redis drops keys when its memory is full; undefined if it drops none
     * or does not say so. Waits for Redis.
     */
    evictsBy: async () => evictionPolicyIn(await redis.info('memory').catch(() => '')),
    /**
     * Calls `run` for due runs, one after the other, until `close`, with the time at which each was
     * due, in milliseconds since the epoch. `run` never throws. It returns `elsewhere` if another
     * process has to do the run, which is then offered again a moment later.
     */
    serve(run: (tick: Tick, dueMs: number) => Promise<'over' | 'elsewhere'>): void {
      const work = async (job: Job) => {
        const tick = ticks.find((known) => known === job.name);
        return tick === undefined ? 'over' : run(tick, job.opts.prevMillis ?? job.timestamp);
      };
      taken = rows.map(({ name }) => takeJobs(name, { connections, clock, work, settings }));
    },
    /** Takes no more runs, and waits for the run in progress. */
    rest,
    /** Takes no more runs, waits for the run in progress, and closes the queue. */
    async close() {
      heard.ignore();
      await rest();
      // Without Redis, closing may never end.
      for (const { queue } of rows) void queue.close().catch(() => undefined);
    },
  };
}
