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
import { z } from 'zod';
import type { RecordType } from '../../records/record-type.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { Status, FullCode } from '../report/run-summary.ts';
import { hasDeferred } from '../guard/change-windows.ts';
import type { RunState, Started } from '../context/run-state.ts';
import {
  type Mirror,
  type MirrorPart,
  onlyKey,
  type RunOptions,
} from '../context/mirror-context.ts';
import { countAwaitingApproval } from '../guard/plan-approval.ts';

const stored = z.object({ manner: z.string(), cursor: z.string() });
const spoilt = 'spoilt';
const nameOf = (kind: RecordTypeName): string => `cursor of ${kind}s`;

type Cursors = Pick<Started, 'cursors' | 'cursorless'>;

/**
 * Returns the cursors by record type, and why others have none. A run that writes removes them from
 * the snapshot.
 */
export function loadCursors(
  { snapshot: { meta } }: Pick<Mirror, 'snapshot'>,
  parts: readonly MirrorPart[],
  { mode, writes }: Pick<RunOptions, 'mode' | 'writes'>,
): Cursors {
  const cursors = new Map<RecordType, string>();
  const cursorless = new Map<RecordType, FullCode>();
  if (onlyKey({ mode }) !== undefined || mode === 'undo') return { cursors, cursorless };
  for (const { type, manner } of parts) {
    const text = meta.get(nameOf(type.name));
    if (writes && text !== undefined) meta.drop(nameOf(type.name));
    const found = cursorIn(text, manner);
    if ('cursor' in found) cursors.set(type, found.cursor);
    else cursorless.set(type, found.none);
  }
  return { cursors, cursorless };
}

/** Returns the stored cursor, or why it cannot be used. */
function cursorIn(
  text: string | undefined,
  manner: string | undefined,
): { cursor: string } | { none: FullCode } {
  if (text === undefined) return { none: 'no-cursor' };
  if (text === spoilt) return { none: 'person-open' };
  const found = stored.parse(JSON.parse(text));
  return found.manner === manner ? { cursor: found.cursor } : { none: 'mapping-changed' };
}

/**
 * Invalidates the cursor, because a person with unfinished work may have no later change in the
 * source.
 */
export function invalidateCursor(
  { meta }: Pick<Mirror['snapshot'], 'meta'>,
  { name }: RecordType,
): void {
  meta.set(nameOf(name), spoilt);
}

/**
 * Invalidates the cursors if a run about one person threw and may have kept another run from the
 * person.
 */
export function invalidateCursorsAfter(state: RunState): void {
  const { run, begun } = state;
  if (!run.writes || onlyKey(run) === undefined || !overlapped(state)) return;
  run.snapshot.transaction(() => begun.forEach(({ type }) => invalidateCursor(run.snapshot, type)));
}

/** Returns whether a run about all people was in progress at any time during this run. */
function overlapped({ run, endedBefore }: RunState): boolean {
  return run.locks.count().begun > endedBefore;
}

function endedWell(state: RunState, { name }: RecordType, status: Status): boolean {
  if (hasDeferred(state.run, name)) return false;
  if (status !== 'held') return status === 'done' || status === 'rejected';
  const held = countAwaitingApproval(state);
  return guardNames.every((guard) => guardRows[guard].recordType !== name || held[guard] === 0);
}

/** Stores the cursors when a run that writes has ended. */
export function storeCursors(state: RunState, status: Status): void {
  const { run, begun, parts, known, cursors: since } = state;
  const { meta } = run.snapshot;
  for (const { type, manner } of begun) {
    const name = nameOf(type.name);
    const isWell = endedWell(state, type, status);
    if (onlyKey(run) !== undefined) {
      if (!isWell && (state.plan || overlapped(state))) invalidateCursor(run.snapshot, type);
      continue;
    }
    const isWhole = parts.some((part) => part.type === type) && !state.supersededAtStart;
    const gained = isWhole && isWell ? known.get(type)?.cursor : undefined;
    const cursor = gained ?? (run.mode === 'fast' ? since.get(type) : undefined);
    if (manner === undefined || cursor === undefined || meta.get(name) === spoilt) continue;
    meta.set(name, JSON.stringify({ manner, cursor }));
  }
}
