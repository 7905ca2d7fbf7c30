/**
 * The runs of one mirror in Redis (BullMQ): due by cron patterns, one at a time on however many
 * machines. A tick that comes while its run waits is that run: what was missed is done once.
 *
 * A job holds the name of its tick and nothing else. While Redis is away nothing is due; BullMQ
 * tries it again and again, and goes on when it is there.
 */
import { DelayedError, Queue, Worker, type Job } from 'bullmq';
import { Redis } from 'ioredis';
import type { Clock } from '../model/clock.ts';

/** What a schedule may have due. */
const ticks = ['full', 'fast', 'templates'] as const;
export type Tick = (typeof ticks)[number];

export interface Schedule {
  /** Cron patterns, with seconds where they have six fields. */
  patterns: Readonly<Record<Tick, string | undefined>>;
  /** An IANA name. */
  timezone: string;
}

/** What is due by it, and when. */
export function dueIn({ patterns }: Schedule): { tick: Tick; pattern: string }[] {
  return ticks.flatMap((tick) => {
    const pattern = patterns[tick];
    return pattern === undefined ? [] : [{ tick, pattern }];
  });
}

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

const prefix = 'crm-mirror';
/** How many that have ended BullMQ keeps, for its own counts: the snapshot has the history. */
const kept = { count: 100 };

const elsewhereMs = 1_000;

/**
 * A job of a worker that died is another's when its lock is over and it was looked at twice, so
 * within 11 s. However many died with it, the run is still due.
 */
const dead = { lockDuration: 5_000, stalledInterval: 3_000, maxStalledCount: 1_000 };

export function openRunQueue({ url, mirror, clock, notice }: RunQueueOptions): RunQueue {
  const name = `runs-${mirror}`;
  // A worker waits for Redis however long it is away, and so does what it has to say.
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  const heard = hearOf(connection, notice);
  const queue = new Queue(name, { connection, prefix });
  queue.on('error', () => undefined);
  let worker: Worker | undefined;
  return {
    async follow(schedule) {
      await queue.setGlobalConcurrency(1);
      const opts = { removeOnComplete: kept, removeOnFail: kept };
      const wanted = dueIn(schedule);
      for (const { tick, pattern } of wanted) {
        await queue.upsertJobScheduler(
          tick,
          { pattern, tz: schedule.timezone },
          { name: tick, opts },
        );
      }
      const names = new Set<string>(wanted.map(({ tick }) => tick));
      for (const { key } of await queue.getJobSchedulers()) {
        if (!names.has(key)) await queue.removeJobScheduler(key);
      }
    },
    serve(run) {
      const handle = async (job: Job, token?: string): Promise<void> => {
        const tick = ticks.find((known) => known === job.name);
        if (tick === undefined || (await run(tick)) === 'over') return;
        await job.moveToDelayed(clock.now() + elsewhereMs, token);
        throw new DelayedError();
      };
      worker = new Worker(name, handle, { connection, prefix, ...dead });
      worker.on('error', () => undefined);
    },
    async close() {
      heard.ignore();
      if (connection.status === 'ready') {
        await worker?.close();
        await queue.close();
      }
      // Where it is away there is nobody to say goodbye to, and what waits for it ends with this.
      connection.disconnect();
    },
  };
}

/** Says once that it was lost, and once that it is there. */
function hearOf(connection: Redis, notice: RunQueueOptions['notice']): { ignore(): void } {
  let is: 'opening' | 'there' | 'lost' = 'opening';
  let reason = 'it closed the connection';
  let ignored = false;
  connection.on('error', (error: Error) => (reason = error.message));
  connection.on('ready', () => {
    if (is === 'lost' && !ignored) notice(undefined);
    is = 'there';
  });
  connection.on('close', () => {
    if (is !== 'lost' && !ignored) notice(reason);
    is = 'lost';
  });
  return { ignore: () => void (ignored = true) };
}
