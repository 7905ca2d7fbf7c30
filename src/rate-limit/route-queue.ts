/** The queue of one route: whose turn it is, and whether the route is stuck. */
import type { Clock } from '../domain/clock.ts';

const URGENCY = ['event', 'opt_out', 'other'] as const;
export type Priority = (typeof URGENCY)[number];

/** One place in so many goes to whoever has waited longest, however urgent the others are. */
const FAIR = 8;

interface Waiting {
  priority: Priority;
  /** When it came, among all. */
  order: number;
}

export interface Lanes<Entry extends Waiting> {
  /** Behind those of its priority; `again`: ahead of them, it was here before. */
  put(entry: Entry, place?: 'again'): void;
  take(): Entry | undefined;
  /** False when it does not stand here. */
  remove(entry: Entry): boolean;
  size(): number;
}

export function createLanes<Entry extends Waiting>(): Lanes<Entry> {
  // Two lanes per priority: who comes back goes ahead of who is new.
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

/** It is said when one request was refused so often, and for so long no other got through. */
const leastRefusals = 3;

const leastMs = 30_000;

export interface Stuck {
  route: string;
  /** For how long one was refused again and again, milliseconds; undefined: it gets through. */
  forMs: number | undefined;
}

export interface StuckWatch {
  through(): void;
  /** One request was refused so often by now, for the first time at `sinceMs` (monotonic). */
  refused(refusals: number, sinceMs: number): void;
}

export function watchStuck(route: string, clock: Clock, tell: (told: Stuck) => void): StuckWatch {
  let throughMs = Number.NEGATIVE_INFINITY;
  let isStuck = false;
  return {
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
