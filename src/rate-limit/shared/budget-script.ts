/**
 * Defines the budget of one route that several processes share: one key in Redis, and one script
 * that modifies it. A worker combines everything that it has to report into one call:
 *
 *   report   the outcome of permits: responses (what they showed about the limit, and how long ago
 *            they arrived), requests that were lost, permits returned
 *   block    if there is a 429 among them: no worker sends before the demanded wait is over, whose
 *            end never moves to an earlier time; then one probe for the whole fleet
 *   lease    how many permits it wants; it gets some, or a time after which to ask again
 *
 * The states are those of src/rate-limit/route-budget.ts. The only clock is that of Redis. If Redis
 * is empty, its clock was set back, or a worker was away for a while, the budget becomes unknown,
 * and one probe for the whole fleet measures it. The key holds numbers and the random ids of
 * workers, but no personal data and no secret. It expires when it can no longer have any effect.
 */
import { z } from 'zod';
import { decide } from './lua/grant-permits.ts';
import { learn } from './lua/limit-learning.ts';
import { usage } from './lua/request-usage.ts';

/** The outcome of permits. Times are in milliseconds. */
export type Report =
  | { is: 'back' | 'lost'; lease: string; n: number }
  | ({ is: 'answer'; lease: string; n: 1; age: number; trip: number; refused: boolean } & Shown);

/** The limit as shown by a response. A field is undefined if the response did not show it. */
interface Shown {
  limit?: number | undefined;
  remaining?: number | undefined;
  window?: number | undefined;
  resetIn?: number | undefined;
  date?: number | undefined;
  retryAfter?: number | undefined;
}

/** A worker's reports and its request for permits, in one call. */
export interface Message {
  worker: string;
  reports: readonly Report[];
  /** The number of permits that it would use immediately. */
  want: number;
  /**
   * The maximum milliseconds after which permits count as spent; two seconds if responses are fast.
   */
  ttl: number;
  /** The share of the limit left to other programs, from 0 to 1. */
  reserve: number;
  /** A random number from 0 to 1, so that not all workers return at the same time. */
  jitter: number;
  /** Whether the worker sent requests that are not recorded here. */
  away: boolean;
  /** Whether the worker will not call again. */
  leaving: boolean;
}

const reply = z.object({
  n: z.number(),
  wait: z.number(),
  lease: z.string().optional(),
  /** The number of workers that called recently. */
  workers: z.number(),
  limit: z.number().optional(),
  window: z.number().optional(),
  left: z.number().optional(),
  others: z.number(),
});
/** The result of the script: permits and a wait, and what is known about the limit. */
export type Reply = z.infer<typeof reply>;

/** Parses the reply from a JSON text. Throws if it has a different shape. */
export function readReply(text: string): Reply {
  return reply.parse(JSON.parse(text));
}

const step = `
local DAY = 86400000
local AWAY = 30000

local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000

local function unknown()
  return {
    born = time[1] .. '.' .. time[2], seen = now, leased = 0, sent = 0, answers = 0,
    unknown = 0, leases = {}, workers = {}, grains = {}, counts = 0, recent = {},
    pace = SLOW_START, round = 0, refusals = 0, company = 0, trickle = false, proven = false,
    opened = { ms = now, own = 0, short = false },
  }
end

local message = cjson.decode(ARGV[1])
local kept = redis.call('GET', KEYS[1])
local m = kept and cmsgpack.unpack(kept) or unknown()
if now < m.seen - 1000 then m = unknown() end
now = math.max(now, m.seen)
m.seen = now
m.reserve = message.reserve

-- size: workers heard of lately; eager: those of them that wait for permits.
m.workers[message.worker] = { seen = now, waits = message.want > 0 }
if message.leaving then m.workers[message.worker] = nil end
m.size = 0
m.eager = 0
for worker, one in pairs(m.workers) do
  if one.seen < now - AWAY - 2 * (m.window or 0) then m.workers[worker] = nil
  else
    m.size = m.size + 1
    if one.waits then m.eager = m.eager + 1 end
  end
end

expire(m, now, message.away and message.worker)
if message.away then
  m.unknown = m.answers
  meet_company(m, now, UNKNOWN_WINDOWS)
end
for _, one in ipairs(message.reports) do report(m, one, now, message.jitter) end

local n, wait, id = 0, 0, nil
if message.want > 0 then
  n, wait = decide(m, now, message.want)
  if n > 0 then id = lease(m, now, n, message) end
  m.workers[message.worker].waits = n < message.want
end

local last = math.max(m.company, m.blocked and m.blocked.till or 0, now + 2 * (m.window or 0))
local keep = math.min(2 * DAY, last - now + 2 * AWAY)
redis.call('SET', KEYS[1], cmsgpack.pack(m), 'PX', math.ceil(keep))
return cjson.encode({
  n = n, wait = wait, lease = id, workers = m.size, limit = m.limit, window = m.window,
  left = m.mark and m.mark.left, others = math.max(m.foreign or 0, foreign_share(m)),
})
`;

/**
 * The script. KEYS[1] is the budget's key, ARGV[1] a Message in JSON; it returns a Reply in JSON.
 */
export const budgetScript: string = [usage, learn, decide, step].join('');
