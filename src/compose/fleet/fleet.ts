/**
 * Reads what the workers of a folder know of each other in Redis, drains them, and tells which
 * mirrors nobody can serve, because no living worker has the disk they are on.
 *
 * Decides which worker serves a mirror. Every worker computes the same from what Redis knows, so no
 * worker leads and nothing is stored: of those that may serve the mirror, it is the one with the
 * highest score for it (rendezvous hashing). One that comes or goes moves only its own mirrors.
 *
 *   a worker may serve a mirror that it knows, unless it is draining, if
 *     the disk of the mirror's snapshot is known, and the worker has that disk
 *     or no disk is known
 */
import { z } from 'zod';
import { renderProblem } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import { parseJson } from '../../domain/stored-json.ts';
import { aliveMs, fleetKeys, fleetScript } from '../queues/node-heartbeat.ts';
import { type Quick, repliesTo } from '../queues/redis-connections.ts';

/** What decides whether a worker may serve a mirror. */
export interface FleetNode {
  name: string;
  /** The mirrors of its folder, by the id of the disk of their snapshots. */
  disks: Readonly<Record<string, ReadonlySet<string>>>;
  isDraining: boolean;
}

/** A living worker of the fleet. */
export interface FleetWorker extends FleetNode {
  host: string;
  since: number;
  /** The disks that it has, but has left because locks do not work there (fleet-member.ts). */
  left: readonly string[];
  /** When it last showed that it is alive, in milliseconds since the epoch by Redis' clock. */
  beatAt: number;
}

/** A mirror that a worker of the fleet knows. */
interface FleetMirror {
  name: string;
  /** The living process that has it, in the fleet or not; undefined if none has. */
  holder: string | undefined;
  /** The id of the disk that its snapshot is on, and a machine with it; undefined if not known. */
  disk: string | undefined;
  diskHost: string | undefined;
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
  disks: z.record(
    z.string(),
    names.transform((list) => new Set(list)),
  ),
  left: names,
});

const pairs = z.record(z.string(), oneLine);

const replies = z.tuple([
  z.tuple([z.coerce.number(), z.coerce.number()]),
  z.string().nullable(),
  names,
  pairs,
  names,
  pairs,
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
    .hgetall(fleetKeys.holders)
    .hgetall(fleetKeys.disks);
  const found = replies.parse(await ask(() => repliesTo(reads)));
  const [[seconds, micros], changed, beats, records, draining, holders, disks] = found;
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
  const known = nodes.flatMap(({ disks: own }) => Object.values(own).flatMap((all) => [...all]));
  const mirrors = [...new Set([...known, ...others])].toSorted().map((name): FleetMirror => {
    const holder = alive.has(holders[name] ?? '') ? holders[name] : undefined;
    const [disk, diskHost] = disks[name]?.split('@') ?? [];
    return { name, holder, disk, diskHost };
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

/** None if no worker is alive, because then the disk is not the reason. */
export function mirrorsWithoutDisk({ nodes, mirrors }: Fleet): FleetMirror[] {
  if (nodes.length === 0) return [];
  return unserved(mirrors).filter((one) => isWithoutDisk(one, nodes));
}

/** Returns whether the disk of the mirror is known, and is none of these workers'. */
export function isWithoutDisk({ disk }: FleetMirror, nodes: readonly FleetNode[]): boolean {
  return disk !== undefined && !nodes.some(({ disks }) => disk in disks);
}

/** Returns a line for each machine that is missing, with the remedy. */
export function missingDiskWords(missing: readonly FleetMirror[]): string[] {
  const groups = Map.groupBy(missing, ({ diskHost = '' }) => diskHost);
  return [...groups].map(([host, mirrors]) => {
    const names = mirrors.slice(0, mostNames).map(({ name }) => name);
    const more = mirrors.length > mostNames ? ' …' : '';
    const reason =
      `nobody can serve ${counted(mirrors.length, 'mirror')} on a disk of ${host}, which no ` +
      `living worker has: ${names.join(', ')}${more}`;
    const fix =
      `start the worker of ${host}; or put a backup on another machine, and start ` +
      '`worker -c FILE --accept-lost-snapshot` there once';
    return renderProblem({ reason, fix });
  });
}

/** Returns the name of the worker that serves the mirror; undefined if none may. */
export function ownerOf(
  { name, disk }: { name: string; disk: string | undefined },
  nodes: readonly FleetNode[],
): string | undefined {
  let owner: string | undefined;
  let highest = -1;
  for (const node of nodes) {
    const known = disk === undefined ? Object.values(node.disks) : [node.disks[disk]];
    if (node.isDraining || !known.some((mirrors) => mirrors?.has(name))) continue;
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
