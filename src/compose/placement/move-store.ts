/**
 * Stores in Redis how a mirror moves from the disk of one worker to that of another. While a mirror
 * moves, it has an entry, which is removed in the same step that stores the outcome.
 *
 *   state    who acts   what it does                                            next
 *   asked    target     refuses, or shows by a sealed text that it has the key  ready
 *   ready    source     refuses if it has another key                           leaving
 *   leaving  source     releases the mirror once its run has ended, locks and   sending
 *                       copies it
 *   sending  both       the copy goes through Redis in encrypted parts, at      no entry
 *                       most a few at a time; the target proves it
 *
 * A move that succeeds removes the entry and changes the disk of the mirror in one step; one that
 * fails only removes the entry. So the disk in Redis says at every moment where the mirror is.
 */
import { z } from 'zod';
import { parseJson } from '../../domain/values/lossless-json.ts';
import { aliveKeyOf } from '../queues/assignment-store.ts';
import { fleetChanged, fleetKeys } from '../queues/fleet-keys.ts';
import { prefix } from '../queues/queue-names.ts';
import { nodeKeys } from '../queues/node-heartbeat.ts';
import { type Quick, repliesTo } from '../queues/redis-connections.ts';

/** A text of Redis that people read, in one line: anybody who reaches Redis may have written it. */
export const oneLine = z.string().transform((text) => text.replace(/\p{Cc}+/gu, ' '));

const moveSchema = z.object({
  id: z.string(),
  from: oneLine,
  to: oneLine,
  /** The disk of the target, as fleet-keys.ts describes it. */
  disk: z.string(),
  state: z.enum(['asked', 'ready', 'leaving', 'sending']),
  /** A text that the target has sealed, in Base64; '' before that. */
  proof: z.string(),
});
export type Move = z.infer<typeof moveSchema>;

/** Returns whether no worker may serve the mirror. */
export function isUnderway({ state }: Move): boolean {
  return state === 'leaving' || state === 'sending';
}

const newsSchema = z.discriminatedUnion('is', [
  z.object({ is: z.literal('going'), sent: z.number(), total: z.number() }),
  /** `isRefused`: nothing was begun, and the input has to be mended. */
  z.object({
    is: z.literal('failed'),
    reason: oneLine,
    fix: oneLine.optional(),
    isRefused: z.boolean(),
  }),
  z.object({
    is: z.literal('moved'),
    people: z.number(),
    entries: z.number(),
    files: z.array(z.object({ name: oneLine, bytes: z.number(), sha256: z.string() })),
  }),
]);
/** How far a move is, or how it has ended. */
export type MoveNews = z.infer<typeof newsSchema>;

/** How long news is kept, in seconds. */
const keptSeconds = 3_600;
/** How long parts are kept that nobody takes. */
const partsMs = 60_000;
const mostParts = 8;

/** Returns the moves in the replies of Redis. What is none is left out. */
export function movesIn(entries: Readonly<Record<string, string>>): Map<string, Move> {
  const moves = Object.entries(entries).flatMap(([mirror, text]) => {
    const move = moveSchema.safeParse(parseJson(text)).data;
    return move ? [[mirror, move] as const] : [];
  });
  return new Map(moves);
}

/** Names the keys and arguments of all scripts, and returns the entry if it is of this move. */
const own = `${fleetChanged}
local mirror, id = ARGV[1], ARGV[2]
local news, parts = '${prefix}:move:' .. id, '${prefix}:move:' .. id .. ':parts'
local function entry()
  local text = redis.call('HGET', '${fleetKeys.moves}', mirror)
  local move = text and cjson.decode(text)
  return move and move.id == id and move
end
local function over(outcome)
  redis.call('HDEL', '${fleetKeys.moves}', mirror)
  redis.call('SET', news, outcome, 'EX', ${keptSeconds})
  redis.call('DEL', parts)
  fleetChanged()
end
`;

const beginScript = `${own}
if redis.call('HEXISTS', '${fleetKeys.moves}', mirror) == 1 then return 'moving' end
local move = cjson.decode(ARGV[3])
for _, node in ipairs({ move.from, move.to }) do
  if not redis.call('ZSCORE', '${fleetKeys.nodes}', node) then return 'gone' end
end
if redis.call('HGET', '${fleetKeys.disks}', mirror) ~= ARGV[4] then return 'gone' end
redis.call('HSET', '${fleetKeys.moves}', mirror, ARGV[3])
fleetChanged()
return 'begun'
`;

