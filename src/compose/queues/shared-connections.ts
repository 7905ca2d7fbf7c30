/** Provides the connections that the mirrors of a worker share. */
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../domain/clock.ts';
import { createJobBell, type JobBell } from './job-bell.ts';
import { createNodeHeartbeat, type NodeHeartbeat } from './node-heartbeat.ts';
import { connectPatiently, connectQuickly, type Quick } from './redis-connections.ts';

/** What the mirrors of a worker need of one Redis. */
export interface Connections {
  /** Returns a connection that fails fast. Its user closes it, which closes the user's queues. */
  quick(): Quick;
  /** A connection that waits for Redis. */
  patient: Redis;
  /** Rings when a queue has a job. */
  bell: JobBell;
  /** Shows that the process is alive. */
  node: NodeHeartbeat;
}

/** A mirror, and the Redis of its queues. */
export interface QueuePlace {
  mirror: string;
  clock: Clock;
  connections: Connections;
}

/** Each queue listens to its connection. BullMQ adds to the number, so 0 does not mean any. */
const mostListeners = 1_000_000;

/**
 * Creates the shared connections: three for each Redis, however many mirrors use them. `name` is
 * unique to this process.
 */
export function shareConnections(name: string, clock: Clock) {
  const known = new Map<string, { connections: Connections; close(): void }>();
  const open = (url: string) => {
    const [quick, patient] = [connectQuickly(url), connectPatiently(url)];
    const blocking = connectPatiently(url);
    for (const { redis } of [quick, patient]) redis.setMaxListeners(mostListeners);
    const node = createNodeHeartbeat(quick, name, clock);
    const asking = patient.redis;
    const bell = createJobBell({ blocking, asking, name, clock, fleetChanged: node.wake });
    const share = (): Quick => {
      const queues: Queue[] = [];
      return {
        ...quick,
        queue<Data, Answer>(of: string) {
          const queue = quick.queue<Data, Answer>(of);
          queues.push(queue);
          return queue;
        },
        // Without Redis, closing may never end.
        close: () => queues.forEach((queue) => void queue.close().catch(() => undefined)),
      };
    };
    const close = (): void => {
      node.close();
      bell.close();
      for (const one of [quick, patient]) one.close();
    };
    return { connections: { quick: share, patient: asking, bell, node }, close };
  };
  return {
    /** Returns those to this Redis. The users do not close them. */
    to(url: string): Connections {
      const one = known.get(url) ?? open(url);
      known.set(url, one);
      return one.connections;
    },
    close: () => known.forEach((one) => one.close()),
  };
}

/** Connections that the mirrors of a process share; the caller closes them at the end. */
export type SharedConnections = ReturnType<typeof shareConnections>;
