/** Which version of a file this is, and whether it is still being written. */
import { statSync, type Stats } from 'node:fs';
import { type FileHandle, stat } from 'node:fs/promises';
import type { Clock } from '../../../domain/clock.ts';
import { Busy, Invalid } from '../../../domain/errors.ts';
import { unreadable } from './file-bytes.ts';

const QUIET_MS = 2_000;
const WAIT_MS = 60_000;

/** What tells one version of a file from another. */
export interface FileState {
  size: number;
  mtimeMs: number;
  ino: number;
}

export function sameState(a: FileState | undefined, b: FileState | undefined): boolean {
  return a?.size === b?.size && a?.mtimeMs === b?.mtimeMs && a?.ino === b?.ino;
}

/**
 * The state of the file once nobody has written to it for two seconds. Throws Busy after a
 * minute, Invalid when there is no readable file. A modification time far in the future says
 * nothing: there, two equal looks two seconds apart are the proof.
 */
export async function settled(
  path: string,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<FileState> {
  const until = clock.monotonic() + WAIT_MS;
  let previous: FileState | undefined;
  for (;;) {
    signal.throwIfAborted();
    const state = await look(path);
    const ageMs = clock.now() - state.mtimeMs;
    const unchanged = previous !== undefined && sameState(previous, state);
    if (ageMs >= QUIET_MS && (previous === undefined || unchanged)) return state;
    if (ageMs < -QUIET_MS && unchanged) return state;
    if (clock.monotonic() >= until) {
      throw new Busy(`${path}: the file is still being written → run again when it is done`);
    }
    previous = state;
    const restMs = ageMs < QUIET_MS ? QUIET_MS - ageMs : QUIET_MS;
    await clock.sleep(Math.ceil(Math.min(restMs, QUIET_MS)), signal);
  }
}

async function look(path: string): Promise<FileState> {
  const stats = await stat(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? 'a directory' : 'not a regular file';
    throw new Invalid(`${path}: this is ${what}; name a file in the configuration`);
  }
  return pick(stats);
}

/** The state of the file behind a path or a handle; undefined when it is gone. */
export async function stateOf(file: FileHandle | string): Promise<FileState | undefined> {
  const stats = typeof file === 'string' ? stat(file) : file.stat();
  return stats.then(pick, () => undefined);
}

/** The same at once: for what must not wait. */
function stateNow(path: string): FileState | undefined {
  try {
    return pick(statSync(path));
  } catch {
    return undefined;
  }
}

function pick({ size, mtimeMs, ino }: Stats): FileState {
  return { size, mtimeMs, ino };
}

/** A file of the same size and time is the same reading, wherever it lies. */
export function readingOf({ size, mtimeMs }: FileState): string {
  return `${size}-${mtimeMs}`;
}

/** Whether the file is now what was read of it, `latest`, under the name of that reading. */
export function isStill(path: string, latest: FileState | undefined, reading: string): boolean {
  const isLatest = latest !== undefined && readingOf(latest) === reading;
  return isLatest && sameState(stateNow(path), latest);
}
