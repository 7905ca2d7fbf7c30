/** Reads which events of a CRM wait to be processed. */
import { countsOf, eventSchema, type QueueCounts } from './event-queue.ts';
import { eventsOf } from './queue-names.ts';
import { connectQuickly } from './redis-connections.ts';

/** An event that waits, is processed now, or is tried again later. */
export interface WaitingEvent {
  /** The id of the CRM record. */
  record: string;
  /** Whether the CRM has erased the record. */
  isErased: boolean;
  state: 'waiting' | 'active' | 'delayed';
  /** When it arrived, in milliseconds since the epoch. */
  at: number;
  /** How often it was tried. */
  attempts: number;
}

/** The events of a mirror that are not done, the oldest of each state first. */
export interface WaitingEvents extends QueueCounts {
  events: WaitingEvent[];
}

const states = ['active', 'waiting', 'delayed'] as const;

/** Returns up to `most` events of each state. Throws Unavailable while Redis is away. */
export async function readWaitingEvents(
  { url, mirror }: { url: string; mirror: string },
  most: number,
): Promise<WaitingEvents> {
  const quick = connectQuickly(url);
  try {
    const queue = quick.queue(eventsOf(mirror));
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
  } finally {
    quick.close();
  }
}
