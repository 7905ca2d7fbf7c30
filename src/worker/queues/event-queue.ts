/**
 * Keeps the events of a CRM in Redis (BullMQ): one job for each record, which holds the record's id
 * and nothing else, and one of another kind for each record that the CRM has erased.
 *
 * an event comes   its job waits          it joins that job
 *                  its job is worked on   one more job when that one has ended: never two at a
 *                                         time, and what is read is never older than the event
 *                  there is no job        a new job, which begins a moment later because events
 *                                         come in groups
 * the work ends    done                   the job is deleted
 *                  elsewhere              tried again a moment later: another process has to do it
 *                  again, or it threw     tried again, for ever, less and less often
 *                  never, it died         another process has it within 11 s
 */
import { createHash } from 'node:crypto';
import type { Queue } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { connectPatiently, connectQuickly, hearOf, type Quick } from './redis-connections.ts';
import { takeJobs } from './job-consumer.ts';
import { eventsOf, prefix } from './queue-names.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

/** A Redis and a mirror. */
export interface EventQueueOptions {
  /** redis:// or rediss://. */
  url: string;
  mirror: string;
  clock: Clock;
  /** Called with the reason when Redis is lost, with undefined when it is there, first or again. */
  notice(lost: string | undefined): void;
}

/** An event about a record; `erased`: for privacy, which is more than deleted. */
export type Heard = 'changed' | 'erased';

/** The result of working on an event: done, for another process to do, or to be tried again. */
export type Worked = 'done' | 'elsewhere' | 'again';

/** How to work on events. */
export interface ServeOptions {
  /** The number of records worked on at a time. */
  concurrency: number;
  /** Called if the work throws, which it should not. It is tried again. */
  failed(error: unknown): void;
}

/** The numbers of jobs; one that is tried again later counts as delayed. */
export interface QueueCounts {
  waiting: number;
  active: number;
  delayed: number;
}

/** Works on what was heard of one record. */
export type Work = (id: string, heard: Heard) => Promise<Worked>;

/**
 * The events of one mirror. While Redis is away every function but `serve` and `close` throws
 * Unavailable at once.
 */
export interface EventQueue {
  /** Adds events. Resolves when Redis has them; when it throws, Redis may have some of them. */
  add(ids: readonly string[], heard?: Heard): Promise<void>;
  /** Returns whether this delivery was remembered in the last eleven minutes. */
  knows(delivery: string): Promise<boolean>;
  /**
   * Remembers a delivery. Call it after its events were added: a known delivery is not added again.
   */
  remember(delivery: string): Promise<void>;
  /** Calls `work` for each record of which something was heard, until `close`. */
  serve(work: Work, options: ServeOptions): void;
  counts(): Promise<QueueCounts>;
  /** Returns how long ago the oldest event that is not done came; undefined: there is none. */
  lagMs(): Promise<number | undefined>;
  /** Takes nothing more, waits for the work under way, and closes its connections. */
  close(): Promise<void>;
}

const gatherMs = 300;
/** A larger batch would keep others waiting for Redis. */
const batch = 500;

/** A signature is valid for five minutes before and after its time. */
const rememberMs = 11 * 60_000;

const jobOptions = {
  delay: gatherMs,
  attempts: retrySchedules.event.tries,
  backoff: { type: 'rising' },
  removeOnComplete: true,
  // An error's stack may hold more than an id.
  stackTraceLimit: 0,
};

/** Opens the queue. Nothing is worked on before `serve`. */
export function openEventQueue({ url, mirror, clock, notice }: EventQueueOptions): EventQueue {
  const quick = connectQuickly(url);
  const heard = hearOf(quick.redis, notice);
  const queue = quick.queue(eventsOf(mirror));
  const placeOf = (delivery: string) => `${prefix}:${mirror}:delivery:${hash(delivery)}`;
  let served: ReturnType<typeof startWork> | undefined;
  return {
    async add(ids, heard = 'changed') {
      const jobs = [...new Set(ids)].map((id) => jobOf(id, heard));
      for (let from = 0; from < jobs.length; from += batch) {
        await quick.ask(async () => queue.addBulk(jobs.slice(from, from + batch)));
      }
    },
    knows: async (delivery) => (await quick.ask(() => quick.redis.exists(placeOf(delivery)))) > 0,
    async remember(delivery) {
      await quick.ask(() => quick.redis.set(placeOf(delivery), 1, 'PX', rememberMs));
    },
    serve: (work, options) => void (served = startWork({ url, mirror, clock }, work, options)),
    counts: () => quick.ask(() => countsOf(queue)),
    async lagMs() {
      const since = await oldest(quick, queue);
      return since === undefined ? undefined : Math.max(0, clock.now() - since);
    },
    async close() {
      heard.ignore();
      await served?.close();
      quick.close();
    },
  };
}

/** Counts the jobs of a queue. */
export async function countsOf(queue: Queue): Promise<QueueCounts> {
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = await queue.getJobCounts();
  return { waiting: waiting + prioritized, active, delayed };
}

interface Data {
  id: string;
  erased?: true;
}

/** Returns the job for a record. Erasures are not joined with other events of the record. */
function jobOf(id: string, heard: Heard) {
  const isErased = heard === 'erased';
  const data: Data = isErased ? { id, erased: true } : { id };
  const deduplication = { id: `${isErased ? 'erased-' : ''}${hash(id)}`, keepLastIfActive: true };
  return { name: isErased ? 'erased' : 'event', data, opts: { ...jobOptions, deduplication } };
}

/** Returns a text of fixed length: ids may be long and hold any character. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/**
 * Returns when the oldest job came. Redis looks at each job, and there are many only after a long
 * outage.
 */
async function oldest({ redis, ask }: Quick, queue: Queue): Promise<number | undefined> {
  const timestamp = `${queue.toKey('')}*->timestamp`;
  const found = ['wait', 'active', 'delayed'].map((state) =>
    ask(() => redis.sort(queue.toKey(state), 'BY', timestamp, 'LIMIT', 0, 1, 'GET', timestamp)),
  );
  const times = (await Promise.all(found)).flat().map(Number).filter(Number.isFinite);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Begins the work, on a connection of its own that waits for Redis however long it is away. */
function startWork(
  { url, mirror, clock }: Omit<EventQueueOptions, 'notice'>,
  work: Work,
  { concurrency, failed }: ServeOptions,
): { close(): Promise<void> } {
  return takeJobs<Data>(eventsOf(mirror), {
    connection: connectPatiently(url),
    clock,
    concurrency,
    settings: { backoffStrategy: (tries) => retryDelayMs(retrySchedules.event, tries) },
    async work({ data }) {
      const heard = data.erased ? 'erased' : 'changed';
      const worked = await work(data.id, heard).catch((error: unknown) => {
        failed(error);
        return 'again';
      });
      if (worked === 'again') throw new Error('to be tried again');
      return worked === 'done' ? 'over' : 'elsewhere';
    },
  });
}
