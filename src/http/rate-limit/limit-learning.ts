/** Learns from the responses of one route. permit-decision.ts describes states and conclusions. */
import type { Random } from '../../domain/clock.ts';
import type { Observation } from '../rate-limit-headers.ts';
import {
  type LearnedLimits,
  type Lease,
  SLOW_START,
  inFlight,
  isAlone,
  units,
} from './learned-limits.ts';
import { addUse, backMs, counted, surelyCounted } from './request-usage.ts';

const COMPANY_WINDOWS = 10;
/** The shortest window that can be detected from a server's clock in whole seconds. */
const LONG_WINDOW_MS = 10_000;
/** A wait stated in whole seconds may be half a second too short. */
export const SHORT_MS = 500;
const JITTER_MS = 50;
/** The shortest wait if nothing better is known. */
export const LEAST_WAIT_MS = 1000;
const UNKNOWN_WINDOW_MS = 60_000;
/** The longest wait without a probe, whatever is demanded. */
const MOST_WAIT_MS = 3_600_000;
/** A wait in whole seconds may be that much longer than what it counts. */
const WHOLE_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;

/** A response to a request that left at `sentMs`. A `lease` that has ended raises nothing. */
interface Event {
  lease: Lease | undefined;
  sentMs: number;
  seen: Observation;
  nowMs: number;
  random: Random;
}

/** Learns from a response: the limit, the window, what is left, and whether others send. */
export function learn(memory: LearnedLimits, event: Event): void {
  const { lease, sentMs, seen, nowMs } = event;
  const { usage } = memory;
  if (lease) memory.answers += 1;
  // If no header states the limit, it is at least what is left plus this request.
  const { remaining } = seen;
  const least = remaining === undefined ? memory.limit : Math.max(memory.limit ?? 0, remaining + 1);
  memory.limit = seen.limit ?? least;
  memory.isTold ||= memory.limit !== undefined && seen.limit === memory.limit;
  usage.windowMs = seen.windowMs ?? usage.windowMs;
  usage.tripMs = Math.min(usage.tripMs ?? NEVER, nowMs - sentMs);
  if (seen.refused) return block(memory, event);
  counted(usage, nowMs);
  addUse(usage, { sentMs, nowMs });
  memory.window.own += 1;
  // One more may be in flight per clean response; without headers, per round of responses.
  const { pace } = memory;
  pace.round += 1;
  if (memory.mark || pace.round >= pace.inFlight) {
    pace.round = 0;
    pace.inFlight = Math.min(pace.ceiling, pace.inFlight + 1);
  }
  // A response to a request from before these describes the time before them.
  if (isFrom(lease, memory.blocked?.at)) return;
  if (memory.blocked) {
    const { sinceMs } = memory.blocked;
    memory.blocked = undefined;
    memory.refusals = 0;
    guess(memory, nowMs, nowMs - sinceMs);
  }
  if (isFrom(lease, memory.unknown)) return;
  if (memory.unknown !== undefined) {
    memory.unknown = undefined;
    memory.mark = undefined;
    memory.window = { openedMs: nowMs, own: 1, short: false, before: 0 };
  }
  const { limit } = memory;
  if (remaining !== undefined && limit !== undefined) {
    believe(memory, event, Math.max(0, remaining - Math.floor(limit * memory.reserve)));
  } else if (memory.mark) memory.mark.left = Math.max(0, memory.mark.left - 1);
  else guess(memory, nowMs, 0);
}

function isFrom(lease: Event['lease'], at: number | undefined): boolean {
  return at !== undefined && (lease?.answers ?? -1) < at;
}

/**
 * Guesses the limit in the state BLIND: what succeeded between two refusals, in a window of the
 * time between them, at most a typical one or the block. Each later one without a refusal allows
 * one more.
 */
function guess(memory: LearnedLimits, nowMs: number, blockedMs: number): void {
  const { window, usage, isTold, mark } = memory;
  if (isTold || mark) return;
  const isOver = usage.windowMs !== undefined && nowMs >= backMs(usage, window.openedMs);
  if (blockedMs > 0 && window.own > 1) {
    memory.limit = window.own - 1;
    const most = Math.max(UNKNOWN_WINDOW_MS, blockedMs);
    usage.windowMs = Math.min(nowMs - window.openedMs, most);
  } else if (isOver && memory.limit !== undefined) memory.limit += 1;
  if (blockedMs > 0 || isOver) memory.window = { openedMs: nowMs, own: 1, short: false, before: 0 };
}

