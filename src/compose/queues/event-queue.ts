/**
 * Stores the events of a CRM in Redis (BullMQ): one job for each changed record, which holds only
 * the record's id, and one job of another kind for each record that the CRM has erased. That one
 * also holds a signature of the server that took the event: Redis vouches for no erasure. People
 * can see which events wait.
 *
 *   event arrives   its job waits          it joins that job
 *                   its job is running     another job starts when that one has ended: never two at
 *                                          a time, and data read is never older than the event
 *                   there is no job        a new job starts a moment later, because events arrive
 *                                          in groups
 *   work ends       done                   the job is deleted
 *                   elsewhere              retried a moment later: another process has to do it
 *                   again, or it threw     retried without limit, at growing intervals
 *                   never (process died)   another process takes it within 11 s
 *
 * The last deliveries are remembered for people who look: which records they named, and why others
 * were refused. What anybody can cause, a refusal, has a list of its own, so it cannot push out
 * what was accepted.
 */
import { createHash } from 'node:crypto';
import type { Queue } from 'bullmq';
import { z } from 'zod';
import { withRedis, queueName, prefix } from './redis-connections.ts';
import type { QueuePlace } from './shared-connections.ts';
import { takeJobs } from './take-jobs.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';
import type { Redis } from 'ioredis';
import type { Clock } from '../../domain/clock.ts';
import { isExpected } from '../../domain/errors.ts';
import { parseJson } from '../../domain/stored-json.ts';
import type { Seal } from './payload-encryption.ts';

/** `erased` is a privacy deletion, which is more than an ordinary deletion. */
export type Heard = 'changed' | 'erased';

/** What came of an event: it is done, another process has to do it, or it must be retried. */
export type Worked = 'done' | 'elsewhere' | 'again';

export type EventQueue = ReturnType<typeof openEventQueue>;

const gatherMs = 300;
/** Limits the size of a batch, because a larger one would keep other clients of Redis waiting. */
const batch = 500;

/** Exceeds the validity of a signature, which is five minutes before and after its time. */
const rememberMs = 11 * 60_000;

const jobOptions = {
  delay: gatherMs,
  attempts: retrySchedules.event.tries,
  backoff: { type: 'rising' },
  removeOnComplete: true,
  // An error's stack may contain more than an id.
  stackTraceLimit: 0,
};

/**
 * Nothing is processed before `serve`. While Redis is away, all but `serve` and `close` throw
 * Unavailable. `sign` returns the signature for the erasure of a record; without it, erasures are
 * processed like changes.
 */
export function openEventQueue(
  { mirror, clock, connections }: QueuePlace,
  sign: (id: string) => string = () => '',
) {
  const quick = connections.quick();
  const queue = quick.queue(queueName('events', mirror));
  const placeOf = (delivery: string) => `${prefix}:${mirror}:delivery:${hash(delivery)}`;
  let served: ReturnType<typeof takeJobs> | undefined;
  return {
    /** Resolves once Redis has stored them. If it throws, some may be stored. */
    async add(ids: readonly string[], heard: Heard = 'changed'): Promise<void> {
      const jobs = [...new Set(ids)].map((id) => {
        return heard === 'erased' ? jobOf({ id, erased: sign(id) }) : jobOf({ id });
      });
      for (let from = 0; from < jobs.length; from += batch) {
        await quick.ask(async () => queue.addBulk(jobs.slice(from, from + batch)));
      }
    },
    /** Returns whether this delivery was remembered within the last eleven minutes. */
    knows: async (delivery: string): Promise<boolean> =>
      (await quick.ask(() => quick.redis.exists(placeOf(delivery)))) > 0,
    /** To be called after the delivery's events were added. */
    async remember(delivery: string): Promise<void> {
      await quick.ask(() => quick.redis.set(placeOf(delivery), 1, 'PX', rememberMs));
    },
    /**
     * Calls `work` for each record with events, until `close`. Anybody may have written the
     * signature of an erasure. `failed` hears what it throws, which it should not.
     */
    serve(
      work: (id: string, heard: Heard, signature: string) => Promise<Worked>,
      { concurrency, failed }: { concurrency: number; failed(error: unknown): void },
    ): void {
      served = takeJobs(queueName('events', mirror), {
        connections,
        clock,
        concurrency,
        settings: { backoffStrategy: (tries) => retryDelayMs(retrySchedules.event, tries) },
        async work({ data }) {
          const event = eventSchema.safeParse(data);
          // No server of a mirror has written this.
          if (!event.success) return 'over';
          const { id, erased } = event.data;
          const heard = erased === undefined ? 'changed' : 'erased';
          const worked = await work(id, heard, erased ?? '').catch((error: unknown) => {
            failed(error);
            return 'again';
          });
          if (worked === 'again') throw new Error('to be tried again');
          return worked === 'done' ? 'over' : 'elsewhere';
        },
      });
    },
    counts: () => quick.ask(() => countsOf(queue)),
    /** Returns the age of the oldest unfinished event, or undefined if there is none. */
    async lagMs() {
      // Redis examines every job, but there are many only after a long outage.
      const timestamp = `${queue.toKey('')}*->timestamp`;
      const oldest = ['BY', timestamp, 'LIMIT', 0, 1, 'GET', timestamp] as const;
      const found = ['wait', 'active', 'delayed'].map((state) =>
        quick.ask(() => quick.redis.sort(queue.toKey(state), ...oldest)),
      );
      const times = (await Promise.all(found)).flat().map(Number).filter(Number.isFinite);
      return times.length === 0 ? undefined : Math.max(0, clock.now() - Math.min(...times));
    },
    /** Takes no more events, and waits for the work in progress. Adding still works. */
    async rest() {
      await served?.close();
      served = undefined;
    },
    /** Takes no more events, waits for the work in progress, and closes the queue. */
    async close() {
      await served?.close();
      quick.close();
    },
  };
}

