/** Copies the files of a mirror for a rehearsal into a folder that only this user can read. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createTemporaryFolder } from '../../compose/temporary-folder.ts';
import { movePaused } from '../../compose/pause-mark.ts';
import type { Config } from '../../config/config.ts';
import { Invalid } from '../../domain/errors.ts';
import type { DoNotContactList } from '../../store/do-not-contact/contact-list.ts';
import { readKey } from '../../store/do-not-contact/list-key.ts';
import { backUp, type BackupPart, copyOfText } from '../../store/database/database-backup.ts';
import type { Snapshot } from '../../store/snapshot.ts';

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
  const folder = createTemporaryFolder('rehearsal');
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
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
