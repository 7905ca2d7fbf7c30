/**
 * Up to where the changes of a source are known to be done: its cursor, kept in the snapshot from
 * one run to the next. There is one only while nobody waits for anything but the platform's refusal
 * or their own record; without one everything is read.
 *
 *   a run about everybody begins       takes it away, so that whoever is killed leaves none
 *   it ended well, and holds nothing   leaves the one of its own reading
 *   of the kind
 *   a fast one did not                 puts back the one it began with: it is read from there again
 *   a full one did not                 leaves none: what is left to do is not in the changes
 *   one about one person did not       spoils it, for whoever is under way as well, where it had
 *                                      begun to do something or took somebody from that one
 *   somebody was taken as it began     leaves none of its own: what was heard of her may be older
 */
import { z } from 'zod';
import type { RecordType } from '../../records/record-type.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { Status } from '../report/run-summary.ts';
import type { RunState } from '../context/run-state.ts';
import {
  onlyKey,
  type Mirror,
  type MirrorPart,
  type RunOptions,
} from '../context/mirror-context.ts';
import { countAwaitingApproval } from '../guard/guard-classes.ts';

const stored = z.object({ manner: z.string(), cursor: z.string() });
const spoilt = 'spoilt';
const nameOf = (kind: RecordTypeName): string => `cursor of ${kind}s`;

type Cursors = ReadonlyMap<RecordType, string>;

/** From where a run may read the changes, by kind. One that writes has it for itself. */
export function loadCursors(
  { snapshot: { meta } }: Pick<Mirror, 'snapshot'>,
  parts: readonly MirrorPart[],
  { mode, writes }: Pick<RunOptions, 'mode' | 'writes'>,
): Cursors {
  const taken = new Map<RecordType, string>();
  if (onlyKey({ mode }) !== undefined) return taken;
  for (const { type, manner } of parts) {
    const text = meta.get(nameOf(type.name));
    if (text === undefined) continue;
    if (writes) meta.drop(nameOf(type.name));
    if (text === spoilt) continue;
    const found = stored.parse(JSON.parse(text));
    if (found.manner === manner) taken.set(type, found.cursor);
  }
  return taken;
}

/** Somebody may wait whom no change of the source will name again. */
export function invalidateCursor(
  { meta }: Pick<Mirror['snapshot'], 'meta'>,
  { name }: RecordType,
): void {
  meta.set(nameOf(name), spoilt);
}

/** A run about one person that threw, which may have kept her from the one about everybody. */
export function invalidateCursorsAfter(state: RunState): void {
  const { run, begun } = state;
  if (!run.writes || onlyKey(run) === undefined || !overlapped(state)) return;
  run.snapshot.transaction(() => begun.forEach(({ type }) => invalidateCursor(run.snapshot, type)));
}

/** Whether a run about everybody was under way at any time of this one. */
function overlapped({ run, endedBefore }: RunState): boolean {
  return run.locks.count().begun > endedBefore;
}

function endedWell(state: RunState, { name }: RecordType, status: Status): boolean {
  if (status !== 'held') return status === 'done' || status === 'rejected';
  const held = countAwaitingApproval(state);
  return guardNames.every((guard) => guardRows[guard].recordType !== name || held[guard] === 0);
}

/** When a run that writes has ended. */
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