/** Records that `n` responses never arrived, because their requests may have counted. */
export function miss(memory: LearnedLimits, sentMs: number, nowMs: number, n: number): void {
  memory.answers += n;
  addUse(memory.usage, { sentMs, nowMs }, n);
  memory.window.own += n;
  const { mark } = memory;
  if (!mark) return;
  const taken = Math.min(n, mark.left);
  mark.left -= taken;
  mark.lost += taken;
}

function believe(memory: LearnedLimits, event: Event, shown: number): void {
  const { mark, window } = memory;
  const { lease, nowMs } = event;
  // The lowest number shown since the request left; other responses may be newer.
  const meanwhile = memory.recent.filter(({ at }) => at > (lease?.answers ?? -1));
  const left = Math.min(shown, ...meanwhile.map((one) => one.shown));
  const oldest = Math.min(memory.answers, ...memory.leases.map(({ answers }) => answers));
  const recent = [...memory.recent, { at: memory.answers, shown }];
  memory.recent = recent.filter(({ at }) => at > oldest);
  if (!mark) {
    // Use before the first response counts for one window, and others are assumed for that time.
    const ours = counted(memory.usage, nowMs) + inFlight(memory);
    const before = Math.max(0, units(memory) - ours - left);
    if (before > 0) {
      meetCompany(memory, nowMs, 1);
      addUse(memory.usage, { sentMs: undefined, nowMs }, before);
    }
    memory.window = { openedMs: nowMs, own: 1, short: false, before };
    return put(memory, event, left);
  }
  const least = lease ? lease.least - (memory.sent - lease.sent) : -NEVER;
  // Not `left`: another response may have shown a lower number before this request left.
  if (shown < least) meetCompany(memory, nowMs);
  if (isFrom(lease, mark.at)) {
    if (left < mark.left) put(memory, event, left);
    return;
  }
  const isDue = nowMs >= backMs(memory.usage, window.openedMs);
  if (isDue) window.short = left + 1 < units(memory) / 2;
  if (shown < least && window.short) memory.trickle = true;
  const gain = left - (mark.left + mark.lost - 1);
  const found = whatCameBack(memory, event, left, isDue);
  if (found === 'units') memory.trickle = true;
  else if (found === 'window') {
    memory.trickle = false;
    turn(memory, nowMs);
    memory.window.short = false;
    memory.pace.inFlight = SLOW_START;
  } else if (isDue && gain > 0) turn(memory, nowMs);
  else if (gain <= 0) {
    // Did nothing come back within a time in which a unit should have?
    const { limit, usage } = memory;
    const { windowMs } = usage;
    const isKnown = inFlight(memory) === 0 && limit !== undefined && windowMs !== undefined;
    if (isKnown && nowMs - mark.ms > (1.5 * windowMs) / limit) {
      memory.trickle = false;
      if (!isAlone(memory, nowMs)) memory.rigidUntilMs = nowMs + COMPANY_WINDOWS * windowMs;
    }
  }
  put(memory, event, left);
}

/** Begins a window. If the last one was observed from its beginning, others' share is known. */
function turn(memory: LearnedLimits, nowMs: number): void {
  const { window } = memory;
  memory.foreign.before = window.before > 0 ? 0 : memory.foreign.now;
  memory.window = { ...window, openedMs: nowMs, own: 1, before: 0 };
}

/** Returns the capacity regained beyond our own requests: a whole window, or single units. */
function whatCameBack(
  memory: LearnedLimits,
  { sentMs, nowMs }: Event,
  left: number,
  isDue: boolean,
): 'nothing' | 'window' | 'units' {
  const { limit, mark, usage } = memory;
  const { windowMs } = usage;
  if (!mark || limit === undefined || windowMs === undefined) return 'nothing';
  const gain = left - (mark.left + mark.lost - 1);
  if (gain <= 0) return 'nothing';
  const own = surelyCounted(usage, { sentMs, nowMs });
  if (left <= units(memory) - own) return 'nothing';
  const inTheMeantime = ((nowMs - mark.ms) * limit) / windowMs + 1.5;
  if (gain > inTheMeantime) return 'window';
  // If nearly all came back, the window may have ended; before that, the gain was the reserved
  // share.
  const isBefore = memory.reserve > 0 && !isDue;
  return isBefore || left < (units(memory) - 1) * 0.9 ? 'units' : 'nothing';
}

