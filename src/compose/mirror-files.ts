/**
 * Copies the files of a mirror in use; the pause of a mirror, and the mark of a restored snapshot,
 * which lacks what happened since: until a run has listed the platform, nothing recorded in it
 * counts.
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
 * Resumes if `next` returns undefined. Takes no lease, because a pause must work immediately.
 * `decision` is remembered unless the mirror was not paused and still is not.
 */
export function movePaused(
  file: string,
  next: (before: Paused | undefined) => Paused | undefined,
  decision?: Decision,
): { before: Paused | undefined; after: Paused | undefined } {
  return withoutLease(file, ({ meta, unaudited }) => {
    const before = pausedOf(meta);
    const after = next(before);
    stored.write(meta, after);
    if (decision && (before || after)) addDecision({ unaudited }, decision);
    return { before, after };
  });
}

/** Takes no lease. */
export function rememberDecision(file: string, decision: Decision): void {
  if (existsSync(file)) withoutLease(file, (snapshot) => addDecision(snapshot, decision));
}

function withoutLease<T>(file: string, act: (snapshot: Snapshot) => T): T {
  const snapshot = openSnapshot(file);
  try {
    return snapshot.transaction(() => act(snapshot));
  } finally {
    snapshot.close();
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

export interface MirrorFiles {
  snapshot: string;
  memory: Config['memory'];
}

/**
 * The memory comes last, so that it is never older than the snapshot expects; the key only if it
 * has a place. `at`: the time that the copy states. Throws Invalid if the memory cannot be used.
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

/** For this user only. Its name has the id of this process: those of killed ones are removed. */
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
