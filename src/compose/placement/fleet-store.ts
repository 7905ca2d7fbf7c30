/**
 * Reads and writes what the workers of a folder know of each other in Redis, and tells which
 * mirrors nobody can serve, because no living worker has the disk they are on.
 */
import { z } from 'zod';
import { parseJson } from '../../domain/values/lossless-json.ts';
import { aliveKeyOf } from '../queues/assignment-store.ts';
import { fleetChanged, fleetKeys } from '../queues/fleet-keys.ts';
import { nodeKeys } from '../queues/node-heartbeat.ts';
import { type Quick, repliesTo } from '../queues/redis-connections.ts';
import { type PlacedMirror, type PlacedNode, weightOf } from './place-mirrors.ts';
import { renderProblem } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';

export interface FleetNode extends PlacedNode {
  host: string;
  /** When it started, in milliseconds since the epoch. */
  since: number;
  /** The disks that it has, but has left because locks do not work there (disk-locks.ts). */
  left: readonly string[];
  /** When it last showed that it is alive, in milliseconds since the epoch by Redis' clock. */
  beatAt: number;
}

/** A mirror that a worker of the fleet knows. */
export interface FleetMirror extends PlacedMirror {
  /** Whether a process has it that is not of the fleet. */
  isElsewhere: boolean;
  /** A machine that has its disk; undefined if the disk is not known. */
  diskHost: string | undefined;
}

export interface Fleet {
  /** The value that differs after a change. */
  changed: string;
  nodes: FleetNode[];
  mirrors: FleetMirror[];
}

/** A text of Redis that people read, in one line: anybody who reaches Redis may have written it. */
const oneLine = z.string().transform((text) => text.replace(/\p{Cc}+/gu, ' '));

const names = z.array(oneLine);

const recordSchema = z.object({
  host: oneLine,
  since: z.number(),
  disks: z.record(z.string(), z.object({ begun: names, bare: names })),
  left: names,
});

/** Returns the record with which a worker joins the fleet. */
export function recordOf(node: Omit<FleetNode, 'name' | 'isDraining' | 'beatAt'>): string {
  const { host, since, disks, left } = node;
  return JSON.stringify({ host, since, disks, left });
}

const textOf = z.string().nullable();
const pairsOf = z.record(z.string(), oneLine);

/**
 * Reads the fleet in two or three commands: the mirrors that a worker knows, and `others`. Throws
 * Unavailable while Redis is away.
 */
export async function readFleet(
  { redis, ask }: Quick,
  others: readonly string[] = [],
): Promise<Fleet> {
  const reads = redis
    .multi()
    .get(fleetKeys.changed)
    .zrange(fleetKeys.nodes, '0', '-1', 'WITHSCORES')
    .hgetall(fleetKeys.records)
    .smembers(fleetKeys.draining)
    .hgetall(fleetKeys.people)
    .hgetall(fleetKeys.disks);
  const found = await ask(() => repliesTo(reads));
  const [changed, beats, records, draining, people, disks] = z
    .tuple([textOf, names, pairsOf, names, pairsOf, pairsOf])
    .parse(found);
  const listed = beats.filter((_, at) => at % 2 === 0);
  const nodes = listed.flatMap((name, at) => {
    const text = records[name];
    const beatAt = Number(beats[2 * at + 1]);
    const record = recordSchema.safeParse(parseJson(text ?? '')).data;
    if (!record) return [];
    return [{ name, ...record, beatAt, isDraining: draining.includes(name) }];
  });
  const known = nodes.flatMap(({ disks: own }) => Object.values(own));
  const named = known.flatMap(({ begun, bare }) => [...begun, ...bare]);
  const all = [...new Set([...named, ...others])].toSorted();
  const homes = await homesOf({ redis, ask }, all, listed);
  const mirrors = all.map((name) => {
    const counted = people[name];
    const home = homes.get(name);
    const [disk, diskHost] = disks[name]?.split('@') ?? [];
    return {
      name,
      people: counted === undefined ? undefined : Number(counted),
      home: home === 'elsewhere' ? undefined : home?.node,
      isElsewhere: home === 'elsewhere',
      disk,
      diskHost,
    };
  });
  return { changed: changed ?? '', nodes, mirrors };
}

