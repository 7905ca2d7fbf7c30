/** Provides a view of a mirror's queues that never waits for Redis. */
import type { Queue } from 'bullmq';
import { countsOf, type QueueCounts } from './event-queue.ts';
import { eventsOf, looksOf, runsOf } from './queue-names.ts';
import { evictionPolicyIn } from './redis-connections.ts';
import type { Tick } from './run-schedule.ts';
import { type Connections, ownConnections } from './shared-connections.ts';
import { readDue } from './stored-schedule.ts';

/** The numbers of jobs in one queue. */
export interface Depth extends QueueCounts {
  mirror: string;
  queue: 'runs' | 'events';
}

/** The queues to show. The caller closes the view. */
export interface QueueView {
  queues: readonly Queue[];
  /** Returns the depth of each queue. Throws Unavailable while Redis is away. */
  depths(): Promise<Depth[]>;
  /**
   * Returns the runs of the schedule that Redis has, soonest first, in milliseconds since the
   * epoch. Throws Unavailable while Redis is away.
   */
  due(): Promise<{ tick: Tick; at: number }[]>;
  /**
   * Returns by which policy Redis drops keys when its memory is full; undefined if it drops none or
   * does not say so. Throws Unavailable while Redis is away.
   */
  evictsBy(): Promise<string | undefined>;
  close(): void;
}

/** Opens the view. */
export function viewQueues({
  url,
  mirror,
  connections = ownConnections(url),
}: {
  url: string;
  mirror: string;
  connections?: Connections | undefined;
}): QueueView {
  const quick = connections.quick();
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
    depths: () => Promise.all([depthOf('runs', runs), depthOf('events', events)]),
    async due() {
      const all = await quick.ask(() => Promise.all([runs, looks].map(readDue)));
      return all.flat().toSorted((a, b) => a.at - b.at);
    },
    evictsBy: async () => evictionPolicyIn(await quick.ask(() => quick.redis.info('memory'))),
    close: () => quick.close(),
  };
}
