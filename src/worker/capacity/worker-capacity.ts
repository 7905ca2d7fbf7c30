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
 *   claims                  two                             a worker that starts, or takes over
 *                                                           from another, claims all at once
 *   events                  eight, and up to 32 in the      after an outage, hundreds of mirrors
 *                           same way, beside the runs       may have events that wait
 *   commands                none beyond that of a mirror    somebody waits for them
 *   mirrors that are open   sixteen, for seven seconds      events often come in groups
 *   and have nothing to do
 */
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
const claimsAtOnce = 2;
/** The longest time that a mirror stays open without anything to do, in milliseconds. */
export const idleMs = 7_000;
/** How many mirrors stay open for that time. */
export const idleAtMost = 16;

/**
 * Creates what the mirrors of a worker share. `timeCheck` returns functions that each return
 * whether the process had time left since their last call.
 */
export function createCapacity(clock: Clock, timeCheck: () => () => boolean): Capacity {
  const slotsOf = (counts: typeof runSlots) =>
    createRunSlots({ ...counts, hasTime: timeCheck(), clock });
  return {
    runs: slotsOf(runSlots),
    checks: slotsOf(runSlots),
    events: slotsOf(eventSlots),
    claims: pLimit(claimsAtOnce),
    idle: createIdle(clock),
  };
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
