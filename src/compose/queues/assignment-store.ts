/**
 * Assigns a mirror to one worker. Redis stores which snapshot is the newest and which worker serves
 * it. This is needed because two machines may each have a snapshot, and the lease of one does not
 * cover the other.
 *
 *   Redis knows                               this worker has             result
 *   nothing                                   any snapshot                home; but untold if it
 *                                                                         stood by just now, so
 *                                                                         that the home can tell
 *                                                                         Redis first
 *   this snapshot, of an earlier generation   a later one, not restored   home: the worker before
 *                                             from a backup; while a      has lost its lease
 *                                             worker with -c is alive,
 *                                             only in the same file
 *   anything else, and a worker is alive      any                         taken
 *   this snapshot, of a later generation      one restored from a backup  home, and its generation
 *                                                                         becomes the latest
 *                                             else                        older
 *   this snapshot, a billion generations      any, aloud only; its own    forged
 *   later                                     generation is kept
 *   another snapshot                          any                         older
 *   that the snapshot is on another disk      any, and is a worker of a   apart
 *                                             folder, which is placed
 *
 * A worker that has been silent for fifteen seconds counts as dead. With `acceptLost`, a worker
 * becomes the home in every case in which no other worker is alive.
 *
 * A worker shows that it is alive by a key of the mirror, which it renews. A worker of a folder
 * writes the name of its process there, too, and is alive while the key of that process is
 * (node-heartbeat.ts). It closes a mirror that has nothing to do, so a free lease does not mean
 * that it has lost the mirror. It can only lose it after its own key was gone, which it notices.
 */
import { checkedJson } from '../../domain/stored-json.ts';
import { z } from 'zod';
import { aliveMs, fleetChanged, fleetKeys } from './fleet-keys.ts';
import { prefix } from './queue-names.ts';
import { nodeKeys } from './node-heartbeat.ts';
import type { Quick } from './redis-connections.ts';

export interface Candidate {
  /** The name of the snapshot; its copies share it. */
  snapshot: string;
  /** How many times the snapshot was opened for writing. */
  generation: number;
  /** The inode number of the snapshot's file, which distinguishes the file from its copies. */
  file: string;
  /** Whether the snapshot was restored from a backup. */
  restored: boolean;
  acceptLost: boolean;
  /** Whether this worker was told to stand by within the last fifteen seconds. */
  stoodBy: boolean;
  /** The disk of the snapshot, as fleet-keys.ts describes it; '' if its folder has no id. */
  disk: string;
}

/** The result of a claim. `home` means that the mirror is assigned to this worker. */
export type Claim =
  /** `generation` is the generation that the snapshot must have from now on. */
  | { is: 'home'; generation: number }
  | { is: 'taken' }
  | { is: 'older' }
  /** Redis has a generation that no copy of the snapshot can have reached. */
  | { is: 'forged' }
  /** The snapshot of the mirror is on the disk of other workers. */
  | { is: 'apart' }
  /** Redis is empty, so the previous home gets time to register again. */
  | { is: 'untold' };

export type AssignmentStore = ReturnType<typeof homeRecord>;

/** How long the key of a mirror stays that names a process; it is renewed every few minutes. */
const namedMs = 900_000;

/** The process in the key of a mirror, and what the key says if that process is alive. */
const livingScript = `
local function nodeIn(value) return value and string.match(value, '@(.+)$') end
local function living(value)
  local node = nodeIn(value)
  if node and redis.call('EXISTS', '${nodeKeys}' .. node) == 0 then return false end
  return value
end
-- Whether a living worker is another one than the one with this sign, and whether it may have
-- closed the mirror. A process serves a mirror once.
local function others(alive, sign)
  local node = nodeIn(alive)
  if not alive or alive == sign or (node and node == nodeIn(sign)) then return false, false end
  return true, node ~= nil
end
`;

/** Stores the disk of a mirror, and compares it with another one. */
const diskScript = `
local function idOf(disk) return disk and string.match(disk, '^[^@]+') end
local function onDisk(mirror, disk)
  if disk ~= '' then redis.call('HSET', '${fleetKeys.disks}', mirror, disk) end
end
`;

