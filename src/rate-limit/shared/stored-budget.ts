/**
 * Keeps the budget of a fleet in one key of Redis. A process changes its copy of the budget and
 * stores it if nobody else has stored another one meanwhile; else it repeats the change on the
 * newer one. If that fails several times, for example because Redis is further away than from the
 * others, it has a short turn in which nobody else stores. Redis compares and stores in one script,
 * and times are those of its clock, as each process estimates it. The budget holds numbers and the
 * random ids of processes, but no personal data and no secret. It expires when it can no longer
 * have any effect.
 */
import type { Clock, Random } from '../../domain/clock.ts';
import { type FleetBudget, fleetBudget, isBehind, keepMs, newFleet } from './fleet-budget.ts';
import type { Link } from './redis-connection.ts';

/**
 * KEYS are those of a budget and of the turn. ARGV holds the version that is known, the new budget,
 * the milliseconds after which it expires, the worker, and the milliseconds for which it takes the
 * turn, or 0. A stored budget is its version, a line break and JSON. Returns the time of Redis in
 * seconds and microseconds and, if nothing was stored, what is stored.
 */
const lua = `
local time = redis.call('TIME')
local kept = redis.call('GET', KEYS[1]) or ''
local now = time[1] .. '.' .. string.format('%06d', time[2])
local turn = redis.call('GET', KEYS[2])
if string.match(kept, '^[^\\n]*') ~= ARGV[1] or (turn and turn ~= ARGV[4]) then
  if ARGV[5] ~= '0' then redis.call('SET', KEYS[2], ARGV[4], 'NX', 'PX', ARGV[5]) end
  return now .. '\\n' .. kept
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if turn then redis.call('DEL', KEYS[2]) end
return now
`;

const storeScript = {
  name: 'crmMirrorStoreBudget',
  lua,
  hasStored: (answer: string) => !answer.includes('\n'),
};

/** How often it is tried while other processes store something each time. */
const MOST_TRIES = 50;
/** After this many of them, the process takes a turn, at most this long. */
const TURN_AFTER = 4;
const MOST_TURN_MS = 1000;
const MOST_PAUSE_MS = 200;
/** No budget has this version. */
const NO_VERSION = 'none';

/** A budget in Redis. */
export interface StoredBudget {
  /**
   * Changes the budget. `change` may be called several times; only the result of its last call
   * counts, and tells whether the budget needs to be stored. Returns undefined if Redis is away, or
   * if others stored something at every attempt.
   */
  change<T extends { changes: boolean }>(
    change: (fleet: FleetBudget, sharedMs: number) => T,
  ): Promise<T | undefined>;
}

/** The settings of a stored budget. `worker` is unique to this process. */
export interface StoredOptions {
  link: Link;
  key: string;
  worker: string;
  clock: Clock;
  random: Random;
}

/** What was stored at last, as far as this process knows. */
interface Copy {
  /** Empty if nothing is stored. */
  version: string;
  /** Undefined if nothing usable is stored. */
  fleet: FleetBudget | undefined;
}

/** Creates the access to a budget in Redis; nothing is read before the first change. */
export function storedBudget({ link, key, worker, clock, random }: StoredOptions): StoredBudget {
  let copy: Copy | undefined;
  let stores = 0;
  /** The time of Redis minus the monotonic time of this process. */
  let aheadMs: number | undefined;
  let tripMs = 0;

  /** Stores a budget if the version is the stored one. Returns what is stored afterwards. */
  const store = async (
    version: string,
    { fleet, tries }: { fleet?: FleetBudget; tries: number },
  ) => {
    stores += 1;
    const next = `${worker}.${stores}`;
    const text = fleet ? `${next}\n${JSON.stringify(fleet)}` : '';
    const forMs = fleet ? `${keepMs(fleet)}` : '';
    const sentMs = clock.monotonic();
    // A turn begins with the reading, so that it lasts no longer than it must.
    const turnMs = fleet || tries < TURN_AFTER ? 0 : Math.min(MOST_TURN_MS, 10 + 2 * tripMs);
    const args = [version, text, forMs, worker, turnMs.toFixed()];
    const answer = await link.run(storeScript, [key, `${key}:turn`], args);
    if (answer === undefined) return undefined;
    const [seconds = '', newer, newerText = ''] = answer.split('\n');
    const nowMs = clock.monotonic();
    tripMs = nowMs - sentMs;
    // Redis read its clock at some time in between, so an earlier estimate may be the better one.
    const [least, most] = [Number(seconds) * 1000 - nowMs, Number(seconds) * 1000 - sentMs];
    aheadMs = Math.min(most, Math.max(least, aheadMs ?? (least + most) / 2));
    return newer === undefined
      ? { isStored: true, copy: { version: next, fleet } }
      : { isStored: false, copy: { version: newer, fleet: read(newerText) } };
  };

  return {
    async change(change) {
      for (let tries = 0; tries < MOST_TRIES; tries += 1) {
        // The last copy is the newest unless another process has stored one.
        const isFresh = tries > 0 || !copy;
        copy ??= (await store(NO_VERSION, { tries }))?.copy;
        if (!copy) return undefined;
        const sharedMs = (aheadMs ?? 0) + clock.monotonic();
        const { version, fleet: kept } = copy;
        const fleet = kept && !isBehind(kept, sharedMs) ? kept : newFleet(sharedMs);
        // No other change sees a copy while this one is under way.
        copy = undefined;
        const result = change(fleet, sharedMs);
        if (isFresh && !result.changes) return result;
        const told = await store(version, { fleet, tries });
        copy = told?.copy;
        if (!told) return undefined;
        if (told.isStored) return result;
        if (tries === 0) continue;
        // Many processes at once spread out, and read again.
        await clock.sleep(random() * Math.min(MOST_PAUSE_MS, 2 ** tries));
        copy = undefined;
      }
      return undefined;
    },
  };
}

/** Parses a budget. Returns undefined if there is none, or none of this form. */
function read(text: string): FleetBudget | undefined {
  try {
    return text === '' ? undefined : fleetBudget.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
