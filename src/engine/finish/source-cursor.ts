/**
 * Carries the cursor of a source from one run to the next: all source changes before it have been
 * processed. A cursor exists only while no work is left other than refused changes and invalid
 * records. Without a cursor, everything is read.
 *
 *   a run about all people begins       removes the cursor, so a killed run leaves none
 *   it succeeds, and nothing of people  stores the cursor of its own reading
 *   awaits approval or a window
 *   a fast run does not succeed         puts back the cursor that it began with
 *   a full run does not succeed         stores none: the remaining work is not among the changes
 *   a run about one person does not     invalidates the cursor, also for a run in progress, if it
 *   succeed                             had begun to act or kept that run from the person
 *   a person was locked at the start    stores no cursor: what it read about the person may be out
 *                                       of date
 */
import { storedJson } from '../../domain/stored-json.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { type Mode, type MirrorContacts, onlyKey } from '../context/mirror-context.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import type { Status } from '../report/run-summary.ts';
import { hasDeferred } from '../judge/plan-rules.ts';
import { findingsOf, type RunResults, type SourceCursor } from '../context/run-results.ts';
import { countAwaitingApproval } from '../judge/holds.ts';

const storedCursor = storedJson<{ manner: string; cursor: string }>('the cursor of the source');
const spoilt = 'spoilt';
const name = 'cursor of contacts';

/** Returns the cursor of the CRM, or why it has none. A run that writes removes it. */
export function loadCursor(
  { meta }: Snapshot,
  contacts: MirrorContacts | undefined,
  { mode, writes }: { mode: Mode; writes: boolean },
): SourceCursor {
  if (!contacts || onlyKey({ mode }) !== undefined || mode === 'undo') return {};
  const text = meta.get(name);
  if (writes && text !== undefined) meta.drop(name);
  if (text === undefined) return { without: 'no-cursor' };
  if (text === spoilt) return { without: 'person-open' };
  const { manner, cursor } = storedCursor.decode(text);
  return manner === contacts.manner ? { cursor } : { without: 'mapping-changed' };
}

/** A person with unfinished work may not change in the source again. */
export function invalidateCursor({ meta }: Snapshot): void {
  meta.set(name, spoilt);
}

/** Invalidates the cursor if a run about one person threw and had kept out another run. */
export function invalidateCursorAfter(results: RunResults): void {
  const { run, begun } = results;
  if (!run.writes || onlyKey(run) === undefined || !overlapped(results)) return;
  if (begun.contacts) run.snapshot.transaction(() => invalidateCursor(run.snapshot));
}

/** Returns whether a run about all people was in progress at any time during this run. */
function overlapped({ run, endedBefore }: RunResults): boolean {
  return run.locks.count().begun > endedBefore;
}

export function storeCursor(results: RunResults, status: Status): void {
  const { run, begun, parts, known, cursor: since } = results;
  if (!begun.contacts) return;
  const { meta } = run.snapshot;
  const held = countAwaitingApproval(results);
  const isFree = guardNames.every((of) => guardRows[of].recordType !== 'contact' || !held[of]);
  const hasEnded = status === 'held' ? isFree : status === 'done' || status === 'rejected';
  const isWell = hasEnded && !hasDeferred(run, 'contact');
  if (onlyKey(run) !== undefined) {
    if (!isWell && (results.plan || overlapped(results))) invalidateCursor(run.snapshot);
    return;
  }
  const isWhole = parts.contacts !== undefined && !results.supersededAtStart;
  const gained = isWhole && isWell ? findingsOf(known, 'contact').cursor : undefined;
  const cursor = gained ?? (run.mode === 'fast' ? since.cursor : undefined);
  const { manner } = begun.contacts;
  if (manner === undefined || cursor === undefined || meta.get(name) === spoilt) return;
  meta.set(name, storedCursor.encode({ manner, cursor }));
}
