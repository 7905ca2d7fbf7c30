/** Queues the requests of one route; decides whose turn it is and whether the route is stuck. */
import type { Clock } from '../../domain/clock.ts';

const URGENCY = ['event', 'opt_out', 'other'] as const;
/** The urgency of a request; `URGENCY` lists the values, most urgent first. */
export type Priority = (typeof URGENCY)[number];

/** One in this many requests is the one that has waited longest, whatever its priority. */
const FAIR = 8;

interface Waiting {
  priority: Priority;
  /** The arrival number, counted over all priorities. */
  order: number;
}

export type Lanes<Entry extends Waiting> = ReturnType<typeof createLanes<Entry>>;

/** Creates an empty queue of the requests that wait for one route, sorted by priority. */
export function createLanes<Entry extends Waiting>() {
  // Each priority has two lanes, because a request that is sent again takes precedence over new
  // ones.
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
  /** Removes a request. Returns false if the request is not waiting here. */
  const remove = (entry: Entry): boolean =>
    lanes.some((lane) => lane.again.delete(entry) || lane.new.delete(entry));

  return {
    /** Adds a request behind its equals, or with `again` ahead of all that wait anew. */
    put(entry: Entry, place?: 'again'): void {
      for (const lane of lanes) {
        if (lane.priority === entry.priority) lane[place ?? 'new'].add(entry);
      }
    },
    take(): Entry | undefined {
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

/** A route is stuck if a request was refused this often and no other got through meanwhile. */
const leastRefusals = 3;

const leastMs = 30_000;

/** A report about a route that has become stuck or no longer is. */
export interface Stuck {
  route: string;
  /** For how many milliseconds one request was refused; undefined if a request succeeded. */
  forMs: number | undefined;
}

export type StuckWatch = ReturnType<typeof watchStuck>;

/** Creates a watch that calls `tell` once when the route becomes stuck, and once when it is not. */
export function watchStuck(route: string, clock: Clock, tell: (told: Stuck) => void) {
  let throughMs = Number.NEGATIVE_INFINITY;
  let isStuck = false;
  return {
    /** Call this when a request succeeded. */
    through() {
      throughMs = clock.monotonic();
      if (isStuck) tell({ route, forMs: undefined });
      isStuck = false;
    },
    /** Call this after a refusal, with how many there were and the time of the first one. */
    refused(refusals: number, sinceMs: number): void {
      const forMs = clock.monotonic() - Math.max(sinceMs, throughMs);
      if (isStuck || refusals < leastRefusals || forMs < leastMs) return;
      isStuck = true;
      tell({ route, forMs });
    },
  };
}
