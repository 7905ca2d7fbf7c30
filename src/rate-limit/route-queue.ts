/** The queue of one route: whose turn it is, and whether the route is stuck. */
import type { Clock } from '../domain/clock.ts';

const URGENCY = ['event', 'opt_out', 'other'] as const;
/** How urgent a request is, most urgent first: `URGENCY` has the order. */
export type Priority = (typeof URGENCY)[number];

/** One request in this many is the one that has waited longest, whatever its priority. */
const FAIR = 8;

interface Waiting {
  priority: Priority;
  /** The number of its arrival, counted over all priorities. */
  order: number;
}

/** The requests that wait for one route, sorted by priority. */
export interface Lanes<Entry extends Waiting> {
  /**
   * Adds a request behind those of its priority; with `again`, ahead of all that wait for the first
   * time.
   */
  put(entry: Entry, place?: 'again'): void;
  /** Removes and returns the request whose turn it is; undefined when none waits. */
  take(): Entry | undefined;
  /** Removes a request. Returns false when it does not wait here. */
  remove(entry: Entry): boolean;
  /** Returns how many requests wait. */
  size(): number;
}

/** Creates an empty queue. */
export function createLanes<Entry extends Waiting>(): Lanes<Entry> {
  // Two lanes per priority, because a request that comes back goes ahead of new ones.
  const lanes = URGENCY.map((priority) => ({
    priority,
    again: new Set<Entry>(),
    new: new Set<Entry>(),
  }));
  let taken = 0;

  function* firsts(): Generator<Entry> {
    for (const lane of lanes) {
      const first = earliest(lane.again) ?? lane.new.values().next().value;
      if (first) yield first;
    }
  }
  const remove = (entry: Entry): boolean =>
    lanes.some((lane) => lane.again.delete(entry) || lane.new.delete(entry));

  return {
    put(entry, place) {
      for (const lane of lanes) {
        if (lane.priority === entry.priority) lane[place ?? 'new'].add(entry);
      }
    },
    take() {
      taken += 1;
      const waiting = [...firsts()];
      const next = taken % FAIR === 0 ? earliest(waiting) : waiting[0];
      if (next) remove(next);
      return next;
    },
    remove,
    size: () => lanes.reduce((sum, lane) => sum + lane.again.size + lane.new.size, 0),
  };
}

function earliest<Entry extends Waiting>(entries: Iterable<Entry>): Entry | undefined {
  let first: Entry | undefined;
  for (const entry of entries) if (!first || entry.order < first.order) first = entry;
  return first;
}

/**
 * A route is stuck when one request was refused this often and no other got through for this long.
 */
const leastRefusals = 3;

const leastMs = 30_000;

/** The report of a route that is stuck, or no longer is. */
export interface Stuck {
  route: string;
  /**
   * The milliseconds for which one request was refused again and again; undefined: a request got
   * through.
   */
  forMs: number | undefined;
}

/** Watches one route. */
export interface StuckWatch {
  through(): void;
  /**
   * Call when one request was refused: how often by now, and the monotonic time of its first
   * refusal.
   */
  refused(refusals: number, sinceMs: number): void;
}

/**
 * Creates a watch that calls `tell` once when the route is stuck, and once when a request gets
 * through again.
 */
export function watchStuck(route: string, clock: Clock, tell: (told: Stuck) => void): StuckWatch {
  let throughMs = Number.NEGATIVE_INFINITY;
  let isStuck = false;
  return {
    /** Call when a request got through. */
    through() {
      throughMs = clock.monotonic();
      if (isStuck) tell({ route, forMs: undefined });
      isStuck = false;
    },
    refused(refusals, sinceMs) {
      const forMs = clock.monotonic() - Math.max(sinceMs, throughMs);
      if (isStuck || refusals < leastRefusals || forMs < leastMs) return;
      isStuck = true;
      tell({ route, forMs });
    },
  };
}
