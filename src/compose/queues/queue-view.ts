/** Provides a view of a mirror's queues that never waits for Redis. */
import type { Queue } from 'bullmq';
import { countsOf, type QueueCounts } from './event-queue.ts';
import { eventsOf, looksOf, runsOf } from './queue-names.ts';
import { connectQuickly, evictionPolicyIn, type Quick } from './redis-connections.ts';
import type { Tick } from './run-schedule.ts';
import { readDue } from './stored-schedule.ts';

export interface Depth extends QueueCounts {
  mirror: string;
  queue: 'runs' | 'events';
}

/** Opens the view of a mirror, on a connection of its own or on `quick`. Closing it closes both. */
export function viewQueues(mirror: string, at: { url: string } | { quick: Quick }) {
  const quick = 'url' in at ? connectQuickly(at.url) : at.quick;
  const runs = quick.queue(runsOf(mirror));
  const events = quick.queue(eventsOf(mirror));
  const looks = quick.queue(looksOf(mirror));
  const depthOf = async (queue: Depth['queue'], of: Queue): Promise<Depth> => ({
    mirror,
    queue,
    ...(await quick.ask(() => countsOf(of))),
  });
  return {
    queues: [runs, events],
    /** Returns the depth of each queue. Throws Unavailable while Redis is away. */
    depths: () => Promise.all([depthOf('runs', runs), depthOf('events', events)]),
    /**
     * Returns the runs of the schedule that Redis has, soonest first, in milliseconds since the
     * epoch. Throws Unavailable while Redis is away.
     */
    async due(): Promise<{ tick: Tick; at: number }[]> {
      const all = await quick.ask(() => Promise.all([runs, looks].map(readDue)));
      return all.flat().toSorted((a, b) => a.at - b.at);
    },
    /**
     * Returns by which policy Redis drops keys when its memory is full; undefined if it drops none
     * or does not say so. Throws Unavailable while Redis is away.
     */
    evictsBy: async () => evictionPolicyIn(await quick.ask(() => quick.redis.info('memory'))),
    close: () => quick.close(),
  };
}

/** The queues to show. The caller closes the view. */
export type QueueView = ReturnType<typeof viewQueues>;
