/**
 * Copies the files of a mirror while they are in use, and reads and writes two marks in the
 * snapshot: the pause of the mirror, and that the snapshot was restored from a backup. In that case
 * it lacks everything that happened since. Until a run has listed the platform, nothing recorded in
 * it counts, and every run is full.
 */
import { copiedAt, copiedKey, type Meta, storedFact } from '../store/database/meta-table.ts';
import { takeLease } from '../store/database/writer-lease.ts';
import { openSnapshot } from '../store/open-snapshot.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import { addDecision, type Decision } from '../store/memory/audit-trail.ts';
import type { Config } from '../config/config.ts';
import { Busy, codeOf } from '../domain/errors.ts';
import { instant } from './output/format-values.ts';
import { existsSync, readFileSync, rmSync, chmodSync, mkdtempSync, readdirSync } from 'node:fs';
import { boundMemory } from '../engine/context/do-not-contact-binding.ts';
import { type BackupPart, copyOfText } from '../store/database/database-backup.ts';
import { readMemory } from '../store/memory/memory.ts';
import { join } from 'node:path';
import { tmpdir } from 'node:os';

/** Removes the mark after a run that has listed the whole platform. */
export function clearRestored({ meta, transaction }: Snapshot, summary: Summary): void {
  const { mode, only, status, certificate } = summary;
  const sawAll = mode === 'full' && only === null && certificate.platform === true;
  const isWell = status === 'done' || status === 'rejected' || status === 'held';
  if (sawAll && isWell && copiedAt(meta) !== undefined) transaction(() => meta.drop(copiedKey));
}

/** A pause: when it began (epoch milliseconds), why ('' if nobody said), and who paused. */
export interface Paused {
  at: number;
  reason: string;
  by: string;
  /** Whether it also stops the run in progress. None begins while the mirror is paused. */
  isStop?: boolean | undefined;
}
const stored = storedFact<Paused>('paused', 'the pause');

/** Returns the pause of a mirror, or undefined if it is not paused. */
export function pausedOf(meta: Meta): Paused | undefined {
  return stored.read(meta);
}

/**
 * Pauses the mirror, or resumes it if `next` returns undefined. Returns the state before and after.
 * It takes no lease, because a pause must work immediately, especially during a run. `decision` is
 * remembered for the audit log, unless the mirror was not paused and still is not.
 */
export function movePaused(
  file: string,
  next: (before: Paused | undefined) => Paused | undefined,
  decision?: Decision,
): { before: Paused | undefined; after: Paused | undefined } {
  const { meta, unaudited, transaction, close } = openSnapshot(file);
  try {
    return transaction(() => {
      const before = pausedOf(meta);
      const after = next(before);
      stored.write(meta, after);
      if (decision && (before || after)) addDecision({ unaudited }, decision);
      return { before, after };
    });
  } finally {
    close();
  }
}

/** Remembers a decision for the audit log of a mirror that has a snapshot. It takes no lease. */
export function rememberDecision(file: string, decision: Decision): void {
  if (!existsSync(file)) return;
  const { unaudited, transaction, close } = openSnapshot(file);
  try {
    transaction(() => addDecision({ unaudited }, decision));
  } finally {
    close();
  }
}

/** Opens an existing snapshot for writing. Throws Busy if another process has the lease. */
export async function withSnapshot<T>(
  { snapshot: path }: Config,
  act: (snapshot: Snapshot) => T | Promise<T>,
): Promise<T> {
  const lease = takeLease(path);
  try {
    const snapshot = openSnapshot(path);
    try {
      snapshot.fence();
      return await act(snapshot);
    } finally {
      snapshot.close();
    }
  } finally {
    lease.release();
  }
}

/** Formats a pause, such as: paused since 2026-08-06T03:00:00Z by anna: works on the CRM */
export function sayPaused({ at, reason, by }: Paused): string {
  return `paused since ${instant(at)} by ${by}${reason === '' ? '' : `: ${reason}`}`;
}

/** Returns the document of a pause. */
export function tellPaused({ at, reason, by }: Paused) {
  return { since: instant(at), reason, by };
}

/** Throws Busy if the mirror is paused. */
export function refusePaused(meta: Meta, { mirror, file }: Config): void {
  const paused = pausedOf(meta);
  if (paused)
    throw new Busy(`${mirror} is ${sayPaused(paused)}`, { fix: `crm-mirror resume -c ${file}` });
}

/** The files of a mirror to copy. */
export interface MirrorFiles {
  snapshot: string;
  memory: Config['memory'];
}

/**
 * Copies the snapshot, and then the memory, so that the memory is never older than the snapshot
 * expects. A file that does not exist yet is not copied, nor is the key without a place for it.
 * `at`: the time that the copy of the snapshot states. Throws Invalid if the memory cannot be used.
 */
export async function* copiesOf(
  { config, snapshot }: { config: MirrorFiles; snapshot: Snapshot },
  to: { snapshot: string; memory: string; key?: string | undefined },
  { signal, at }: { signal: AbortSignal; at?: number },
): AsyncGenerator<BackupPart> {
  if (existsSync(config.snapshot))
    yield snapshot.copy(to.snapshot, { signal, ...(at !== undefined && { at }) });
  const memory = readMemory(config.memory, boundMemory(snapshot.meta));
  if (!memory) return;
  try {
    yield memory.copy(to.memory, signal);
    if (to.key !== undefined) yield copyOfText(readFileSync(config.memory.keyFile, 'utf8'), to.key);
  } finally {
    memory.close();
  }
}

/**
 * Creates a folder that only this user can read. Its name begins with `crm-mirror-`, `purpose`, and
 * the id of this process. Removes the folders of the same purpose whose process was killed before
 * it could do that.
 */
export function createTemporaryFolder(purpose: string): string {
  const prefix = `crm-mirror-${purpose}-`;
  const named = new RegExp(`^${prefix}(\\d+)-`);
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = named.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // Another user's: their next command removes it.
    }
  }
  const folder = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  chmodSync(folder, 0o700);
  return folder;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}
