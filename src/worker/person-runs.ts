/**
 * Performs runs about one person, a few at a time, each on its own connection to the snapshot. The
 * connections are reused, because opening one takes longer than most of these runs.
 */
import pLimit from 'p-limit';
import type { Mirror } from '../engine/context/mirror-context.ts';
import type { Assembled } from '../compose/process-shell.ts';

/** The maximum number of concurrent runs about one person. */
export const lanesAtOnce = 4;

/** A pool of connections to one snapshot. */
export interface Lanes {
  /** Does the work as soon as a connection is free. */
  run<T>(work: (mirror: Mirror) => Promise<T>): Promise<T>;
  /** Does the work immediately, on a new connection that is closed afterwards. */
  sibling<T>(work: (own: Assembled) => Promise<T>): Promise<T>;
  /** Waits for the work in progress, then closes the connections. */
  close(): Promise<void>;
}

/** Creates the lanes. `sibling` opens one more connection. */
export function createLanes({ sibling }: Pick<Assembled, 'sibling'>): Lanes {
  const limit = pLimit(lanesAtOnce);
  const free: Assembled[] = [];
  const underWay = new Set<Promise<unknown>>();
  const through = async <T>(work: (mirror: Mirror) => Promise<T>): Promise<T> => {
    const lane = free.pop() ?? sibling();
    try {
      const done = await work(lane.mirror);
      free.push(lane);
      return done;
    } catch (error) {
      // The cause of the failure may be something that the connection holds open.
      await lane.close();
      throw error;
    }
  };
  const onOwn = async <T>(work: (own: Assembled) => Promise<T>): Promise<T> => {
    const own = sibling();
    try {
      return await work({ ...own, close: async () => undefined });
    } finally {
      await own.close();
    }
  };
  const watch = async <T>(running: Promise<T>): Promise<T> => {
    underWay.add(running);
    return running.finally(() => underWay.delete(running));
  };
  return {
    run: async (work) => watch(limit(through, work)),
    sibling: async (work) => watch(onOwn(work)),
    async close() {
      await Promise.allSettled(underWay);
      await Promise.all(free.splice(0).map(async (lane) => lane.close()));
    },
  };
}