/** Returns the numbers of jobs. A job to be retried later counts as delayed. */
export async function countsOf(queue: Queue) {
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = await queue.getJobCounts();
  return { waiting: waiting + prioritized, active, delayed };
}

/** Checks a job. `erased` is the signature of an erasure. */
const eventSchema = z.object({ id: z.string(), erased: z.string().optional() });

function jobOf(data: z.infer<typeof eventSchema>) {
  const isErased = data.erased !== undefined;
  const deduplication = { id: deduplicationOf(data.id, isErased), keepLastIfActive: true };
  return { name: isErased ? 'erased' : 'event', data, opts: { ...jobOptions, deduplication } };
}

function deduplicationOf(id: string, isErased: boolean): string {
  return `${isErased ? 'erased-' : ''}${hash(id)}`;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

const states = ['active', 'waiting', 'delayed'] as const;

/** Returns up to `most` events of each state, the oldest first. Throws Unavailable. */
export async function readWaitingEvents(
  { url, mirror }: { url: string; mirror: string },
  most: number,
) {
  return withRedis(url, async (quick) => {
    const queue = quick.queue(queueName('events', mirror));
    const counts = await quick.ask(() => countsOf(queue));
    const found = await Promise.all(
      states.map(async (state) => {
        const jobs = await quick.ask(() => queue.getJobs([state], 0, most - 1, true));
        return jobs.flatMap((job) => {
          const { timestamp: at, attemptsMade: attempts } = job;
          const { data } = eventSchema.safeParse(job.data);
          if (!data) return [];
          return [{ record: data.id, isErased: data.erased !== undefined, state, at, attempts }];
        });
      }),
    );
    return { ...counts, events: found.flat() };
  });
}

const use = { purpose: 'delivery' } as const;
const most = { accepted: 1_000, refused: 50, ofDelivery: 100 };
const keptMs = 7 * 86_400_000;

const accepted = z.object({ at: z.number(), id: z.string(), erased: z.literal(1).optional() });
const refused = z.object({ at: z.number(), why: z.string() });

const placeOf = (mirror: string, list: 'accepted' | 'refused') =>
  `${prefix}:${mirror}:deliveries:${list}`;

/**
 * `seal` returns what encrypts ids; without it, nothing is remembered of what was accepted. No
 * function throws, or waits for Redis: the deliveries are in the queue.
 */
export function deliveryLogOf(
  redis: Redis,
  { mirror, clock, seal }: { mirror: string; clock: Clock; seal(): Seal | undefined },
) {
  const add = (list: 'accepted' | 'refused', entries: readonly object[]): void => {
    if (entries.length === 0) return;
    const place = placeOf(mirror, list);
    const lines = entries.map((entry) => JSON.stringify(entry));
    const adding = redis
      .multi()
      .lpush(place, ...lines)
      .ltrim(place, 0, most[list] - 1)
      .pexpire(place, keptMs);
    adding.exec().catch(() => undefined);
  };
  return {
    accepted(ids: readonly string[], heard: Heard): void {
      const sealing = seal();
      if (!sealing) return;
      const at = clock.now();
      const erased = heard === 'erased' ? { erased: 1 } : {};
      const some = [...new Set(ids)].slice(0, most.ofDelivery);
      add(
        'accepted',
        some.map((id) => ({ at, id: sealing.close(id, use), ...erased })),
      );
    },
    refused: (why: string) => add('refused', [{ at: clock.now(), why }]),
  };
}

export type DeliveryLog = ReturnType<typeof deliveryLogOf>;

/**
 * The newest first. The id of a record that was encrypted with another key is undefined. Throws
 * Unavailable while Redis is away.
 */
export async function readDeliveries(
  { url, mirror }: { url: string; mirror: string },
  seal: Seal | undefined,
  { from, count }: { from: number; count: number },
) {
  return withRedis(url, async ({ redis, ask, queue: queueOf }) => {
    const lines = await ask(() =>
      redis.lrange(placeOf(mirror, 'accepted'), from, from + count - 1),
    );
    const refusals = await ask(() => redis.lrange(placeOf(mirror, 'refused'), 0, -1));
    const queue = queueOf(queueName('events', mirror));
    const events = entriesIn(accepted, lines).map(async ({ at, id, erased }) => {
      const record = opened(seal, id);
      const isErased = erased !== undefined;
      const waits =
        record !== undefined &&
        (await ask(() => queue.getDeduplicationJobId(deduplicationOf(record, isErased)))) !== null;
      return { at, record, isErased, state: waits ? ('waits' as const) : ('done' as const) };
    });
    return { events: await Promise.all(events), refusals: entriesIn(refused, refusals) };
  });
}

function entriesIn<T>(schema: z.ZodType<T>, lines: readonly string[]): T[] {
  return lines.flatMap((line) => schema.safeParse(parseJson(line)).data ?? []);
}

function opened(seal: Seal | undefined, sealed: string): string | undefined {
  try {
    return seal?.open(sealed, use);
  } catch (error) {
    if (isExpected(error)) return undefined;
    throw error;
  }
}
