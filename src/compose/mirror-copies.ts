/** Copies the files of a mirror while they are in use. */
import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { boundMemory } from '../engine/context/do-not-contact-binding.ts';
import { type BackupPart, copyOfText } from '../store/database/database-backup.ts';
import { readMemory } from '../store/memory/memory.ts';
import type { Snapshot } from '../store/snapshot.ts';

/** Where the copies go; without `key`, the key of the memory is not copied. */
export interface CopiedFiles {
  snapshot: string;
  memory: string;
  key?: string | undefined;
}

/**
 * Copies the snapshot, and then the memory, so that the memory is never older than the snapshot
 * expects. A file that does not exist yet is not copied. `at`: the time that the copy of the
 * snapshot states. Throws Invalid if the memory cannot be used.
 */
export async function* copiesOf(
  { config, snapshot }: { config: Pick<Config, 'snapshot' | 'memory'>; snapshot: Snapshot },
  to: CopiedFiles,
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
