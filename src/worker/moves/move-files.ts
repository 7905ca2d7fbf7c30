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
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Busy } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import { moveAside } from '../../store/database/snapshot-folder.ts';
import { takeLease } from '../../store/database/writer-lease.ts';

/** What a configuration says about files. */
export type Places = Pick<Config, 'snapshot' | 'ledger' | 'audit'>;

/** One file that moves. */
export interface MovedFile {
  name: 'snapshot' | 'ledger' | 'audit' | 'audit-key';
  path: string;
  /** Where its copy is until the move is over. */
  copy: string;
}

const markSchema = z.object({
  role: z.enum(['source', 'target']),
  /** The name of the target. */
  to: z.string(),
  /** Whether the target may have put copies in their place. */
  isPlaced: z.boolean(),
});
/** The mark beside the snapshot. */
export type MoveMark = z.infer<typeof markSchema>;

/** Returns the files of a mirror. The key of the do-not-contact list never moves. */
export function filesOf({ snapshot, ledger, audit }: Places): MovedFile[] {
  const file = (name: MovedFile['name'], path: string) => ({ name, path, copy: `${path}-moving` });
  const isKeyBeside = audit.keyFile === `${audit.path}-key`;
  return [
    file('ledger', ledger.path),
    file('audit', audit.path),
    ...(isKeyBeside ? [file('audit-key', audit.keyFile)] : []),
    file('snapshot', snapshot),
  ];
}

function markOf({ snapshot }: Places): string {
  return `${snapshot}-move`;
}

/** Stores the mark. */
export function writeMark(places: Places, mark: MoveMark): void {
  writeFileSync(markOf(places), JSON.stringify(mark), { mode: 0o600, flush: true });
}

/** Removes the copies, and the mark. */
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
  const mark = readMark(places);
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

/** Returns the mark. A mark that was not written wholly says that nothing was done yet. */
function readMark(places: Places): MoveMark {
  const nothing: MoveMark = { role: 'target', to: '', isPlaced: false };
  try {
    return markSchema.parse(parseJson(readFileSync(markOf(places), 'utf8')));
  } catch {
    return nothing;
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