/** Returns the mirrors that a worker serves. */
export function servedBy({ mirrors }: Pick<Fleet, 'mirrors'>, node: string): FleetMirror[] {
  return mirrors.filter(({ home }) => home === node);
}

/** Returns the mirrors that no process serves. */
export function unserved({ mirrors }: Pick<Fleet, 'mirrors'>): FleetMirror[] {
  return mirrors.filter(({ home, isElsewhere }) => home === undefined && !isElsewhere);
}

type Home = { node: string } | 'elsewhere';

/** Returns which process serves each mirror. Mirrors of dead processes are left out. */
async function homesOf(
  { redis, ask }: Pick<Quick, 'redis' | 'ask'>,
  names: readonly string[],
  listed: readonly string[],
): Promise<Map<string, Home>> {
  if (names.length === 0) return new Map();
  const signs = await ask(() => redis.mget(names.map(aliveKeyOf)));
  const nodes = signs.map((sign) => sign?.match(/@(.+)$/)?.[1]);
  // A process that ends has left the fleet, but not its last mirrors.
  const others = [...new Set(nodes)].flatMap((node) =>
    node === undefined || listed.includes(node) ? [] : [node],
  );
  const alive = new Set(listed);
  for (const node of others) {
    if ((await ask(() => redis.exists(nodeKeys + node))) > 0) alive.add(node);
  }
  const homes = new Map<string, Home>();
  for (const [at, name] of names.entries()) {
    const node = nodes[at];
    if (node !== undefined && alive.has(node)) homes.set(name, { node });
    else if (node === undefined && typeof signs[at] === 'string') homes.set(name, 'elsewhere');
  }
  return homes;
}

const drainScript = `${fleetChanged}
if not redis.call('ZSCORE', '${fleetKeys.nodes}', ARGV[1]) then return 0 end
redis.call(ARGV[2], '${fleetKeys.draining}', ARGV[1])
fleetChanged()
return 1
`;

/** Has a worker give all its mirrors away, or have mirrors again. Returns whether it is alive. */
export async function drainNode(
  { redis, ask }: Quick,
  node: string,
  isDraining: boolean,
): Promise<boolean> {
  const how = isDraining ? 'SADD' : 'SREM';
  return (await ask(() => redis.eval(drainScript, 0, node, how))) === 1;
}

const peopleScript = `${fleetChanged}
redis.call('HSET', '${fleetKeys.people}', ARGV[1], ARGV[2])
fleetChanged()
`;

/**
 * Stores how many people a mirror has, unless that makes little difference to what was stored:
 * `known`. Returns what is stored now.
 */
export async function weigh(
  { redis, ask }: Quick,
  mirror: string,
  { people, known }: { people: number; known: number | undefined },
): Promise<number> {
  const [before, now] = [weightOf({ people: known }), weightOf({ people })];
  const isClose = Math.abs(now - before) < 0.1 * Math.max(now, before);
  if (known !== undefined && isClose) return known;
  await ask(() => redis.eval(peopleScript, 0, mirror, people));
  return people;
}

/** How many names a line lists. */
const mostNames = 5;

/**
 * Returns the mirrors that no process serves, and whose disk none of the living workers has. It is
 * none if no worker is alive, because then the disk is not the reason.
 */
export function mirrorsWithoutDisk({ nodes, mirrors }: Fleet): FleetMirror[] {
  if (nodes.length === 0) return [];
  return withoutDiskIn(nodes, unserved({ mirrors }));
}

/** Returns those of the mirrors whose disk is known, and is none of these workers'. */
export function withoutDiskIn(
  nodes: readonly FleetNode[],
  mirrors: readonly FleetMirror[],
): FleetMirror[] {
  const disks = new Set(nodes.flatMap(({ disks: own }) => Object.keys(own)));
  return mirrors.filter(({ disk }) => disk !== undefined && !disks.has(disk));
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
