/**
 * The files of a mirror that move to another disk, their copies, and the mark that a move leaves
 * beside the snapshot for as long as it is not over:
 *
 *   the mark is of   Redis says that the mirror is   result
 *   any              on this disk                    the copies are removed
 *   the source       on another disk                 the own files are renamed
 *   the target       on another disk                 the copies are removed, and what was put in
 *                                                    their place
 *   any              on no known disk                everything stays, until that is known
 */
import {
  createReadStream,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { Busy, Invalid } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import type { Config } from '../../config/config.ts';
import { moveAside } from '../../store/database/snapshot-folder.ts';
import { takeLease } from '../../store/database/writer-lease.ts';
import { readMemory } from '../../store/memory/memory.ts';
import { backUp } from '../../store/database/database-backup.ts';
import { checkFile } from '../../store/database/file-check.ts';
import { lookInto, type Snapshot } from '../../store/snapshot.ts';
import { boundMemory } from '../../engine/context/do-not-contact-binding.ts';
import { copiesOf } from '../../compose/mirror-copies.ts';

export type Places = Pick<Config, 'snapshot' | 'memory'>;

export interface MovedFile {
  name: 'snapshot' | 'memory';
  path: string;
  /** Where its copy is until the move is over. */
  copy: string;
}

const markSchema = z.object({
  role: z.enum(['source', 'target']),
  to: z.string(),
  /** Whether the target may have put copies in their place. */
  isPlaced: z.boolean(),
});
export type MoveMark = z.infer<typeof markSchema>;

/** Returns the files of a mirror. The key of the memory never moves. */
export function filesOf(places: Places): MovedFile[] {
  return [fileIn(places, 'memory'), fileIn(places, 'snapshot')];
}

export function fileIn({ snapshot, memory }: Places, name: MovedFile['name']): MovedFile {
  const path = name === 'snapshot' ? snapshot : memory.path;
  return { name, path, copy: `${path}-moving` };
}

function markOf({ snapshot }: Places): string {
  return `${snapshot}-move`;
}

export function writeMark(places: Places, mark: MoveMark): void {
  writeFileSync(markOf(places), JSON.stringify(mark), { mode: 0o600, flush: true });
}

export function removeCopies(places: Places): void {
  for (const { copy } of filesOf(places)) {
    for (const end of ['', '.part', '.part-journal', '-journal', '-wal', '-shm']) {
      rmSync(copy + end, { force: true });
    }
  }
  rmSync(markOf(places), { force: true });
}

/** Removes what was put in place, the snapshot first, and then the copies and the mark. */
export function removePlaced(places: Places): void {
  for (const { path } of filesOf(places).toReversed()) rmSync(path, { force: true });
  removeCopies(places);
}

/** Renames the files of a mirror that has moved, and returns their new names. */
export function renameMoved(places: Places, to: string): string[] {
  const there = filesOf(places).toReversed();
  const names = there.flatMap(({ path }) => {
    if (!existsSync(path)) return [];
    const aside = `${path}.moved-to-${to}`;
    return [moveAside(path, (count) => (count === 1 ? aside : `${aside}-${count}`))];
  });
  removeCopies(places);
  return names;
}

/**
 * Finishes what an interrupted move has left, as the table above says. `isHere` says whether the
 * mirror is on this disk; undefined if that is not known. Returns whether nothing is left.
 */
export function finishMove(places: Places, isHere: boolean | undefined): boolean {
  if (!existsSync(markOf(places))) return true;
  // A mark that was not written wholly says that nothing was done yet.
  let mark: MoveMark = { role: 'target', to: '', isPlaced: false };
  try {
    mark = markSchema.parse(parseJson(readFileSync(markOf(places), 'utf8')));
  } catch {
    // It stays so.
  }
  const isUndecided = isHere === undefined && (mark.role === 'source' || mark.isPlaced);
  const lease = isUndecided ? undefined : takenLease(places);
  if (!lease) return false;
  try {
    if (isHere === true) removeCopies(places);
    else if (mark.role === 'source') renameMoved(places, mark.to);
    else if (mark.isPlaced) removePlaced(places);
    else removeCopies(places);
    return true;
  } finally {
    lease.release();
  }
}

function takenLease({ snapshot }: Places) {
  try {
    return takeLease(snapshot, 0);
  } catch (error) {
    if (error instanceof Busy) return undefined;
    throw error;
  }
}

/** What a copy has to be. */
export const manifestSchema = z.object({
  people: z.number(),
  entries: z.number(),
  files: z.array(
    z.object({
      name: z.enum(['snapshot', 'memory']),
      bytes: z.number(),
      sha256: z.string(),
    }),
  ),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** Copies the files, and returns what the original is. The caller holds the lease. */
export async function copyMirror(config: Config, signal: AbortSignal): Promise<Manifest> {
  const snapshot = lookInto(config.snapshot);
  if (!snapshot) throw new Invalid(`${config.snapshot}: there is no snapshot to move`);
  try {
    const counts = countsIn(snapshot, config.memory);
    const { copy: memory } = fileIn(config, 'memory');
    const to = { snapshot: fileIn(config, 'snapshot').copy, memory };
    await backUp(copiesOf({ config, snapshot }, to, { signal }));
    const files: Manifest['files'] = [];
    for (const { name, copy } of filesOf(config)) {
      if (!existsSync(copy)) continue;
      files.push({ name, bytes: statSync(copy).size, sha256: await hashOf(copy) });
    }
    return { ...counts, files };
  } finally {
    snapshot.close();
  }
}

/** Compares bytes, structure, and the numbers of people and entries. Throws Invalid. */
export async function proveCopy(config: Config, wanted: Manifest): Promise<void> {
  for (const { name, sha256 } of wanted.files) {
    const { copy } = fileIn(config, name);
    if ((await hashOf(copy)) !== sha256) throw new Invalid(`the copy of the ${name} is damaged`);
    await checkFile(copy);
  }
  const snapshot = lookInto(fileIn(config, 'snapshot').copy);
  if (!snapshot) throw new Invalid('the copy of the snapshot is empty');
  try {
    const place = { path: fileIn(config, 'memory').copy, keyFile: config.memory.keyFile };
    const { people, entries } = countsIn(snapshot, place);
    if (people === wanted.people && entries === wanted.entries) return;
    throw new Invalid(
      `the copy has ${people} people and ${entries} entries instead of ${wanted.people} and ${wanted.entries}`,
    );
  } finally {
    snapshot.close();
  }
}

function countsIn(snapshot: Snapshot, place: Config['memory']) {
  const memory = readMemory(place, boundMemory(snapshot.meta));
  try {
    return { people: snapshot.recorded.count('contact'), entries: memory?.list().size() ?? 0 };
  } finally {
    memory?.close();
  }
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
