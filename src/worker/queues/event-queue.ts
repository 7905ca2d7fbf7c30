/**
 * What a CRM says has changed, in Redis (BullMQ): one job for each record, which holds the record's
 * id and nothing else; and one for each that it says it has erased, of a kind of its own.
 *
 * an event comes   its job waits          it is that job
 *                  its job is worked on   one more job, made when that one has ended: never two at
 *                                         a time, and what is read is never older than the event
 *                  there is none          a job, to be worked on a moment later: events come in
 *                                         flocks
 * the work ends    done                   the job is gone
 *                  elsewhere              tried again a moment later: another process is the one
 *                  again, or it threw     tried again, for ever, less and less often
 *                  never, it died         another process has it within 11 s
 */
import { createHash } from 'node:crypto';
import type { Queue } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { hearOf } from './connection-loss.ts';
import { takeJobs } from './job-consumer.ts';
import { eventsOf, prefix } from './queue-names.ts';
import { connectPatiently } from './waiting-connection.ts';
import { connectQuickly, type Quick } from './fail-fast-connection.ts';

export interface EventQueueOptions {
  /** redis:// or rediss://. */
  url: string;
  mirror: string;
  clock: Clock;
  /** Redis was lost, and why; undefined: it is there, for the first time or again. */
  notice(lost: string | undefined): void;
}

/** What the CRM says of a record: one that was erased there for privacy is not just gone. */
export type Heard = 'changed' | 'erased';

/** What becomes of an event: nothing is left to do, another process does it, it is tried again. */
export type Worked = 'done' | 'elsewhere' | 'again';

export interface ServeOptions {
  /** How many records are worked on at a time. */
  concurrency: number;
  /** The work threw, which it should not; it is tried again. */
  failed(error: unknown): void;
}

/** How many jobs; what is tried again later is delayed too. */
export interface QueueCounts {
  waiting: number;
  active: number;
  delayed: number;
}

export type Work = (id: string, heard: Heard) => Promise<Worked>;

/** While Redis is away everything but `serve` and `close` throws Unavailable, at once. */
export interface EventQueue {
  /** Resolves when Redis has them; it may have some of them when this throws. */
  add(ids: readonly string[], heard?: Heard): Promise<void>;
  /** Whether this delivery was remembered in the last eleven minutes. */
  knows(delivery: string): Promise<boolean>;
  /** After its events were added, never before: what is known is not added again. */
  remember(delivery: string): Promise<void>;
  /** Calls `work` with the ids of records of which something was heard, until `close`. */
  serve(work: Work, options: ServeOptions): void;
  counts(): Promise<QueueCounts>;
  /** How long ago the oldest event came that is not done with; undefined: there is none. */
  lagMs(): Promise<number | undefined>;
  /** Takes nothing more, waits for the work under way, and lets go of Redis. */
  close(): Promise<void>;
}

const gatherMs = 300;
const mostAgainMs = 60_000;
/** So many at once keep nobody else waiting in Redis. */
const batch = 500;

/** A signature is good for five minutes after its time, and as long before it. */
const rememberMs = 11 * 60_000;

const jobOptions = {
  delay: gatherMs,
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { type: 'rising' },
  removeOnComplete: true,
  // What an error says may hold more than an id.
  stackTraceLimit: 0,
};

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

export async function countsOf(queue: Queue): Promise<QueueCounts> {
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = await queue.getJobCounts();
  return { waiting: waiting + prioritized, active, delayed };
}

interface Data {
  id: string;
  erased?: true;
}

/** That a record was erased is not folded into what else is heard of it. */
function jobOf(id: string, heard: Heard) {
  const isErased = heard === 'erased';
  const data: Data = isErased ? { id, erased: true } : { id };
  const deduplication = { id: `${isErased ? 'erased-' : ''}${hash(id)}`, keepLastIfActive: true };
  return { name: isErased ? 'erased' : 'event', data, opts: { ...jobOptions, deduplication } };
}

/** Ids are of any length and hold whatever they like. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Redis looks at every one of them: there are many only when something is long away. */
async function oldest({ redis, ask }: Quick, queue: Queue): Promise<number | undefined> {
  const timestamp = `${queue.toKey('')}*->timestamp`;
  const found = ['wait', 'active', 'delayed'].map((state) =>
    ask(() => redis.sort(queue.toKey(state), 'BY', timestamp, 'LIMIT', 0, 1, 'GET', timestamp)),
  );
  const times = (await Promise.all(found)).flat().map(Number).filter(Number.isFinite);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** On a connection of its own: work waits for Redis however long it is away. */
function startWork(
  { url, mirror, clock }: Omit<EventQueueOptions, 'notice'>,
  work: Work,
  { concurrency, failed }: ServeOptions,
): { close(): Promise<void> } {
  return takeJobs<Data>(eventsOf(mirror), {
    connection: connectPatiently(url),
    clock,
    concurrency,
    settings: { backoffStrategy: againMs },
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

/** 1, 2, 4 … 60 seconds. */
function againMs(attempts: number): number {
  return Math.min(mostAgainMs, 1000 * 2 ** (attempts - 1));
}
