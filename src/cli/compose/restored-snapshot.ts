/**
 * Marks a snapshot that was restored from a backup, which does not know what happened since. Until
 * a run has listed the platform, nothing that it has recorded counts: every run is full.
 */
import type { Summary } from '../../engine/report/run-summary.ts';
import type { Meta } from '../../snapshot/database/meta-table.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';

const name = 'copied-at';

/**
 * Returns when the backup was made, in milliseconds since the epoch; undefined: the snapshot was
 * not restored, or a full run has brought it up to date.
 */
export function copiedAt(meta: Meta): number | undefined {
  const text = meta.get(name);
  return text === undefined ? undefined : Number(text);
}

/** Removes the mark after a run that has listed the whole platform. */
export function clearRestored({ meta, transaction }: Snapshot, summary: Summary): void {
  const { mode, only, status, certificate } = summary;
  const sawAll = mode === 'full' && only === null && certificate.platform === true;
  const isWell = status === 'done' || status === 'rejected' || status === 'held';
  if (sawAll && isWell && copiedAt(meta) !== undefined) transaction(() => meta.drop(name));
}
