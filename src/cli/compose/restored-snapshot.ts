/**
 * A snapshot that was put back from a backup knows nothing of what happened since. Until a run has
 * listed the platform, what it has recorded stands in for nothing: every run is full.
 */
import type { Summary } from '../../engine/report/run-summary.ts';
import type { Meta } from '../../snapshot/database/meta-table.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';

const name = 'copied-at';

/** When the backup was made that this is; undefined once that is settled. */
export function copiedAt(meta: Meta): number | undefined {
  const text = meta.get(name);
  return text === undefined ? undefined : Number(text);
}

/** After a run that saw the whole platform there is nothing left of it. */
export function clearRestored({ meta, transaction }: Snapshot, summary: Summary): void {
  const { mode, only, status, certificate } = summary;
  const sawAll = mode === 'full' && only === null && certificate.platform === true;
  const isWell = status === 'done' || status === 'rejected' || status === 'held';
  if (sawAll && isWell && copiedAt(meta) !== undefined) transaction(() => meta.drop(name));
}
