/**
 * Stores the runs of one mirror in Redis (BullMQ). They are due by cron patterns, and only one runs
 * at a time, on however many machines. The sentinel has a queue of its own and runs in parallel. A
 * tick that arrives while its run is waiting joins that run, so missed ticks are made up for only
 * once.
 *
 * An entry of the schedule consists of several keys (BullMQ's job schedulers), each of which can be
 * evicted or removed by hand: without one of them BullMQ makes no run of it any more, so what Redis
 * has lost is found and stored again.
 *
 * A job holds only the name of its tick. While Redis is away, nothing is due; BullMQ keeps trying
 * to reconnect, and continues when Redis is back.
 */
import { type Job, Queue, type QueueOptions } from 'bullmq';
import {
  evictionPolicyIn,
  prefix,
  queueName,
  connectQuickly,
  type Quick,
} from './redis-connections.ts';
import type { QueuePlace } from './shared-connections.ts';
import { takeJobs } from './take-jobs.ts';
import {
  dueAfter,
  dueIn,
  lookTicks,
  runTicks,
  type Schedule,
  type Tick,
  ticks,
} from '../../config/schema/cron-pattern.ts';
import { countsOf } from './event-queue.ts';

export type RunQueue = ReturnType<typeof openRunQueue>;

/** Opens the queue. Nothing runs before `serve`. */
export function openRunQueue({ mirror, clock, connections }: QueuePlace) {
  const { patient: redis } = connections;
  // By them, BullMQ computes when an entry is due as everything else here does.
  const settings: NonNullable<QueueOptions['settings']> = {
    repeatStrategy: (after, { pattern = '', tz = 'UTC' }) =>
      dueAfter(pattern, tz, Math.max(after, clock.now())),
  };
  const rows = [
    { name: queueName('runs', mirror), due: runTicks },
    { name: queueName('sentinel', mirror), due: lookTicks },
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
    /** Returns the entries that were not in Redis like this, or only in part. Waits for Redis. */
    async follow(schedule: Schedule): Promise<Tick[]> {
      const { timezone: tz } = schedule;
      const mended: Tick[] = [];
      for (const { queue, due } of rows) {
        const wanted = dueIn(schedule).filter(({ tick }) => due.has(tick));
        await queue.setGlobalConcurrency(1);
        const stored = await queue.getJobSchedulers();
        for (const { tick, pattern } of wanted) {
          const known = stored.find(({ key }) => key === tick);
          const isSame = known?.pattern === pattern && known.tz === tz;
          if (isSame && (await isPending(queue, jobOf(tick, known.next)))) continue;
          // BullMQ refuses an id that is there, so what may remain of the entry goes first. What
          // cannot be removed belongs to an entry that another caller has stored meanwhile.
          await queue.removeJobScheduler(tick);
          for (const at of new Set([known?.next, dueAfter(pattern, tz, clock.now())])) {
            await queue.remove(jobOf(tick, at)).catch(() => undefined);
          }
          const opts = { removeOnComplete: kept, removeOnFail: kept };
          await queue.upsertJobScheduler(tick, { pattern, tz }, { name: tick, opts });
          mended.push(tick);
        }
        const names = new Set<string>(wanted.map(({ tick }) => tick));
        for (const { key } of stored) if (!names.has(key)) await queue.removeJobScheduler(key);
      }
      return mended;
    },
    /** Undefined if Redis drops no keys, or does not say so. Waits for Redis. */
    evictsBy: async () => evictionPolicyIn(await redis.info('memory').catch(() => '')),
    /**
     * Calls `run`, which never throws, for due runs one after the other, with when each was due
     * (milliseconds since the epoch). `elsewhere` is offered again a moment later.
     */
    serve(run: (tick: Tick, dueMs: number) => Promise<'over' | 'elsewhere'>): void {
      const work = async (job: Job) => {
        const tick = ticks.find((known) => known === job.name);
        return tick === undefined ? 'over' : run(tick, job.opts.prevMillis ?? job.timestamp);
      };
      taken = rows.map(({ name }) => takeJobs(name, { connections, clock, work, settings }));
    },
    rest,
    async close() {
      await rest();
      // Without Redis, closing may never end.
      for (const { queue } of rows) void queue.close().catch(() => undefined);
    },
  };
}

/** How many ended jobs BullMQ keeps for its statistics; the history is in the snapshot. */
const kept = { count: 100 };

function jobOf(tick: Tick, at: number | undefined): string {
  return `repeat:${tick}:${at}`;
}

/**
 * Also a run that was due while no worker had the mirror counts: storing the entry again would
 * replace it by a later one.
 */
async function isPending(queue: Queue, id: string): Promise<boolean> {
  const [job, state] = await Promise.all([queue.getJob(id), queue.getJobState(id)]);
  return job !== undefined && pendingStates.has(state);
}

const pendingStates = new Set<string>(['delayed', 'waiting', 'active', 'prioritized']);

export interface Depth extends Awaited<ReturnType<typeof countsOf>> {
  mirror: string;
  queue: 'runs' | 'events';
}

/** Opens the view of a mirror, on a connection of its own or on `quick`. Closing it closes both. */
export function viewQueues(mirror: string, at: { url: string } | { quick: Quick }) {
  const quick = 'url' in at ? connectQuickly(at.url) : at.quick;
  const runs = quick.queue(queueName('runs', mirror));
  const events = quick.queue(queueName('events', mirror));
  const looks = quick.queue(queueName('sentinel', mirror));
  const depthOf = async (queue: Depth['queue'], of: Queue): Promise<Depth> => ({
    mirror,
    queue,
    ...(await quick.ask(() => countsOf(of))),
  });
  return {
    queues: [runs, events],
    /** Returns the depth of each queue. Throws Unavailable while Redis is away. */
    depths: () => Promise.all([depthOf('runs', runs), depthOf('events', events)]),
    /** Soonest first, in milliseconds since the epoch. Throws Unavailable while Redis is away. */
    async due(): Promise<{ tick: Tick; at: number }[]> {
      const all = await quick.ask(() =>
        Promise.all(
          [runs, looks].map(async (queue) => {
            const found: { tick: Tick; at: number }[] = [];
            for (const { key, next: at } of await queue.getJobSchedulers()) {
              const tick = ticks.find((known) => known === key);
              if (!tick || at === undefined) continue;
              if (await isPending(queue, jobOf(tick, at))) found.push({ tick, at });
            }
            return found;
          }),
        ),
      );
      return all.flat().toSorted((a, b) => a.at - b.at);
    },
    /** Returns by which policy Redis drops keys, if it does and says so. Throws Unavailable. */
    evictsBy: async () => evictionPolicyIn(await quick.ask(() => quick.redis.info('memory'))),
    close: () => quick.close(),
  };
}

/** The queues to show. The caller closes the view. */
export type QueueView = ReturnType<typeof viewQueues>;