function put(memory: LearnedLimits, { seen, nowMs }: Event, left: number): void {
  const { windowMs } = memory.usage;
  const { resetInMs, dateMs } = seen;
  // The end of a known window cannot be further away than its length.
  const resetAtMs =
    resetInMs === undefined ? undefined : nowMs + Math.min(resetInMs, windowMs ?? resetInMs);
  const isLong = dateMs !== undefined && windowMs !== undefined && windowMs >= LONG_WINDOW_MS;
  const beatMs = isLong ? nowMs + windowMs - (dateMs % windowMs) : undefined;
  const used = counted(memory.usage, nowMs);
  const { answers: at } = memory;
  memory.mark = { left, lost: 0, at, ms: nowMs, counted: used, resetAtMs, beatMs };
  const { own, before } = memory.window;
  // In a sliding window, our own requests from the previous window still count.
  const ours = Math.max(own + before, used) + inFlight(memory);
  // A difference of one is not another client: servers that weigh the last window round.
  memory.foreign.now = Math.max(0, units(memory) - left - ours - 1) / (memory.limit ?? 1);
}

/** Assumes other clients for so many windows. */
export function meetCompany(memory: LearnedLimits, nowMs: number, windows = COMPANY_WINDOWS): void {
  const forMs = windows * (memory.usage.windowMs ?? UNKNOWN_WINDOW_MS);
  memory.companyUntilMs = Math.max(memory.companyUntilMs, nowMs + forMs);
}

function block(memory: LearnedLimits, { lease, seen, nowMs, random }: Event): void {
  const { blocked, pace, answers, mark } = memory;
  // The remaining refusals of the same burst count as one refusal.
  const isSame = isFrom(lease, blocked?.at);
  if (!isSame) {
    memory.refusals += 1;
    pace.inFlight = Math.max(1, Math.floor(pace.inFlight / 2));
  }
  memory.trickle = false;
  meetCompany(memory, nowMs);
  memory.rigidUntilMs = 0;
  const { windowMs } = memory.usage;
  const asked = Math.min(seen.retryAfterMs || LEAST_WAIT_MS, longestWaitMs(memory, seen));
  const doubled = LEAST_WAIT_MS * 2 ** Math.max(0, memory.refusals - 1);
  const most = Math.max(asked, windowMs ?? UNKNOWN_WINDOW_MS);
  const part = 0.02 * (windowMs ?? 0);
  const shortMs = windowMs === undefined ? SHORT_MS : Math.min(SHORT_MS, part);
  const marginMs = shortMs + Math.max(JITTER_MS, part) * random();
  const waitMs = Math.min(Math.max(asked, doubled), most) + marginMs;
  const untilMs = Math.max(nowMs + waitMs, blocked?.untilMs ?? 0);
  memory.blocked = {
    sinceMs: blocked?.sinceMs ?? nowMs,
    untilMs,
    at: isSame && blocked ? blocked.at : answers,
  };
  if (mark) memory.mark = { ...mark, left: 0, lost: 0, at: answers, ms: nowMs };
}

/**
 * Returns how long a demanded wait may last before a probe: an hour, or two stated windows, doubled
 * by each refusal. A time meant for another clock or unit would stop the route for up to a day.
 */
function longestWaitMs({ isTold, usage, refusals }: LearnedLimits, seen: Observation): number {
  const windowMs = seen.windowMs ?? (isTold ? usage.windowMs : undefined);
  if (windowMs === undefined) return MOST_WAIT_MS;
  const mostMs = (2 * windowMs + WHOLE_MS) * 2 ** Math.max(0, refusals - 1);
  return Math.min(mostMs, MOST_WAIT_MS);
}