const claimScript = `${livingScript}${diskScript}${fleetChanged}
local worker, snapshot = ARGV[1], ARGV[2]
local generation, restored, accept = tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5] == '1'
local stoodBy, ms, file = ARGV[6] == '1', ARGV[7], ARGV[8]
local mirror, disk, isPlaced = ARGV[10], ARGV[11], nodeIn(ARGV[9])
local known = redis.call('HGET', KEYS[1], 'snapshot')
local latest = tonumber(redis.call('HGET', KEYS[1], 'generation') or '0') or 0
local mine = known == snapshot
local forged = mine and latest - generation > 1e9
local alive = living(redis.call('GET', KEYS[2]))
local another, resting = others(alive, ARGV[9])
local there = redis.call('HGET', KEYS[1], 'file') or file
if another and (resting or restored or not (mine and there == file and generation > latest)) then
  return cjson.encode({ is = 'taken' })
end
if not known and stoodBy then return cjson.encode({ is = 'untold' }) end
local its = idOf(redis.call('HGET', '${fleetKeys.disks}', mirror))
if isPlaced and not accept and its and its ~= idOf(disk) then
  return cjson.encode({ is = 'apart' })
end
if forged and not accept then return cjson.encode({ is = 'forged' }) end
if known and not accept and not (mine and (generation > latest or restored)) then
  return cjson.encode({ is = 'older' })
end
if mine and not forged and generation <= latest then generation = latest + 1 end
redis.call('HSET', KEYS[1], 'snapshot', snapshot, 'generation', generation, 'worker', worker,
  'file', file)
redis.call('SET', KEYS[2], ARGV[9], 'PX', ms)
onDisk(mirror, disk)
if alive ~= ARGV[9] then fleetChanged() end
return cjson.encode({ is = 'home', generation = generation })
`;

const keepScript = `${diskScript}
local worker = redis.call('HGET', KEYS[1], 'worker')
if worker and worker ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'snapshot', ARGV[2], 'generation', ARGV[3], 'worker', ARGV[1],
  'file', ARGV[5])
redis.call('SET', KEYS[2], ARGV[6], 'PX', ARGV[4])
onDisk(ARGV[7], ARGV[8])
return 1
`;

const leaveScript = `${fleetChanged}
if redis.call('GET', KEYS[2]) == ARGV[1] then
  redis.call('DEL', KEYS[2])
  fleetChanged()
end
return 1
`;

const restingScript = `${livingScript}
local _, resting = others(living(redis.call('GET', KEYS[2])), ARGV[1])
return resting and 1 or 0
`;

const servedScript = `${livingScript}
return living(redis.call('GET', KEYS[2])) and 1 or 0
`;

const answer = checkedJson(
  'the answer of Redis',
  z.discriminatedUnion('is', [
    z.object({ is: z.literal('home'), generation: z.number() }),
    z.object({ is: z.literal('taken') }),
    z.object({ is: z.literal('untold') }),
    z.object({ is: z.literal('apart') }),
    z.object({ is: z.literal('older') }),
    z.object({ is: z.literal('forged') }),
  ]),
);

/** Holds who serves the mirror: a worker, and after `@` its process if that shows its life. */
export function aliveKeyOf(mirror: string): string {
  return `${prefix}:${mirror}:{home}:alive`;
}

/**
 * Creates the assignment of one mirror. `worker` is a name that is unique to this worker, `node`
 * its process if that shows its life. Every function throws Unavailable while Redis is away.
 */
export function homeRecord(
  { redis, ask }: Quick,
  { mirror, worker, node }: { mirror: string; worker: string; node?: string | undefined },
) {
  const sign = node === undefined ? worker : `${worker}@${node}`;
  const signMs = node === undefined ? aliveMs : namedMs;
  const record = `${prefix}:${mirror}:{home}`;
  const alive = aliveKeyOf(mirror);
  const run = (script: string, ...values: (string | number)[]): Promise<unknown> =>
    ask(() => redis.eval(script, 2, record, alive, ...values));
  return {
    async claim(candidate: Candidate): Promise<Claim> {
      const { snapshot, generation, file, restored, acceptLost, stoodBy, disk } = candidate;
      const flags = [restored, acceptLost, stoodBy].map(Number);
      const own = [worker, snapshot, generation, ...flags, signMs, file, sign, mirror, disk];
      const told = await run(claimScript, ...own);
      return answer.decode(String(told));
    },
    /**
     * Returns whether the mirror is still assigned to this worker. It must be called every few
     * seconds, or when the heartbeat of the process says so. If Redis was emptied, stores the
     * assignment again.
     */
    async keep(of: Pick<Candidate, 'snapshot' | 'generation' | 'file' | 'disk'>): Promise<boolean> {
      const { snapshot, generation, file, disk } = of;
      const own = [worker, snapshot, generation, signMs, file, sign, mirror, disk];
      return (await run(keepScript, ...own)) === 1;
    },
    /** Returns whether a worker of another process serves the mirror that may have closed it. */
    isResting: async () => (await run(restingScript, sign)) === 1,
    /** Releases the mirror, so that another worker can claim it immediately. */
    leave: async () => void (await run(leaveScript, sign)),
    isServed: async () => (await run(servedScript)) === 1,
    /** Returns whether a worker has begun a snapshot of the mirror. */
    isKnown: async () => (await ask(() => redis.hexists(record, 'snapshot'))) === 1,
  };
}
