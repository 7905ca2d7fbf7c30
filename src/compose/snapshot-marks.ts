/**
 * Reads and writes the mark of a snapshot that was restored from a backup, in which case it lacks
 * everything that happened since. Until a run has listed the platform, nothing recorded in it
 * counts, and every run is full.
 */
import type { Meta } from '../store/database/meta-table.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { Summary } from '../engine/report/run-summary.ts';

const copiedKey = 'copied-at';

/**
 * Returns when the backup was made, in milliseconds since the epoch, or undefined if the snapshot
 * was not restored or a full run has updated it since.
 */
export function copiedAt(meta: Meta): number | undefined {
  const text = meta.get(copiedKey);
  return text === undefined ? undefined : Number(text);
}

/** Removes the mark after a run that has listed the whole platform. */
export function clearRestored({ meta, transaction }: Snapshot, summary: Summary): void {
  const { mode, only, status, certificate } = summary;
  const sawAll = mode === 'full' && only === null && certificate.platform === true;
  const isWell = status === 'done' || status === 'rejected' || status === 'held';
  if (sawAll && isWell && copiedAt(meta) !== undefined) transaction(() => meta.drop(copiedKey));
}