const stepScript = `${own}
local move = entry()
if not move or move.state ~= ARGV[3] then return 0 end
move.state, move.proof = ARGV[4], ARGV[5]
redis.call('HSET', '${fleetKeys.moves}', mirror, cjson.encode(move))
fleetChanged()
return 1
`;

const failScript = `${own}
if not entry() then return 0 end
over(ARGV[3])
return 1
`;

const arriveScript = `${own}
local move = entry()
if not move or move.state ~= 'sending' then return 0 end
local sign = redis.call('GET', KEYS[1])
local node = sign and string.match(sign, '@(.+)$')
if sign and not (node and redis.call('EXISTS', '${nodeKeys}' .. node) == 0) then return 0 end
redis.call('HSET', '${fleetKeys.disks}', mirror, move.disk)
redis.call('DEL', KEYS[1])
over(ARGV[3])
return 1
`;

const putScript = `${own}
if not entry() then return 'gone' end
local isThere = redis.call('HEXISTS', parts, ARGV[3]) == 1
if not isThere and redis.call('HLEN', parts) >= ${mostParts} then return 'full' end
redis.call('HSET', parts, ARGV[3], ARGV[4])
redis.call('PEXPIRE', parts, ${partsMs})
redis.call('SET', news, ARGV[5], 'EX', ${keptSeconds})
return 'put'
`;

export type MoveStore = ReturnType<typeof moveStore>;

/**
 * Asks two workers to move a mirror whose disk is `known`, as Redis has it. Returns `moving` if the
 * mirror moves already, and `gone` if the workers or the disk are others by now.
 */
export async function beginMove(
  { redis, ask }: Quick,
  { mirror, move, known }: { mirror: string; move: Move; known: string },
): Promise<'begun' | 'moving' | 'gone'> {
  const args = [mirror, move.id, JSON.stringify(move), known];
  const told = await ask(() => redis.eval(beginScript, 0, ...args));
  return z.enum(['begun', 'moving', 'gone']).parse(told);
}

/** The move of one mirror. Every function throws Unavailable while Redis is away. */
export function moveStore({ redis, ask }: Quick, mirror: string, id: string) {
  const news = `${prefix}:move:${id}`;
  const run = async (script: string, ...values: (string | number | Buffer)[]): Promise<unknown> =>
    ask(() => redis.eval(script, 1, aliveKeyOf(mirror), mirror, id, ...values));
  return {
    /** Goes on to the next state. Returns false if the move is over, or in another state. */
    step: async (from: Move['state'], to: Move['state'], proof: string): Promise<boolean> =>
      (await run(stepScript, from, to, proof)) === 1,
    /** Ends the move where it began. Returns false if it was over. */
    fail: async (told: MoveNews) => (await run(failScript, JSON.stringify(told))) === 1,
    /** Ends the move at its target: from now on, the mirror is on the disk of that one. */
    arrive: async (told: MoveNews) => (await run(arriveScript, JSON.stringify(told))) === 1,
    /** Stores an encrypted part, which may be repeated; `full` means to try again soon. */
    async put(part: number, sealed: Buffer, told: MoveNews) {
      const answer = await run(putScript, part, sealed, JSON.stringify(told));
      return z.enum(['put', 'full', 'gone']).parse(answer);
    },
    /** Returns a part; undefined if it is not there yet. It stays until it is dropped. */
    take: async (part: number): Promise<Buffer | undefined> =>
      (await ask(() => redis.hgetBuffer(`${news}:parts`, String(part)))) ?? undefined,
    drop: async (part: number) => void (await ask(() => redis.hdel(`${news}:parts`, String(part)))),
    /** Returns where the mirror is: whether it moves, the id of its disk, and the last news. */
    async look() {
      const read = redis.multi().hget(fleetKeys.moves, mirror).hget(fleetKeys.disks, mirror);
      const found = await ask(() => repliesTo(read.get(news)));
      const text = z.string().nullable();
      const [entry, disk, told] = z.tuple([text, text, text]).parse(found);
      return {
        isGoing: moveSchema.safeParse(parseJson(entry ?? '')).data?.id === id,
        disk: disk?.split('@')[0],
        news: newsSchema.safeParse(parseJson(told ?? '')).data,
      };
    },
    /** Says under which names the source keeps its old files, and returns what was said. */
    sayKept: async (names: readonly string[]) =>
      void (await ask(() => redis.set(`${news}:kept`, JSON.stringify(names), 'EX', keptSeconds))),
    async kept(): Promise<string[] | undefined> {
      const text = await ask(() => redis.get(`${news}:kept`));
      return z.array(oneLine).safeParse(parseJson(text ?? '')).data;
    },
  };
}
