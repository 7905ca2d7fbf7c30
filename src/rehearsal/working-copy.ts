/** Copies the files of a mirror for a rehearsal into a folder that only this user can read. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { movePaused } from '../cli/compose/snapshot-marks.ts';
import type { Config } from '../config/config.ts';
import { Invalid } from '../domain/errors.ts';
import type { DoNotContactList } from '../do-not-contact/contact-list.ts';
import { readKey } from '../do-not-contact/list-key.ts';
import { backUp, type BackupPart, copyOfText } from '../snapshot/database/database-backup.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** The names of the folders: this text, and the process that made the copies. */
const prefix = 'crm-mirror-rehearsal-';
const abandonable = new RegExp(`^${prefix}(\\d+)-`);

/** The files that a mirror writes. */
type Files = Pick<Config, 'snapshot' | 'ledger'>;

/** A mirror that is open for reading, and its files. */
export interface Original {
  files: Files;
  snapshot: Snapshot;
  doNotContact: DoNotContactList;
}

/** The copies. `remove` deletes them. */
export interface WorkingCopy extends Files {
  remove(): void;
}

/**
 * Copies the snapshot and then the do-not-contact list with its key, so that the list is never
 * older than the snapshot expects. A file that does not exist yet is not copied. If anything fails,
 * deletes all copies and throws the error.
 */
export async function copyForRehearsal(
  original: Original,
  signal: AbortSignal,
): Promise<WorkingCopy> {
  removeAbandoned();
  const folder = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    chmodSync(folder, 0o700);
    const snapshot = join(folder, 'snapshot.sqlite');
    const ledger = { path: `${snapshot}-ledger`, keyFile: `${snapshot}-ledger-key` };
    await backUp(copiesOf(original, { snapshot, ledger }, signal));
    // A pause of the mirror does not hold up the rehearsal.
    if (existsSync(snapshot)) movePaused(snapshot, () => undefined);
    return { snapshot, ledger, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Removes the copies of rehearsals that were killed before they could do that. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = abandonable.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // Another user's: their next rehearsal removes it.
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

async function* copiesOf(
  { files, snapshot, doNotContact }: Original,
  copies: Files,
  signal: AbortSignal,
): AsyncGenerator<BackupPart> {
  if (existsSync(files.snapshot)) yield snapshot.copy(copies.snapshot, { signal });
  if (!existsSync(files.ledger.path)) return;
  yield doNotContact.copy(copies.ledger.path, signal);
  const key = readKey(files.ledger.keyFile);
  if (key === undefined) {
    throw new Invalid(`${files.ledger.keyFile}: the key of the do-not-contact list is not there`, {
      fix: 'put it back',
    });
  }
  yield copyOfText(`${key}\n`, copies.ledger.keyFile);
}
