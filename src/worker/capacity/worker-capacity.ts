/**
 * What the mirrors of one worker share, so that hundreds of them need the memory of a few: a mirror
 * is open only while something is done in it, and shortly afterwards.
 *
 *   how much at once        the limit                       why
 *   runs                    four, and up to 12 while the    a process computes on one core: if it
 *                           process and the machine have    has no time left, more runs at once
 *                           time left, in the order in      would not be done earlier
 *                           which they were due
 *   unsubscribe checks      as many, beside the runs        they are due in the same second
 *   claims                  two                             a worker that starts, or takes over from
 *                                                           another, claims all its mirrors at once
 *   events                  eight, and up to 32 in the      after an outage, hundreds of mirrors
 *                           same way, beside the runs       may have events that wait
 *   commands                none beyond that of a mirror    somebody waits for them
 *   mirrors that are open   sixteen, for seven seconds      events often come in groups
 *   and have nothing to do
 */
import { cpus } from 'node:os';
import { performance } from 'node:perf_hooks';
import pLimit from 'p-limit';
import type { Clock } from '../../domain/clock.ts';
import { createRunSlots, type RunSlots } from './run-slots.ts';

/** What the mirrors of a worker share. */
export interface Capacity {
  runs: RunSlots;
  /** The unsubscribe checks. */
  checks: RunSlots;
  events: RunSlots;
  /** Limits the mirrors that are claimed at a time. */
  claims: ReturnType<typeof pLimit>;
  /**
   * Calls `close` when the mirror has had nothing to do for a while, or earlier if many have not.
   * Returns what to call when it has something to do again.
   */
  idle(close: () => void): () => void;
}

const runSlots = { atOnce: 4, most: 12, long: 32 };
const eventSlots = { atOnce: 8, most: 32, long: 128 };
/** The largest share of the time in which a process, or a machine, that has time left is busy. */
const busyShare = 0.7;
const claimsAtOnce = 2;
/** The longest time that a mirror stays open without anything to do, in milliseconds. */
export const idleMs = 7_000;
/** How many mirrors stay open for that time. */
export const idleAtMost = 16;

/** Creates what the mirrors of a worker share. */
export function createCapacity(clock: Clock): Capacity {
  const slotsOf = (counts: typeof runSlots) =>
    createRunSlots({ ...counts, hasTime: createTimeCheck(), clock });
  return {
    runs: slotsOf(runSlots),
    checks: slotsOf(runSlots),
    events: slotsOf(eventSlots),
    claims: pLimit(claimsAtOnce),
    idle: createIdle(clock),
  };
}

/**
 * Returns a function that returns whether the process and its machine had time left since the last
 * call. A process that has to wait for a core looks idle to itself.
 */
function createTimeCheck(): () => boolean {
  let last = timesNow();
  return () => {
    const now = timesNow();
    const { utilization } = performance.eventLoopUtilization(now.own, last.own);
    const total = now.total - last.total;
    const idle = total === 0 ? 0 : (now.idle - last.idle) / total;
    last = now;
    return utilization < busyShare && idle > 1 - busyShare;
  };
}

function timesNow() {
  const times = cpus().map((one) => one.times);
  const idle = times.reduce((sum, one) => sum + one.idle, 0);
  const total = times.reduce(
    (sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq,
    idle,
  );
  return { own: performance.eventLoopUtilization(), idle, total };
}

function createIdle(clock: Clock): Capacity['idle'] {
  /** How to close those that have nothing to do, the one that has waited longest first. */
  const waiting = new Set<() => void>();
  return (close) => {
    const over = new AbortController();
    const leave = (): void => {
      waiting.delete(end);
      over.abort();
    };
    const end = (): void => {
      leave();
      close();
    };
    waiting.add(end);
    clock.sleep(idleMs, over.signal).then(end, () => undefined);
    const [first] = waiting;
    if (waiting.size > idleAtMost) first?.();
    return leave;
  };
}
