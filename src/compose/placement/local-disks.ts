/** Finds out on which disk of this machine the snapshot of each mirror is, or would be. */
import { readdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { diskOf } from '../../store/database/snapshot-disk.ts';

export interface LocalMirror {
  mirror: string;
  snapshot: string;
}

interface Survey {
  /** Mirrors in a folder without an id are listed under ''. */
  disks: Record<string, { begun: string[]; bare: string[] }>;
  /** The folder of each disk that has an id. */
  folders: Map<string, string>;
}

export function surveyDisks(
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
    for (const { mirror, snapshot } of own.toSorted(byMirror)) {
      (files.has(basename(snapshot)) ? disk.begun : disk.bare).push(mirror);
    }
  }
  return { disks, folders };
}

function byMirror(a: LocalMirror, b: LocalMirror): number {
  return a.mirror < b.mirror ? -1 : 1;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
