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
 * Finds out whether the file system of a folder locks files between the workers that share it. Each
 * worker holds a lock on a file of its own beside its snapshots, and looks for the files of others:
 *
 *   the file of a living worker is   result
 *   not there                        the two do not share the folder
 *   locked                           locks work between the two
 *   there, but not locked            locks do not work: the later worker serves no mirror there
 *
 * A worker that was killed counts as alive for some seconds, in which its lock is free. So a free
 * lock counts only if its worker has shown twice afterwards that it is alive: the first time may
 * have been before the lock was looked for.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { counted } from '../../domain/values/counted.ts';
import type { NodeHeartbeat } from '../queues/node-heartbeat.ts';
import type { Quick } from '../queues/redis-connections.ts';
import { type Fleet, missingSnapshots, readFleet, ownerOf, type FleetWorker } from './fleet.ts';
import { renderProblem } from '../../domain/errors.ts';
import { isLeased, type Lease, takeLease } from '../../store/database/writer-lease.ts';

export type FleetMember = ReturnType<typeof createFleetMember>;

interface MemberOptions {
  node: NodeHeartbeat;
  quick: Quick;
  clock: Clock;
  host: string;
  note(line: string): void;
  /** Called when mirrors may have to be released: those that `isLent` returns true for. */
  moved(isLent: (mirror: string) => boolean): void;
}

/** How often Redis is asked without a change. */
const askMs = 30_000;

/** Creates the member. It joins with `join`. */
export function createFleetMember(options: MemberOptions) {
  const { node, quick, clock, host, note, moved } = options;
  const since = clock.now();
  const locks = createFolderLocks(node.name, since, note);
  const waiting = new Map<string, () => void>();
  /**
   * The mirrors of which a worker has begun a snapshot. A Redis that lost its data learns of them
   * again from those that have it, and until then no other worker may begin with an empty one.
   */
  const begun = new Set<string>();
  /** Those whose snapshot was found missing here, and said to be. */
  const missed = new Set<string>();
  let mirrors: readonly { mirror: string; snapshot: string }[] = [];
  let changedAt: string | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let isAsking = false;
  let isOutdated = false;
  /** Whether a lock in a folder has to be looked for with each beat. */
  let isWatching = false;
  let hasQuit = false;
  let free: ReadonlySet<string> = new Set();
  let said = '';

  /** Tells the others which mirrors this worker may serve, unless they know. */
  const tell = (): void => {
    if (hasQuit) return;
    const able: string[] = [];
    const unable: string[] = [];
    const here: string[] = [];
    const folders = Map.groupBy(mirrors, ({ snapshot }) => dirname(snapshot));
    locks.hold(folders.keys());
    for (const [folder, all] of folders) {
      const files = new Set(namesIn(folder));
      const missing: string[] = [];
      for (const { mirror, snapshot } of all) {
        const isHere = files.has(basename(snapshot));
        if (isHere) here.push(mirror);
        else if (begun.has(mirror)) missing.push(mirror);
        const isAble = (isHere || !begun.has(mirror)) && !locks.left.has(folder);
        (isAble ? able : unable).push(mirror);
      }
      const news = missing.filter((mirror) => !missed.has(mirror));
      for (const mirror of news) missed.add(mirror);
      if (news.length === 0) continue;
      note(`crm-mirror: ${renderProblem(missingSnapshots(folder, news.toSorted()))}`);
    }
    const record = { host, since, mirrors: able.toSorted(), unable: unable.toSorted() };
    node.join(JSON.stringify(record), here.toSorted());
  };

  const become = (fleet: Fleet): void => {
    changedAt = fleet.changed;
    askedAt = clock.monotonic();
    isWatching = locks.check(fleet.nodes);
    const owners = new Map<string, string | undefined>();
    for (const { name, isBegun } of fleet.mirrors) {
      if (isBegun) begun.add(name);
      owners.set(name, ownerOf(name, fleet.nodes));
    }
    const own = fleet.mirrors.filter(({ name }) => owners.get(name) === node.name);
    const turns = own.filter(({ holder }) => holder === undefined || holder === node.name);
    free = new Set(turns.map(({ name }) => name));
    say(fleet, own.length);
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
        // A snapshot may have been made, or a folder mounted.
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

function createFolderLocks(node: string, since: number, note: (line: string) => void) {
  const held = new Map<string, Lease>();
  const left = new Set<string>();
  /** By folder and worker: its last sign of life, and how often a later one was seen. */
  let free = new Map<string, { beatAt: number; times: number }>();
  const said = new Set<string>();

  const watch = (folder: string, other: FleetWorker, before: typeof free): void => {
    const key = `${folder} ${other.name}`;
    if (said.has(key) || isLocked(folder, other.name)) return;
    const known = before.get(key) ?? { beatAt: other.beatAt, times: 0 };
    const times = other.beatAt > known.beatAt ? known.times + 1 : known.times;
    if (times < 2) {
      free.set(key, { beatAt: other.beatAt, times });
      return;
    }
    said.add(key);
    const isLater = since > other.since || (since === other.since && node > other.name);
    if (isLater) left.add(folder);
    const reason =
      `${folder} does not lock files between this worker and ${other.name}; ` +
      `${isLater ? 'this worker' : other.name} serves no mirror there`;
    const fix = 'mount a file system that locks files (docs/fleet.md), and restart the workers';
    note(`crm-mirror: ${renderProblem({ reason, fix })}`);
  };

  return {
    left,
    /** Takes the lock in each of these folders. Never throws. */
    hold(folders: Iterable<string>): void {
      for (const folder of folders) {
        if (held.has(folder)) continue;
        try {
          held.set(folder, takeLease(fileOf(folder, node)));
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
        for (const folder of held.keys()) watch(folder, other, before);
      }
      return free.size > 0;
    },
    close(): void {
      for (const [folder, lease] of held) {
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

/** Returns whether the worker holds its lock in the folder, or does not use the folder. */
function isLocked(folder: string, node: string): boolean {
  const file = fileOf(folder, node);
  try {
    return !existsSync(`${file}-lease`) || isLeased(file);
  } catch {
    // A file that is being created or removed.
    return true;
  }
}
