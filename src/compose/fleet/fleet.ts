/**
 * Reads what the workers of a folder know of each other in Redis, and drains them.
 *
 * Decides which worker serves a mirror. Every worker computes the same from what Redis knows, so no
 * worker leads and nothing is stored: of those that may serve the mirror, it is the one with the
 * highest score for it (rendezvous hashing). One that comes or goes moves only its own mirrors.
 *
 *   a worker may serve a mirror of its folder, unless
 *     it is draining
 *     a worker has begun a snapshot of the mirror, which is not in the folder of this one
 *     locks do not work between it and another worker of that folder (fleet-member.ts)
 */
import { z } from 'zod';
import { parseJson } from '../../domain/stored-json.ts';
import { aliveMs, fleetKeys, fleetScript } from '../queues/node-heartbeat.ts';
import { type Quick, repliesTo } from '../queues/redis-connections.ts';

/** What decides whether a worker may serve a mirror. */
export interface FleetNode {
  name: string;
  /** The mirrors that it may serve. */
  mirrors: ReadonlySet<string>;
  isDraining: boolean;
}

/** A living worker of the fleet. */
export interface FleetWorker extends FleetNode {
  host: string;
  since: number;
  /** The mirrors of its folder that it cannot serve. */
  unable: readonly string[];
  /** When it last showed that it is alive, in milliseconds since the epoch by Redis' clock. */
  beatAt: number;
}

/** A mirror that a worker of the fleet knows. */
interface FleetMirror {
  name: string;
  /** The living process that has it, in the fleet or not; undefined if none has. */
  holder: string | undefined;
  /** Whether a worker has begun a snapshot of it. */
  isBegun: boolean;
}

export interface Fleet {
  /** The value that differs after a change. */
  changed: string;
  nodes: FleetWorker[];
  mirrors: FleetMirror[];
}

/** A text of Redis that people read, in one line: anybody who reaches Redis may have written it. */
const oneLine = z.string().transform((text) => text.replace(/\p{Cc}+/gu, ' '));

const names = z.array(oneLine);

const recordSchema = z.object({
  host: oneLine,
  since: z.number(),
  mirrors: names.transform((list) => new Set(list)),
  unable: names,
});

const pairs = z.record(z.string(), oneLine);

const replies = z.tuple([
  z.tuple([z.coerce.number(), z.coerce.number()]),
  z.string().nullable(),
  names,
  pairs,
  names,
  pairs,
]);

/** The mirrors that a worker knows, and `others`, in one transaction. Throws Unavailable. */
export async function readFleet(
  { redis, ask }: Quick,
  others: readonly string[] = [],
): Promise<Fleet> {
  const reads = redis
    .multi()
    .time()
    .get(fleetKeys.changed)
    .zrange(fleetKeys.nodes, '0', '-1', 'WITHSCORES')
    .hgetall(fleetKeys.records)
    .smembers(fleetKeys.draining)
    .hgetall(fleetKeys.holders);
  const found = replies.parse(await ask(() => repliesTo(reads)));
  const [[seconds, micros], changed, beats, records, draining, holders] = found;
  const aliveFrom = seconds * 1_000 + micros / 1_000 - aliveMs;
  const alive = new Map<string, number>();
  for (let at = 0; at < beats.length; at += 2) {
    const beatAt = Number(beats[at + 1]);
    if (beatAt > aliveFrom) alive.set(beats[at] ?? '', beatAt);
  }
  const listed = [...alive].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const nodes = listed.flatMap(([name, beatAt]): FleetWorker[] => {
    const record = recordSchema.safeParse(parseJson(records[name] ?? '')).data;
    return record ? [{ name, ...record, beatAt, isDraining: draining.includes(name) }] : [];
  });
  const known = nodes.flatMap(({ mirrors: own, unable }) => [...own, ...unable]);
  const mirrors = [...new Set([...known, ...others])].toSorted().map((name): FleetMirror => {
    const holder = alive.has(holders[name] ?? '') ? holders[name] : undefined;
    return { name, holder, isBegun: Object.hasOwn(holders, name) };
  });
  return { changed: changed ?? '', nodes, mirrors };
}

/** Returns the names of the mirrors that a worker serves. */
export function servedBy({ mirrors }: Fleet, node: string): string[] {
  return mirrors.filter(({ holder }) => holder === node).map(({ name }) => name);
}

/** Returns the mirrors that no process serves. */
export function unserved(mirrors: readonly FleetMirror[]): FleetMirror[] {
  return mirrors.filter(({ holder }) => holder === undefined);
}

const drainScript = `${fleetScript}
if redis.call('HEXISTS', '${fleetKeys.records}', ARGV[1]) == 0 then return 0 end
redis.call(ARGV[2], '${fleetKeys.draining}', ARGV[1])
fleetChanged()
return 1
`;

/** Has a worker give all its mirrors away, or have mirrors again. Returns whether it is alive. */
export async function drainNode({ redis, ask }: Quick, node: string, isDraining: boolean) {
  const how = isDraining ? 'SADD' : 'SREM';
  return (await ask(() => redis.eval(drainScript, 0, node, how))) === 1;
}

const mostNames = 5;

/** Says why a folder gets no empty snapshot of the mirrors, which would know no opt-outs. */
export function missingSnapshots(folder: string, mirrors: readonly string[]) {
  const names = mirrors.slice(0, mostNames).join(', ') + (mirrors.length > mostNames ? ' …' : '');
  return {
    reason: `${folder} has no snapshot of ${names}, and one was begun elsewhere; none is begun here`,
    fix:
      'mount the folder that all workers share, or serve it on the machine that has the snapshot; if ' +
      'it is lost, put a backup here, or begin anew with `worker -c FILE --accept-lost-snapshot` once',
  };
}

/** Returns the name of the worker that serves the mirror; undefined if none may. */
export function ownerOf(name: string, nodes: readonly FleetNode[]): string | undefined {
  let owner: string | undefined;
  let highest = -1;
  for (const node of nodes) {
    if (node.isDraining || !node.mirrors.has(name)) continue;
    const score = hashOf(`${node.name}\n${name}`);
    if (score < highest || (score === highest && node.name > (owner ?? ''))) continue;
    owner = node.name;
    highest = score;
  }
  return owner;
}

/** Returns 32 bits, evenly spread (FNV-1a, with the finalizer of MurmurHash3). */
function hashOf(text: string): number {
  let hash = 0x81_1c_9d_c5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
