/**
 * Stores which worker has a mirror, and which snapshot is the newest, as two machines may each have
 * one and the lease of one does not cover the other.
 *
 *   Redis knows                               this worker has             the claim is
 *   that another living worker has it         any                         taken
 *   nothing                                   any snapshot                home; but untold if it
 *                                                                         stood by just now, so
 *                                                                         that the one that has it
 *                                                                         can tell Redis first
 *   this snapshot, of an earlier generation   any                         home
 *   this snapshot, of a later generation      one restored from a backup  home, and its generation
 *                                                                         becomes the latest
 *                                             else                        older
 *   this snapshot, a billion generations      any                         forged
 *   later
 *   another snapshot                          any                         older
 *
 * With `acceptLost`, a claim is home in every case in which no other worker is alive; a forged
 * generation is then replaced by that of the snapshot.
 *
 * The generation is the fencing token: it is stored in the snapshot, and grows with each opening. A
 * worker is alive as long as its process beats (node-heartbeat.ts). It may close a mirror that has
 * nothing to do, so a free lease does not mean that it has lost the mirror. It can only lose it
 * after it was silent for ten seconds, which it notices.
 */
import { z } from 'zod';
import { fleetKeys, fleetScript } from './node-heartbeat.ts';
import { prefix, type Quick } from './redis-connections.ts';

export interface Claimed {
  /** The name of the snapshot; its copies share it. */
  snapshot: string;
  /** How many times the snapshot was opened for writing. */
  generation: number;
}

/** A snapshot that a worker wants to serve. */
export interface Candidate extends Claimed {
  /** Whether the snapshot was restored from a backup. */
  restored: boolean;
  acceptLost: boolean;
  /** Whether this worker was told to stand by within the last ten seconds. */
  stoodBy: boolean;
}

const claim = z.tuple([
  z.enum(['home', 'taken', 'untold', 'older', 'forged']),
  /** What the generation of the snapshot has to be from now on. */
  z.coerce.number(),
]);

export type LockStore = ReturnType<typeof openLockStore>;

const claimScript = `${fleetScript}
local me, mirror, snapshot, generation = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local restored, accept, stoodBy = ARGV[5] == '1', ARGV[6] == '1', ARGV[7] == '1'
local known = redis.call('HGET', KEYS[1], 'snapshot')
local latest = tonumber(redis.call('HGET', KEYS[1], 'generation') or '0') or 0
local mine = known == snapshot
local forged = mine and latest - generation > 1e9
local holder = holderOf(mirror)
if holder and holder ~= me and isAlive(holder) then return { 'taken', '0' } end
if not known and stoodBy then return { 'untold', '0' } end
if forged and not accept then return { 'forged', '0' } end
if known and not accept and not (mine and (generation > latest or restored)) then
  return { 'older', '0' }
end
if mine and not forged and generation <= latest then generation = latest + 1 end
redis.call('HSET', KEYS[1], 'snapshot', snapshot, 'generation', generation)
redis.call('HSET', '${fleetKeys.holders}', mirror, me)
if holder ~= me then fleetChanged() end
return { 'home', string.format("%.0f", generation) }
`;

const keepScript = `${fleetScript}
local me, mirror, snapshot, generation = unpack(ARGV)
local holder = holderOf(mirror)
local known = redis.call('HMGET', KEYS[1], 'snapshot', 'generation')
local isOther = known[1] and (known[1] ~= snapshot or known[2] ~= generation)
if holder and holder ~= me or not holder and isOther then return 0 end
redis.call('HSET', KEYS[1], 'snapshot', snapshot, 'generation', generation)
redis.call('HSET', '${fleetKeys.holders}', mirror, me)
return 1
`;

const leaveScript = `${fleetScript}
if holderOf(ARGV[2]) == ARGV[1] then
  redis.call('HSET', '${fleetKeys.holders}', ARGV[2], '')
  fleetChanged()
end
`;

const servedScript = `${fleetScript}
local holder = holderOf(ARGV[2])
return holder and holder ~= ARGV[1] and isAlive(holder) and 1 or 0
`;

/** A process without a name has no mirrors. All functions throw Unavailable without Redis. */
export function openLockStore({ redis, ask }: Quick, mirror: string, node = '') {
  const record = `${prefix}:${mirror}:{home}`;
  const run = (script: string, ...values: (string | number)[]): Promise<unknown> =>
    ask(() => redis.eval(script, 1, record, node, mirror, ...values));
  return {
    /** Returns what the claim is, and the generation that the snapshot must have from now on. */
    async claim(candidate: Candidate): Promise<z.output<typeof claim>> {
      const { snapshot, generation, restored, acceptLost, stoodBy } = candidate;
      const flags = [restored, acceptLost, stoodBy].map(Number);
      return claim.parse(await run(claimScript, snapshot, generation, ...flags));
    },
    /** To be called when the locks are in doubt. If Redis was emptied, stores the lock again. */
    async keep(of: Claimed): Promise<boolean> {
      return (await run(keepScript, of.snapshot, of.generation)) === 1;
    },
    /** Releases the mirror, so that another worker can claim it immediately. */
    leave: async () => void (await run(leaveScript)),
    /** Returns whether another living worker has the mirror. */
    isServed: async () => (await run(servedScript)) === 1,
    /** Returns whether a worker has begun a snapshot of the mirror. */
    isKnown: async () => (await ask(() => redis.hexists(record, 'snapshot'))) === 1,
  };
}
