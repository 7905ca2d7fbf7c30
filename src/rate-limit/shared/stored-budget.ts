/**
 * Keeps the budget of a fleet in one key of Redis. A process changes its copy of the budget and
 * stores it if nobody else has stored another one meanwhile; else it repeats the change on the
 * newer one. Redis compares and stores in one script, and its clock is the only one. The budget
 * holds numbers and the random ids of processes, but no personal data and no secret. It expires
 * when it can no longer have any effect.
 */
import type { Clock, Random } from '../../domain/clock.ts';
import { type FleetBudget, fleetBudget, isBehind, keepMs, newFleet } from './fleet-budget.ts';
import type { Link } from './redis-connection.ts';

/**
 * KEYS[1] is the key of a budget, and ARGV holds the version that is known, the new budget and
 * the milliseconds after which it expires. A stored budget is its version, a line break and JSON.
 * Returns the time of Redis in seconds and microseconds and, if nothing was stored, what is stored.
 */
const lua = `
local time = redis.call('TIME')
local kept = redis.call('GET', KEYS[1]) or ''
local now = time[1] .. '.' .. string.format('%06d', time[2])
if string.match(kept, '^[^\\n]*') ~= ARGV[1] then return now .. '\\n' .. kept end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return now
`;

const storeScript = {
  name: 'crmMirrorStoreBudget',
  lua,
  hasStored: (answer: string) => !answer.includes('\n'),
};

/** How often it is tried while other processes store something each time. */
const MOST_TRIES = 50;
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
  /** The time of Redis minus the monotonic time of this process. */
  aheadMs: number;
}

/** Creates the access to a budget in Redis; nothing is read before the first change. */
export function storedBudget({ link, key, worker, clock, random }: StoredOptions): StoredBudget {
  let copy: Copy | undefined;
  let stores = 0;

  /** Stores a budget if the version is the stored one. Returns what is stored afterwards. */
  const store = async (version: string, fleet?: FleetBudget) => {
    stores += 1;
    const next = `${worker}.${stores}`;
    const text = fleet ? `${next}\n${JSON.stringify(fleet)}` : '';
    const forMs = fleet ? `${keepMs(fleet)}` : '';
    const sentMs = clock.monotonic();
    const answer = await link.run(storeScript, key, [version, text, forMs]);
    if (answer === undefined) return undefined;
    const [seconds = '', newer, newerText = ''] = answer.split('\n');
    const aheadMs = Number(seconds) * 1000 - (sentMs + clock.monotonic()) / 2;
    return newer === undefined
      ? { isStored: true, copy: { version: next, fleet, aheadMs } }
      : { isStored: false, copy: { version: newer, fleet: read(newerText), aheadMs } };
  };

  return {
    async change(change) {
      for (let tries = 0; tries < MOST_TRIES; tries += 1) {
        // The last copy is the newest unless another process has stored one.
        const isFresh = tries > 0 || !copy;
        copy ??= (await store(NO_VERSION))?.copy;
        if (!copy) return undefined;
        const sharedMs = copy.aheadMs + clock.monotonic();
        const { version, fleet: kept } = copy;
        const fleet = kept && !isBehind(kept, sharedMs) ? kept : newFleet(sharedMs);
        // No other change sees a copy while this one is under way.
        copy = undefined;
        const result = change(fleet, sharedMs);
        if (isFresh && !result.changes) return result;
        const told = await store(version, fleet);
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
