/**
 * This worker's part in the fleet: which mirrors it has to lock, and which it has to give away.
 *
 *   ownerOf (fleet.ts)      the lock is held by      result
 *   this worker             this one, or nobody      it is this worker's turn
 *   this worker             another process          waits until that one has released it
 *   another worker          this one                 released once its run has ended
 *   another one, or none    any other                waits
 *   none                    this one                 stays: nobody else can serve it
 *
 * What Redis knows is read after a change, which the heartbeat notices, and each half minute: for
 * all mirrors at once.
 *
 * Finds out whether the file system of a disk locks files between the workers that share it. Each
 * worker holds a lock on a file of its own on the disk, and looks for the locks of the others:
 *
 *   the file of a living worker is   result
 *   locked                           locks work between the two
 *   there, but not locked            locks do not work: the worker that came later leaves the disk
 *   not there                        the disk has the id of another one, of which it is a copy: the
 *                                    same
 *
 * A worker that was killed counts as alive for some seconds, in which its lock is free. So a free
 * lock counts only if its worker has shown twice afterwards that it is alive: the first time may
 * have been before the lock was looked for.
 */
import { readdirSync, existsSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { counted } from '../../domain/values/counted.ts';
import { diskOf } from '../../store/database/snapshot-folder.ts';
import type { NodeHeartbeat } from '../queues/node-heartbeat.ts';
import type { Quick } from '../queues/redis-connections.ts';
import {
  type Fleet,
  mirrorsWithoutDisk,
  missingDiskWords,
  readFleet,
  ownerOf,
  type FleetWorker,
} from './fleet.ts';
import { renderProblem } from '../../domain/errors.ts';
import { isLeased, type Lease, takeLease } from '../../store/database/writer-lease.ts';

export type FleetMember = ReturnType<typeof createFleetMember>;

interface MemberOptions {
  node: NodeHeartbeat;
  quick: Quick;
  clock: Clock;
  randomHex(bytes: number): string;
  host: string;
  note(line: string): void;
  /** Called when mirrors may have to be released: those that `isLent` returns true for. */
  moved(isLent: (mirror: string) => boolean): void;
}

/** How often Redis is asked without a change. */
const askMs = 30_000;

/** Creates the member. It joins with `join`. */
export function createFleetMember(options: MemberOptions) {
  const { node, quick, clock, randomHex, host, note, moved } = options;
  const since = clock.now();
  const locks = createDiskLocks(node.name, since, note);
  const waiting = new Map<string, () => void>();
  /**
   * A Redis that lost its data learns the disks again from the workers that have them, and until
   * then no other worker may begin with an empty snapshot.
   */
  const disks = new Map<string, string>();
  let mirrors: readonly { mirror: string; snapshot: string }[] = [];
  let changedAt: string | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let isAsking = false;
  let isOutdated = false;
  /** Whether a lock on a disk has to be looked for with each beat. */
  let isWatching = false;
  let hasQuit = false;
  let free: ReadonlySet<string> = new Set();
  let said = '';
  let missing: ReadonlySet<string> = new Set();

  /** Tells the others which mirrors this worker has on which disk, unless they know. */
  const tell = (): void => {
    if (hasQuit) return;
    const own: Record<string, string[]> = {};
    const begun: Record<string, string> = {};
    const folders = new Map<string, string>();
    for (const [folder, all] of Map.groupBy(mirrors, ({ snapshot }) => dirname(snapshot))) {
      const id = diskOf(folder, randomHex);
      if (id !== undefined) folders.set(id, folder);
      if (locks.left.has(id ?? '')) continue;
      own[id ?? ''] = [...(own[id ?? ''] ?? []), ...all.map(({ mirror }) => mirror)].toSorted();
      const files = new Set(id === undefined ? [] : namesIn(folder));
      for (const { mirror, snapshot } of all.toSorted((a, b) => (a.mirror < b.mirror ? -1 : 1))) {
        if (files.has(basename(snapshot))) begun[mirror] = `${id}@${host}`;
      }
    }
    locks.hold(folders);
    node.join(JSON.stringify({ host, since, disks: own, left: [...locks.left] }), begun);
  };

  const become = (fleet: Fleet): void => {
    changedAt = fleet.changed;
    askedAt = clock.monotonic();
    isWatching = locks.check(fleet.nodes);
    const owners = new Map<string, string | undefined>();
    for (const { name, disk } of fleet.mirrors) {
      if (disk !== undefined) disks.set(name, disk);
      owners.set(name, ownerOf({ name, disk: disks.get(name) }, fleet.nodes));
    }
    const own = fleet.mirrors.filter(({ name }) => owners.get(name) === node.name);
    const turns = own.filter(({ holder }) => holder === undefined || holder === node.name);
    free = new Set(turns.map(({ name }) => name));
    say(fleet, own.length);
    const without = mirrorsWithoutDisk(fleet);
    const news = without.filter(({ name }) => !missing.has(name));
    missing = new Set(without.map(({ name }) => name));
    for (const line of missingDiskWords(news)) note(`crm-mirror: ${line}`);
    for (const name of free) waiting.get(name)?.();
    moved((mirror) => (owners.get(mirror) ?? node.name) !== node.name);
  };

  /** Prints how the mirrors are shared, when that has changed. A worker that is alone has all. */
  const say = (fleet: Fleet, own: number): void => {
    if (fleet.nodes.length === 1 && said === '') return;
    const isDraining = fleet.nodes.some((one) => one.name === node.name && one.isDraining);
    const who = `this one (${node.name}${isDraining ? ', draining' : ''})`;
    const all = `${counted(fleet.nodes.length, 'worker')} for ${counted(fleet.mirrors.length, 'mirror')}`;
    const line = `${all}: ${who} is to serve ${own}`;
    if (line !== said) note(`crm-mirror: ${line}`);
    said = line;
  };

  /** Asks Redis, and acts on the answer. Never throws; the next beat asks again. */
  const look = async (): Promise<void> => {
    isOutdated = true;
    if (isAsking) return;
    isAsking = true;
    try {
      while (isOutdated) {
        isOutdated = false;
        const fleet = await readFleet(quick);
        // It is not to join again.
        if (hasQuit) return;
        become(fleet);
        // A snapshot may have been made, or a disk mounted.
        tell();
      }
    } catch {
      // Without Redis, everything stays as it is.
    } finally {
      isAsking = false;
    }
  };

  node.listen((changed) => {
    const isStale = clock.monotonic() - askedAt >= askMs;
    if (changed !== changedAt || isStale || isWatching) void look();
  });
  return {
    join(shown: typeof mirrors): void {
      mirrors = shown;
      tell();
    },
    /** Waits until it is this worker's turn to lock the mirror, or until `stop`. */
    async turn(mirror: string, stop: AbortSignal): Promise<void> {
      if (free.has(mirror) || stop.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(mirror, resolve);
      stop.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      if (waiting.get(mirror) === resolve) waiting.delete(mirror);
    },
    /** Returns whether the mirror is known to be another worker's. */
    isOthers: (mirror: string): boolean => changedAt !== undefined && !free.has(mirror),
    /** Leaves the fleet, so that others wait for the mirrors of this worker. Never throws. */
    async quit(): Promise<void> {
      hasQuit = true;
      await node.quit().catch(() => undefined);
      locks.close();
    },
  };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function createDiskLocks(node: string, since: number, note: (line: string) => void) {
  const held = new Map<string, { folder: string; lease: Lease }>();
  const left = new Set<string>();
  /** By disk and worker: its last sign of life, and how often a later one was seen. */
  let free = new Map<string, { beatAt: number; times: number }>();
  const said = new Set<string>();

  const watch = (disk: string, other: FleetWorker, before: typeof free): void => {
    const folder = held.get(disk)?.folder;
    const key = `${disk} ${other.name}`;
    if (folder === undefined || said.has(key) || isLocked(folder, other.name)) return;
    const known = before.get(key) ?? { beatAt: other.beatAt, times: 0 };
    const times = other.beatAt > known.beatAt ? known.times + 1 : known.times;
    if (times < 2) {
      free.set(key, { beatAt: other.beatAt, times });
      return;
    }
    said.add(key);
    const isLater = since > other.since || (since === other.since && node > other.name);
    if (isLater) left.add(disk);
    const isCopy = !existsSync(`${fileOf(folder, other.name)}-lease`);
    const [what, fix] = isCopy
      ? [
          `has the id of another disk, which ${other.name} has: one of the two is a copy`,
          'delete .crm-mirror-disk in the copy, and restart its worker',
        ]
      : [
          `does not lock files between this worker and ${other.name}`,
          'mount a file system that locks files (docs/fleet.md), and restart the workers',
        ];
    const then = `${isLater ? 'this worker' : other.name} serves no mirror there`;
    note(`crm-mirror: ${renderProblem({ reason: `${folder} ${what}; ${then}`, fix })}`);
  };

  return {
    left,
    /** Takes the lock on each of these folders, by the id of its disk. Never throws. */
    hold(folders: ReadonlyMap<string, string>): void {
      for (const [disk, folder] of folders) {
        if (held.has(disk)) continue;
        try {
          held.set(disk, { folder, lease: takeLease(fileOf(folder, node)) });
        } catch {
          // What is wrong with the folder is said when a mirror of it is opened.
        }
      }
    },
    /** Looks for the locks of the other workers. Returns whether a free one has to be watched. */
    check(workers: readonly FleetWorker[]): boolean {
      const before = free;
      free = new Map();
      for (const other of workers) {
        if (other.name === node) continue;
        for (const disk of [...Object.keys(other.disks), ...other.left]) watch(disk, other, before);
      }
      return free.size > 0;
    },
    close(): void {
      for (const { folder, lease } of held.values()) {
        lease.release();
        rmSync(`${fileOf(folder, node)}-lease`, { force: true });
      }
      held.clear();
    },
  };
}

function fileOf(folder: string, node: string): string {
  return join(folder, `.crm-mirror-${node}`);
}

function isLocked(folder: string, node: string): boolean {
  try {
    return isLeased(fileOf(folder, node));
  } catch {
    // A file that is being created or removed.
    return true;
  }
}
