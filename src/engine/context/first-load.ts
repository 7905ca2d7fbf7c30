/**
 * Tracks the first load of a mirror. It ends with the first completed full run whose source
 * contained at least one person.
 */
import type { Snapshot } from '../../store/snapshot.ts';
import type { Mirror } from './mirror-context.ts';
import type { RunContext } from './run-context.ts';

/** The meta key of the full run that ended the first load. */
const loaded = 'loaded';

/** Returns whether the mirror is still being loaded for the first time. */
export function isFirstLoad({
  firstLoad,
  snapshot,
}: Pick<RunContext, 'firstLoad' | 'snapshot'>): boolean {
  return firstLoad === true || snapshot.meta.get(loaded) === undefined;
}

/** Returns whether no full run of a mirror with people has ended yet. */
export function isUnloaded({ parts, snapshot }: Pick<Mirror, 'parts' | 'snapshot'>): boolean {
  return (
    parts.some(({ type }) => type.name === 'contact') && isFirstLoad({ snapshot, firstLoad: false })
  );
}

/** Ends the first load if it has not ended yet. Must be called within a transaction. */
export function endFirstLoad({ meta }: Snapshot, run: string): void {
  if (meta.get(loaded) === undefined) meta.set(loaded, run);
}
