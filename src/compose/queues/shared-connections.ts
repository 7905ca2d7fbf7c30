/** Provides the connections of a mirror's queues: of their own, or shared by all mirrors. */
import type { Queue } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { createJobBell, type JobBell } from './job-bell.ts';
import { createNodeHeartbeat, type NodeHeartbeat } from './node-heartbeat.ts';
import { connectPatiently, connectQuickly, type Patient, type Quick } from './redis-connections.ts';

/** Opens what the queues of a mirror need: connections of their own, or shared ones. */
export interface Connections {
  quick(): Quick;
  patient(): Patient;
  /** The bell that rings for the queues; undefined if each queue blocks by itself. */
  bell?: JobBell;
}

/** Connections that the mirrors of a worker share. */
export interface WorkerConnections extends Connections {
  bell: JobBell;
  /** Shows that the process is alive. */
  node: NodeHeartbeat;
}

/** A mirror, and the Redis of its queues. */
export interface QueuePlace {
  /** A redis:// or rediss:// URL. */
  url: string;
  mirror: string;
  clock: Clock;
  /** Connections to share; by default each queue opens its own. */
  connections?: Connections | undefined;
}

/** Returns connections that are opened for each use. */
export function ownConnections(url: string): Connections {
  return { quick: () => connectQuickly(url), patient: () => connectPatiently(url) };
}

/** Each queue listens to its connection. BullMQ adds to the number, so 0 does not mean any. */
const mostListeners = 1_000_000;

/**
 * Creates the shared connections: three for each Redis, however many mirrors use them. `name` is
 * unique to this process.
 */
export function shareConnections(name: string, clock: Clock) {
  const known = new Map<string, { connections: WorkerConnections; close(): void }>();
  const open = (url: string) => {
    const [quick, patient] = [connectQuickly(url), connectPatiently(url)];
    for (const { redis } of [quick, patient]) redis.setMaxListeners(mostListeners);
    const blocking = connectPatiently(url);
    const node = createNodeHeartbeat(quick, name, clock);
    const asking = patient.redis;
    const bell = createJobBell({ blocking, asking, name, clock, fleetChanged: node.wake });
    const connections = {
      quick: () => {
        const queues: Queue[] = [];
        return {
          ...quick,
          queue<Data, Answer>(name: string) {
            const queue = quick.queue<Data, Answer>(name);
            queues.push(queue);
            return queue;
          },
          // Without Redis, closing may never end.
          close: () => queues.forEach((queue) => void queue.close().catch(() => undefined)),
        };
      },
      patient: () => ({ ...patient, leave: () => undefined, close: () => undefined }),
      bell,
      node,
    };
    const close = (): void => {
      node.close();
      bell.close();
      for (const one of [quick, patient]) one.close();
    };
    return { connections, close };
  };
  return {
    /** Returns those to this Redis. The users do not close them. */
    to(url: string): WorkerConnections {
      const one = known.get(url) ?? open(url);
      known.set(url, one);
      return one.connections;
    },
    close: () => known.forEach((one) => one.close()),
  };
}

/** Connections that the mirrors of a process share; the caller closes them at the end. */
export type SharedConnections = ReturnType<typeof shareConnections>;
