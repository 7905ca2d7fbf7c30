/**
 * Limits how many runs of a worker are in progress at once, however many mirrors are due.
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
import type { Clock } from '../../domain/clock.ts';

/** When a run is due, and what ends its wait. */
export interface DueWork {
  /** Milliseconds since the epoch. */
  dueMs: number;
  stop: AbortSignal;
}

/** The slots of a worker. */
export interface RunSlots {
  /** Does the work in a slot, or returns undefined if `stop` is aborted before it begins. */
  run<T>(place: DueWork, work: () => Promise<T>): Promise<T | undefined>;
}

/** The numbers of slots, and what decides between them. */
export interface SlotOptions {
  /** How many runs may be in progress at once in any case, not counting long ones. */
  atOnce: number;
  /** How many may be while the process has time left. */
  most: number;
  /** How many long runs do not count. */
  long: number;
  /** Returns whether the process had time left since the last call. */
  hasTime(): boolean;
  clock: Clock;
}

const longMs = 30_000;
/** How often a waiting run may begin because the process has time left. */
const lookMs = 200;

interface Waiting {
  dueMs: number;
  begin(): void;
}

interface State extends SlotOptions {
  /** The runs that use a slot. */
  used: number;
  /** The long runs that use none. */
  away: number;
  waiting: Waiting[];
  isLooking: boolean;
}

/** Creates the slots. */
export function createRunSlots(options: SlotOptions): RunSlots {
  const state: State = { ...options, used: 0, away: 0, waiting: [], isLooking: false };
  return {
    async run({ dueMs, stop }, work) {
      if (!(await admitted(state, { dueMs, stop }))) return undefined;
      const ended = hold(state);
      try {
        return await work();
      } finally {
        ended();
      }
    },
  };
}

/** Waits for a slot. Returns whether there is one for this run. */
async function admitted(state: State, { dueMs, stop }: DueWork): Promise<boolean> {
  if (stop.aborted) return false;
  if (state.used < state.atOnce) {
    state.used += 1;
    return true;
  }
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const own: Waiting = { dueMs, begin: () => resolve(true) };
  const leave = (): void => {
    state.waiting = state.waiting.filter((one) => one !== own);
    resolve(false);
  };
  state.waiting.push(own);
  void look(state);
  stop.addEventListener('abort', leave, { once: true });
  return promise.finally(() => stop.removeEventListener('abort', leave));
}

/** While runs wait, lets one more begin whenever the process has time left. */
async function look(state: State): Promise<void> {
  if (state.isLooking) return;
  state.isLooking = true;
  state.hasTime();
  while (state.waiting.length > 0) {
    await state.clock.sleep(lookMs);
    if (state.hasTime() && state.used < state.most) pass(state);
  }
  state.isLooking = false;
}

/** Frees one slot, or passes it on. */
function free(state: State): void {
  state.used -= 1;
  if (state.used < state.atOnce) pass(state);
}

/** Gives a slot to the run that waits and was due first. */
function pass(state: State): void {
  const first = state.waiting.reduce<Waiting | undefined>(
    (best, one) => (best && best.dueMs <= one.dueMs ? best : one),
    undefined,
  );
  if (!first) return;
  state.used += 1;
  state.waiting = state.waiting.filter((one) => one !== first);
  first.begin();
}

/** Watches a run that has a slot. Returns what to call when it has ended. */
function hold(state: State): () => void {
  const over = new AbortController();
  let isLong = false;
  const watch = async (): Promise<void> => {
    while (!isLong) {
      await state.clock.sleep(longMs, over.signal);
      if (state.away >= state.long) continue;
      isLong = true;
      state.away += 1;
      free(state);
    }
  };
  watch().catch(() => undefined);
  return () => {
    over.abort();
    if (isLong) state.away -= 1;
    else free(state);
  };
}
