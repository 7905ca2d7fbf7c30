/**
 * This worker's part in the fleet: which mirrors it has to claim, and which it has to give away.
 *
 *   the mirror is placed        its home is    result
 *   here                        here, or none  claimed
 *   here                        another one    waits until that one has released it
 *   on another node             here           released once its run has ended
 *   on another node, nowhere    any other      waits
 *
 * What Redis knows is read after a change, which the heartbeat notices, and each half minute: for
 * all mirrors at once.
 */
import { readdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { counted } from '../../domain/values/counted.ts';
import { diskOf } from '../../store/database/snapshot-disk.ts';
import type { NodeHeartbeat } from '../queues/node-heartbeat.ts';
import type { Quick } from '../queues/redis-connections.ts';
import { createDiskLocks, type DiskLocks } from './disk-locks.ts';
import {
  type Fleet,
  mirrorsWithoutDisk,
  missingDiskWords,
  readFleet,
  recordOf,
  weigh,
} from './fleet-store.ts';
import { placeMirrors } from './place-mirrors.ts';

interface LocalMirror {
  mirror: string;
  snapshot: string;
}

/** How a mirror takes part in the placement. */
export interface Turns {
  /** Waits until this worker has to claim the mirror, or until `stop`. */
  turn(mirror: string, stop: AbortSignal): Promise<void>;
  /** Returns whether the mirror is known to be placed on another node, or to be at home there. */
  isOthers(mirror: string): boolean;
  /** Tells the others how many people the mirror has. Never throws. */
  counted(mirror: string, people: number): Promise<void>;
}

export interface FleetMember extends Turns {
  /** Joins the fleet with the mirrors that the folder shows now. */
  join(mirrors: readonly LocalMirror[]): void;
  /** Leaves the fleet, so that others wait for the mirrors of this worker. Never throws. */
  quit(): Promise<void>;
}

export interface MemberOptions {
  node: NodeHeartbeat;
  quick: Quick;
  clock: Clock;
  /** Returns random bytes as hexadecimal digits. */
  randomHex(bytes: number): string;
  host: string;
  note(line: string): void;
  /** Called when mirrors may have to be released: those that `isLent` returns true for. */
  moved(isLent: (mirror: string) => boolean): void;
}

/** How often Redis is asked without a change. */
const askMs = 30_000;

interface State extends MemberOptions {
  locks: DiskLocks;
  /** Whether a lock has to be looked for with each beat. */
  isWatching: boolean;
  since: number;
  mirrors: readonly LocalMirror[];
  fleet: Fleet | undefined;
  askedAt: number;
  isAsking: boolean;
  /** Whether something changed while Redis was asked. */
  isOutdated: boolean;
  hasQuit: boolean;
  placed: ReadonlyMap<string, string>;
  free: ReadonlySet<string>;
  waiting: Map<string, () => void>;
  people: Map<string, number>;
  said: string;
  /**
   * The last known disk of each mirror. A Redis that lost its data learns the disks again from the
   * workers that have them, and until then no other worker may begin with an empty snapshot.
   */
  disks: Map<string, string>;
  /** The mirrors whose disk was missing when that was last looked for. */
  missing: ReadonlySet<string>;
}

/** Creates the member. It joins with `join`. */
export function createFleetMember(options: MemberOptions): FleetMember {
  const { node, clock } = options;
  const since = clock.now();
  const state: State = {
    ...options,
    locks: createDiskLocks({ node: node.name, since, note: options.note }),
    isWatching: false,
    since,
    mirrors: [],
    fleet: undefined,
    askedAt: Number.NEGATIVE_INFINITY,
    isAsking: false,
    isOutdated: false,
    hasQuit: false,
    placed: new Map(),
    free: new Set(),
    waiting: new Map(),
    people: new Map(),
    said: '',
    disks: new Map(),
    missing: new Set(),
  };
  node.listen((changed) => {
    const isStale = clock.monotonic() - state.askedAt >= askMs;
    if (changed !== state.fleet?.changed || isStale || state.isWatching) void look(state);
  });
  return {
    join(mirrors) {
      state.mirrors = mirrors;
      tell(state);
    },
    async turn(mirror, stop) {
      const { free, waiting } = state;
      if (free.has(mirror) || stop.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(mirror, resolve);
      stop.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      if (waiting.get(mirror) === resolve) waiting.delete(mirror);
    },
    isOthers: (mirror) => !state.free.has(mirror) && state.fleet !== undefined,
    async counted(mirror, people) {
      const known = state.people.get(mirror);
      const stored = await weigh(options.quick, mirror, { people, known }).catch(() => undefined);
      if (stored !== undefined) state.people.set(mirror, stored);
    },
    async quit() {
      state.hasQuit = true;
      await node.quit().catch(() => undefined);
      state.locks.close();
    },
  };
}

/** Tells the others which mirrors this worker has on which disk, unless they know. */
function tell({ node, host, since, mirrors, randomHex, locks, hasQuit }: State): void {
  if (hasQuit) return;
  const { disks, folders } = surveyDisks(mirrors, randomHex);
  locks.hold(folders);
  const kept = Object.entries(disks).filter(([disk]) => !locks.left.has(disk));
  const left = [...locks.left];
  node.join(recordOf({ host, since, disks: Object.fromEntries(kept), left }));
}

/** Asks Redis, and acts on the answer. Never throws; the next beat asks again. */
async function look(state: State): Promise<void> {
  state.isOutdated = true;
  if (state.isAsking) return;
  state.isAsking = true;
  try {
    while (state.isOutdated) {
      state.isOutdated = false;
      const fleet = await readFleet(state.quick);
      // It is not to join again.
      if (state.hasQuit) return;
      become(state, fleet);
      // A snapshot may have been made, or a disk mounted.
      tell(state);
    }
  } catch {
    // Without Redis, everything stays as it is.
  } finally {
    state.isAsking = false;
  }
}

function become(state: State, fleet: Fleet): void {
  const { node, clock, waiting, people } = state;
  state.fleet = fleet;
  state.askedAt = clock.monotonic();
  state.isWatching = state.locks.check(fleet.nodes);
  const ours = fleet.mirrors
    .filter(({ isElsewhere }) => !isElsewhere)
    .map((mirror) => ({ ...mirror, disk: mirror.disk ?? state.disks.get(mirror.name) }));
  for (const { name, disk } of ours) if (disk !== undefined) state.disks.set(name, disk);
  const placed = placeMirrors(fleet.nodes, ours);
  state.placed = placed;
  const free = ours.filter(
    ({ name, home }) => placed.get(name) === node.name && (home ?? node.name) === node.name,
  );
  state.free = new Set(free.map(({ name }) => name));
  for (const mirror of fleet.mirrors) {
    if (mirror.people !== undefined) people.set(mirror.name, mirror.people);
  }
  say(state, fleet);
  const missing = mirrorsWithoutDisk(fleet);
  const news = missing.filter(({ name }) => !state.missing.has(name));
  state.missing = new Set(missing.map(({ name }) => name));
  for (const line of missingDiskWords(news)) state.note(`crm-mirror: ${line}`);
  for (const { name } of free) waiting.get(name)?.();
  state.moved((mirror) => (placed.get(mirror) ?? node.name) !== node.name);
}

/** Prints how the mirrors are shared, when that has changed. A worker that is alone has all. */
function say(state: State, { nodes, mirrors }: Fleet): void {
  const { placed, node, note, said } = state;
  if (nodes.length === 1 && said === '') return;
  const own = [...placed.values()].filter((name) => name === node.name).length;
  const isDraining = nodes.some((one) => one.name === node.name && one.isDraining);
  const who = `this one (${node.name}${isDraining ? ', draining' : ''})`;
  const line =
    `${counted(nodes.length, 'worker')} for ${counted(mirrors.length, 'mirror')}: ` +
    `${who} is to serve ${own}`;
  if (line === said) return;
  state.said = line;
  note(`crm-mirror: ${line}`);
}

interface Survey {
  /** Mirrors in a folder without an id are listed under ''. */
  disks: Record<string, { begun: string[]; bare: string[] }>;
  /** The folder of each disk that has an id. */
  folders: Map<string, string>;
}

function surveyDisks(
  mirrors: readonly LocalMirror[],
  randomHex: (bytes: number) => string,
): Survey {
  const disks: Survey['disks'] = {};
  const folders: Survey['folders'] = new Map();
  for (const [folder, own] of Map.groupBy(mirrors, ({ snapshot }) => dirname(snapshot))) {
    const id = diskOf(folder, randomHex);
    if (id !== undefined) folders.set(id, folder);
    const disk = disks[id ?? ''] ?? { begun: [], bare: [] };
    disks[id ?? ''] = disk;
    const files = new Set(namesIn(folder));
    for (const { mirror, snapshot } of own.toSorted((a, b) => (a.mirror < b.mirror ? -1 : 1))) {
      (files.has(basename(snapshot)) ? disk.begun : disk.bare).push(mirror);
    }
  }
  return { disks, folders };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
