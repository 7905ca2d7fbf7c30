/**
 * What the mirrors of one worker share, so that hundreds of them need the memory of a few: a mirror
 * is open only while something is done in it, and shortly afterwards, and the heap is kept small.
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
import { setFlagsFromString } from 'node:v8';
import pLimit from 'p-limit';
import type { Clock } from '../domain/clock.ts';

const runSlots = { atOnce: 4, most: 12, long: 32 };
const eventSlots = { atOnce: 8, most: 32, long: 128 };
const claimsAtOnce = 2;
/** The longest time that a mirror stays open without anything to do, in milliseconds. */
export const idleMs = 7_000;
/** How many mirrors stay open for that time. */
export const idleAtMost = 16;

export type Capacity = ReturnType<typeof createCapacity>;

/** `timeCheck` returns functions that say whether there was time left since their last call. */
export function createCapacity(clock: Clock, timeCheck: () => () => boolean) {
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

/** Returns what closes an idle mirror, later or if many are idle; that returns what prevents it. */
function createIdle(clock: Clock): (close: () => void) => () => void {
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

/** When a run is due, and what ends its wait. */
export interface DueWork {
  dueMs: number;
  stop: AbortSignal;
}

interface SlotOptions {
  /** How many runs may be in progress at once in any case, not counting long ones. */
  atOnce: number;
  /** How many may be while the process has time left. */
  most: number;
  /** How many long runs do not count. */
  long: number;
  hasTime(): boolean;
  clock: Clock;
}

const longMs = 30_000;
/** How often a waiting run may begin because the process has time left. */
const lookMs = 200;

export type RunSlots = ReturnType<typeof createRunSlots>;

/**
 * Creates the slots, which limit how many runs of a worker are in progress at once, however many
 * mirrors are due.
 *
 *   a run                        result
 *   a slot is free               it begins
 *   no slot is free              it waits; the one that was due first gets the next slot
 *   is stopped while it waits    it does not begin
 *   waits, and the process has   there is one slot more, a few times a second: the runs in progress
 *   time left                    wait for the CRM or the platform
 *   goes on for half a minute    it gives its slot to another one, as long as few runs have done so
 *
 * A run that takes so long mostly waits for the platform's limits. If it kept its slot, a few first
 * loads would delay the schedules of all other mirrors for hours.
 */
export function createRunSlots({ atOnce, most, long, hasTime, clock }: SlotOptions) {
  /** The runs that use a slot, and the long runs that use none. */
  let used = 0;
  let away = 0;
  let waiting: { dueMs: number; begin(): void }[] = [];
  let isLooking = false;
  const pass = (): void => {
    const [first] = waiting.toSorted((a, b) => a.dueMs - b.dueMs);
    if (!first) return;
    used += 1;
    waiting = waiting.filter((one) => one !== first);
    first.begin();
  };
  const free = (): void => {
    used -= 1;
    if (used < atOnce) pass();
  };
  /** While runs wait, lets one more begin whenever the process has time left. */
  const look = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    hasTime();
    while (waiting.length > 0) {
      await clock.sleep(lookMs);
      if (hasTime() && used < most) pass();
    }
    isLooking = false;
  };
  const admitted = async ({ dueMs, stop }: DueWork): Promise<boolean> => {
    if (stop.aborted) return false;
    if (used < atOnce) {
      used += 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const own = { dueMs, begin: () => resolve(true) };
    const leave = (): void => {
      waiting = waiting.filter((one) => one !== own);
      resolve(false);
    };
    waiting.push(own);
    void look();
    stop.addEventListener('abort', leave, { once: true });
    return promise.finally(() => stop.removeEventListener('abort', leave));
  };
  return {
    /** Does the work in a slot, or returns undefined if `stop` is aborted before it begins. */
    async run<T>(place: DueWork, work: () => Promise<T>): Promise<T | undefined> {
      if (!(await admitted(place))) return undefined;
      const over = new AbortController();
      let isLong = false;
      const watch = async (): Promise<void> => {
        while (!isLong) {
          await clock.sleep(longMs, over.signal);
          if (away >= long) continue;
          isLong = true;
          away += 1;
          free();
        }
      };
      watch().catch(() => undefined);
      try {
        return await work();
      } finally {
        over.abort();
        if (isLong) away -= 1;
        else free();
      }
    },
  };
}

/**
 * Lets V8 collect old objects when the heap has grown by 30 %, and not by a factor that it derives
 * from the memory of the machine: on a large one, a worker grows to several times its size. Call it
 * when the modules are loaded, because V8 uses compiled code from the cache only with the flags of
 * the time at which it was stored. Does nothing on a Node whose V8 may not know the option.
 */
export function limitHeapGrowth(nodeVersion: string): void {
  if (Number.parseInt(nodeVersion, 10) <= 24) setFlagsFromString('--heap-growing-percent=30');
}
