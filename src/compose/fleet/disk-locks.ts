/**
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
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { renderProblem } from '../../domain/errors.ts';
import { isLeased, type Lease, takeLease } from '../../store/database/writer-lease.ts';
import type { FleetWorker } from './fleet.ts';

/** Creates the locks of the worker `node`, which started at `since`. None is held yet. */
export function createDiskLocks({
  node,
  since,
  note,
}: {
  node: string;
  since: number;
  note(line: string): void;
}) {
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
    note(`crm-mirror: ${words(folder, other.name, isLater)}`);
  };

  return {
    /** The ids of the disks that this worker has to leave. */
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

function words(folder: string, name: string, isLater: boolean): string {
  const isCopy = !existsSync(`${fileOf(folder, name)}-lease`);
  const what = isCopy
    ? `${folder} has the id of another disk, which ${name} has: one of the two is a copy`
    : `${folder} does not lock files between this worker and ${name}`;
  const then = isLater ? 'this worker serves no mirror there' : `${name} serves no mirror there`;
  const fix = isCopy
    ? 'delete .crm-mirror-disk in the copy, and restart its worker'
    : 'mount a file system that locks files (docs/fleet.md), and restart the workers';
  return renderProblem({ reason: `${what}; ${then}`, fix });
}
