/**
 * The one home of a mirror, in Redis: which snapshot is the newest, and which worker serves it. Two
 * machines may each have a snapshot; the lease beside it says nothing about the other one.
 *
 *   Redis knows                               this worker has             →
 *   nothing                                   any snapshot                it is the home; but who
 *                                                                         stood by just now lets
 *                                                                         the home tell it first
 *   this snapshot, of an earlier generation   a later one, not put back   it is the home: whoever
 *                                             from a backup               had it lost its lease
 *   any other, and a worker that is alive     any                         stands by
 *   this snapshot, of a later generation      one put back from a backup  it is the home, and its
 *                                                                         generation the latest
 *                                             else                        stands by: not the newest
 *   another snapshot                          any                         stands by: not the newest
 *
 * A worker that is not heard of for fifteen seconds is dead. `acceptLost` makes it the home
 * wherever none is alive.
 */
import { z } from 'zod';
import { prefix } from './queue-names.ts';
import type { Quick } from './fail-fast-connection.ts';

export interface Candidate {
  /** Names the snapshot; its copies have the same name. */
  snapshot: string;
  /** How often it was opened to be written. */
  generation: number;
  /** It was put back from a backup. */
  restored: boolean;
  acceptLost: boolean;
  /** It was told to stand by just now, in the last fifteen seconds. */
  stoodBy: boolean;
}

export type Claim =
  /** `generation`: what the snapshot has to be of from now on. */
  | { is: 'home'; generation: number }
  | { is: 'taken' }
  | { is: 'older'; generation: number }
  /** Redis knows nothing any more: whoever was the home tells it, if there is one. */
  | { is: 'untold' };

export interface AssignmentStore {
  /** Throws Unavailable while Redis is away, as all of these do. */
  claim(candidate: Candidate): Promise<Claim>;
  /**
   * Whether this worker still is the home: to be asked every few seconds. A Redis that was emptied
   * is told again.
   */
  keep(own: Pick<Candidate, 'snapshot' | 'generation'>): Promise<boolean>;
  /** Another may be the home at once. */
  leave(): Promise<void>;
  /** Whether any worker is. */
  isServed(): Promise<boolean>;
}

export const aliveMs = 15_000;

const claimScript = `
local worker, snapshot = ARGV[1], ARGV[2]
local generation, restored, accept = tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5] == '1'
local stoodBy, ms = ARGV[6] == '1', ARGV[7]
local known = redis.call('HGET', KEYS[1], 'snapshot')
local latest = tonumber(redis.call('HGET', KEYS[1], 'generation') or '0')
local mine = known == snapshot
local alive = redis.call('GET', KEYS[2])
local another = alive and alive ~= worker
if another and (restored or not (mine and generation > latest)) then
  return cjson.encode({ is = 'taken' })
end
if not known and stoodBy then return cjson.encode({ is = 'untold' }) end
if known and not accept and not (mine and (generation > latest or restored)) then
  return cjson.encode({ is = 'older', generation = latest })
end
if mine and generation <= latest then generation = latest + 1 end
redis.call('HSET', KEYS[1], 'snapshot', snapshot, 'generation', generation, 'worker', worker)
redis.call('SET', KEYS[2], worker, 'PX', ms)
return cjson.encode({ is = 'home', generation = generation })
`;

const keepScript = `
local worker = redis.call('HGET', KEYS[1], 'worker')
if worker and worker ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'snapshot', ARGV[2], 'generation', ARGV[3], 'worker', ARGV[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[4])
return 1
`;

const leaveScript = `
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
`;

const answer = z.discriminatedUnion('is', [
  z.object({ is: z.literal('home'), generation: z.number() }),
  z.object({ is: z.literal('taken') }),
  z.object({ is: z.literal('untold') }),
  z.object({ is: z.literal('older'), generation: z.number() }),
]);

/** `worker` names this process, and no other. */
export function homeRecord({ redis, ask }: Quick, mirror: string, worker: string): AssignmentStore {
  const record = `${prefix}:${mirror}:{home}`;
  const alive = `${record}:alive`;
  const run = (script: string, ...values: (string | number)[]): Promise<unknown> =>
    ask(() => redis.eval(script, 2, record, alive, ...values));
  return {
    async claim({ snapshot, generation, restored, acceptLost, stoodBy }) {
      const flags = [restored, acceptLost, stoodBy].map(Number);
      const told = await run(claimScript, worker, snapshot, generation, ...flags, aliveMs);
      return answer.parse(JSON.parse(String(told)));
    },
    keep: async ({ snapshot, generation }) =>
      (await run(keepScript, worker, snapshot, generation, aliveMs)) === 1,
    leave: async () => void (await run(leaveScript, worker)),
    isServed: async () => (await ask(() => redis.exists(alive))) === 1,
  };
}
