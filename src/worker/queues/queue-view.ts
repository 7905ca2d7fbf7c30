/** Provides a view of a mirror's queues that never waits for Redis. */
import type { Queue } from 'bullmq';
import { countsOf, type QueueCounts } from './event-queue.ts';
import { eventsOf, runsOf } from './queue-names.ts';
import { type Connections, ownConnections } from './shared-connections.ts';

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
  const depthOf = async (queue: Depth['queue'], of: Queue): Promise<Depth> => ({
    mirror,
    queue,
    ...(await quick.ask(() => countsOf(of))),
  });
  return {
    queues: [runs, events],
    depths: () => Promise.all([depthOf('runs', runs), depthOf('events', events)]),
    close: () => quick.close(),
  };
}
