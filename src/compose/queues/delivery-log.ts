/**
 * Remembers the last deliveries of a CRM in Redis, for people who look: which records they named,
 * and why others were refused. A record's id is encrypted, because it may be an address. What
 * anybody can cause, a refusal, has a list of its own, so it cannot push out what was accepted.
 */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { isExpected } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import { deduplicationOf, type Heard } from './event-queue.ts';
import type { Seal } from './payload-encryption.ts';
import { eventsOf, prefix } from './queue-names.ts';
import { connectQuickly } from './redis-connections.ts';

export interface LoggedEvent {
  /** When it arrived, in milliseconds since the epoch. */
  at: number;
  /** The id of the CRM record; undefined if it was encrypted with another key. */
  record: string | undefined;
  isErased: boolean;
  /** `done`: no event about the record waits any more. */
  state: 'waits' | 'done';
}

export interface LoggedRefusal {
  at: number;
  why: string;
}

const use = { purpose: 'delivery' } as const;
const most = { accepted: 1_000, refused: 50, ofDelivery: 100 };
const keptMs = 7 * 86_400_000;

const accepted = z.object({ at: z.number(), id: z.string(), erased: z.literal(1).optional() });
const refused = z.object({ at: z.number(), why: z.string() });

const placeOf = (mirror: string, list: 'accepted' | 'refused') =>
  `${prefix}:${mirror}:deliveries:${list}`;

interface Writing {
  mirror: string;
  clock: Pick<Clock, 'now'>;
  /** Returns what encrypts ids; without it, nothing is remembered of what was accepted. */
  seal(): Seal | undefined;
}

/** Creates the log on a connection, which the caller closes. */
export function deliveryLogOf(redis: Redis, { mirror, clock, seal }: Writing) {
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

/** Writes the lists. No function throws, or waits for Redis: the deliveries are in the queue. */
export type DeliveryLog = ReturnType<typeof deliveryLogOf>;

/** What is read of the lists: a part of the accepted events, and the last refusals. */
export interface LoggedDeliveries {
  events: LoggedEvent[];
  refusals: LoggedRefusal[];
}

interface Reading {
  url: string;
  mirror: string;
  seal: Seal | undefined;
  from: number;
  count: number;
}

/** Reads the lists, the newest first. Throws Unavailable while Redis is away. */
export async function readDeliveries(reading: Reading): Promise<LoggedDeliveries> {
  const { url, mirror, from, count } = reading;
  const quick = connectQuickly(url);
  const { redis, ask } = quick;
  try {
    const lines = await ask(() =>
      redis.lrange(placeOf(mirror, 'accepted'), from, from + count - 1),
    );
    const refusals = await ask(() => redis.lrange(placeOf(mirror, 'refused'), 0, -1));
    const queue = quick.queue(eventsOf(mirror));
    const events = entriesIn(accepted, lines).map(async (entry): Promise<LoggedEvent> => {
      const { at, id, erased } = entry;
      const record = opened(reading.seal, id);
      const isErased = erased !== undefined;
      const waits =
        record !== undefined &&
        (await ask(() => queue.getDeduplicationJobId(deduplicationOf(record, isErased)))) !== null;
      return { at, record, isErased, state: waits ? 'waits' : 'done' };
    });
    return { events: await Promise.all(events), refusals: entriesIn(refused, refusals) };
  } finally {
    quick.close();
  }
}

/** Returns the entries of a list. What is none of ours is left out. */
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
