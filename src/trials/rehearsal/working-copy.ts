/** Copies the files of a mirror for a rehearsal into a folder that only this user can read. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { copiesOf } from '../../compose/mirror-copies.ts';
import { movePaused } from '../../compose/pause-mark.ts';
import { createTemporaryFolder } from '../../compose/temporary-folder.ts';
import type { Config } from '../../config/config.ts';
import { backUp } from '../../store/database/database-backup.ts';

/** The copies. `remove` deletes them. */
export interface WorkingCopy extends Pick<Config, 'snapshot' | 'memory'> {
  remove(): void;
}

/**
 * Copies the snapshot, and the memory with its key. If anything fails, deletes all copies and
 * throws the error.
 */
export async function copyForRehearsal(
  original: Parameters<typeof copiesOf>[0],
  signal: AbortSignal,
): Promise<WorkingCopy> {
  const folder = createTemporaryFolder('rehearsal');
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const snapshot = join(folder, 'snapshot.sqlite');
    const memory = { path: `${snapshot}-memory`, keyFile: `${snapshot}-memory-key` };
    const to = { snapshot, memory: memory.path, key: memory.keyFile };
    await backUp(copiesOf(original, to, { signal }));
    // A pause of the mirror does not hold up the rehearsal.
    if (existsSync(snapshot)) movePaused(snapshot, () => undefined);
    return { snapshot, memory, remove };
  } catch (error) {
    remove();
    throw error;
  }
}
