/**
 * Runs about one person, a few at a time, each on a connection of its own to the snapshot. They are
 * kept for the next one: opening one takes longer than most of the runs.
 */
import pLimit from 'p-limit';
import type { Mirror } from '../engine/context/mirror-context.ts';
import type { Assembled } from '../cli/compose/assembled-mirror.ts';

export const lanesAtOnce = 4;

export interface Lanes {
  /** Does it on a connection of its own, when one is free. */
  run<T>(work: (mirror: Mirror) => Promise<T>): Promise<T>;
  /** Does it at once, on a connection that is closed when that is over. */
  sibling<T>(work: (own: Assembled) => Promise<T>): Promise<T>;
  /** Waits for what is under way, and takes nothing more. */
  close(): Promise<void>;
}

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
      // What it had open may be what failed.
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
