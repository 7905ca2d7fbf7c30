/**
 * Whether a mirror is still loaded for the first time: until a full run whose source named somebody
 * has come to its end.
 */
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { RunContext } from './run-context.ts';

/** Names the full run that has ended the first load. */
const loaded = 'loaded';

export function isFirstLoad({
  firstLoad,
  snapshot,
}: Pick<RunContext, 'firstLoad' | 'snapshot'>): boolean {
  return firstLoad === true || snapshot.meta.get(loaded) === undefined;
}

/** Ends the first load, if it still goes on. Within a transaction. */
export function endFirstLoad({ meta }: Snapshot, run: string): void {
  if (meta.get(loaded) === undefined) meta.set(loaded, run);
}

/** Left by the migration of a snapshot that has people: which default is not said yet. */
export const unsaid = 'unsaid';

/** Whether this run may only announce the default. */
export function mustAnnounce({
  snapshot,
  unstated,
}: Pick<RunContext, 'snapshot' | 'unstated'>): boolean {
  return unstated !== undefined && snapshot.meta.get(unsaid) !== undefined;
}
