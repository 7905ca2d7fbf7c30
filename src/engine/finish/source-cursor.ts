/**
 * Carries the cursor of a source from one run to the next: all source changes before it have been
 * processed. A cursor exists only while no work is left other than refused changes and invalid
 * records. Without a cursor, everything is read.
 *
 *   a run about all people begins       removes the cursor, so a killed run leaves none
 *   it succeeds, and nothing of the     stores the cursor of its own reading
 *   record type awaits approval or a
 *   window
 *   a fast run does not succeed         puts back the cursor that it began with
 *   a full run does not succeed         stores none: the remaining work is not among the changes
 *   a run about one person does not     invalidates the cursor, also for a run in progress, if it
 *   succeed                             had begun to act or kept that run from the person
 *   a person was locked at the start    stores no cursor: what it read about the person may be out
 *                                       of date
 */
import { storedJson } from '../../domain/stored-json.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { type Mode, type MirrorPart, onlyKey } from '../context/mirror-context.ts';
import type { RecordType } from '../../records/record-type.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { Status, FullCode } from '../report/run-summary.ts';
import { hasDeferred } from '../guard/plan-rules.ts';
import type { RunState } from '../context/run-state.ts';
import { countAwaitingApproval } from '../guard/holds.ts';

const storedCursor = storedJson<{ manner: string; cursor: string }>('the cursor of the source');
const spoilt = 'spoilt';
const nameOf = (kind: RecordTypeName): string => `cursor of ${kind}s`;

/** Returns the cursors, and why others have none. A run that writes removes them. */
export function loadCursors(
  { meta }: Snapshot,
  parts: readonly MirrorPart[],
  { mode, writes }: { mode: Mode; writes: boolean },
) {
  const cursors = new Map<RecordType, string>();
  const cursorless = new Map<RecordType, FullCode>();
  if (onlyKey({ mode }) !== undefined || mode === 'undo') return { cursors, cursorless };
  for (const { type, manner } of parts) {
    const text = meta.get(nameOf(type.name));
    if (writes && text !== undefined) meta.drop(nameOf(type.name));
    if (text === undefined) cursorless.set(type, 'no-cursor');
    else if (text === spoilt) cursorless.set(type, 'person-open');
    else {
      const found = storedCursor.decode(text);
      if (found.manner === manner) cursors.set(type, found.cursor);
      else cursorless.set(type, 'mapping-changed');
    }
  }
  return { cursors, cursorless };
}

/** Invalidates the cursor: a person with unfinished work may not change in the source again. */
export function invalidateCursor({ meta }: Snapshot, { name }: RecordType): void {
  meta.set(nameOf(name), spoilt);
}

/** Invalidates the cursors after a run about one person threw and had kept out another run. */
export function invalidateCursorsAfter(state: RunState): void {
  const { run, begun } = state;
  if (!run.writes || onlyKey(run) === undefined || !overlapped(state)) return;
  run.snapshot.transaction(() => begun.forEach(({ type }) => invalidateCursor(run.snapshot, type)));
}

/** Returns whether a run about all people was in progress at any time during this run. */
function overlapped({ run, endedBefore }: RunState): boolean {
  return run.locks.count().begun > endedBefore;
}

export function storeCursors(state: RunState, status: Status): void {
  const { run, begun, parts, known, cursors: since } = state;
  const { meta } = run.snapshot;
  const held = countAwaitingApproval(state);
  for (const { type, manner } of begun) {
    const name = nameOf(type.name);
    const isFree = guardNames.every((of) => guardRows[of].recordType !== type.name || !held[of]);
    const hasEnded = status === 'held' ? isFree : status === 'done' || status === 'rejected';
    const isWell = hasEnded && !hasDeferred(run, type.name);
    if (onlyKey(run) !== undefined) {
      if (!isWell && (state.plan || overlapped(state))) invalidateCursor(run.snapshot, type);
      continue;
    }
    const isWhole = parts.some((part) => part.type === type) && !state.supersededAtStart;
    const gained = isWhole && isWell ? known.get(type)?.cursor : undefined;
    const cursor = gained ?? (run.mode === 'fast' ? since.get(type) : undefined);
    if (manner === undefined || cursor === undefined || meta.get(name) === spoilt) continue;
    meta.set(name, storedCursor.encode({ manner, cursor }));
  }
}
