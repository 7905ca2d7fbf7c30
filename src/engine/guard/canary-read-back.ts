/**
 * Reads the slice of a canary back once its wait is over, and judges what the platform shows. A
 * full run finds the slice in its listing. A fast run reads the people one by one, if they are not
 * too many; otherwise the next full run does it.
 */
import {
  type Canary,
  canaryBounds,
  type CanaryPolicy,
  type CanaryCounts,
  type CanaryTime,
  mended,
  waitedMs,
} from '../../domain/guards/canary.ts';
import { Interrupted, isExpected } from '../../domain/errors.ts';
import { guardRows } from '../../domain/guard-classes.ts';
import type { AskedClass } from '../../domain/guards/plan-rule.ts';
import type { Key, ObservedRow } from '../../domain/record.ts';
import type { RecordType } from '../../records/record-type.ts';
import { countApprovals } from '../../store/tables/approval-order.ts';
import type { SentChange } from '../../store/guards/guarded-changes.ts';
import { nowByBoth } from '../context/clock-difference.ts';
import { findingsOf, type RunState } from '../context/run-state.ts';
import { each } from '../context/work-in-parts.ts';
import { judgeCanary } from '../report/canary-text.ts';
import { moveCanary, openCanaries, openIn, putCanary } from './canary-book.ts';
import { sentOf } from './canary-slice.ts';

/** A fast run reads at most so many people; each costs a request or two. */
const readAtMost = 500;
const readAtOnce = 16;

/** Opens the canaries of a run, and reads back the slices whose wait is over. */
export async function readBackCanaries(state: RunState): Promise<void> {
  openCanaries(state);
  const { run, review } = state;
  if (!run.canary || !review.canaries) return;
  for (const [guard, canary] of openIn(review.canaries)) {
    const { recordType } = guardRows[guard];
    const type = state.parts.find((part) => part.type.name === recordType)?.type;
    if (canary.state === 'waiting' && type)
      await readBack(state, { guard, type, canary, policy: run.canary });
  }
}

interface ReadingBack {
  guard: AskedClass;
  type: RecordType;
  canary: Extract<Canary, { state: 'waiting' }>;
  policy: CanaryPolicy;
}

async function readBack(state: RunState, about: ReadingBack): Promise<void> {
  const { guard, type, canary, policy } = about;
  const { run } = state;
  if (waitBefore(state, about) < policy.waitMs) return;
  const sent = sentOf(run.snapshot, guard, canary);
  const shown = await shownOf(state, type, sent);
  if (typeof shown === 'string') {
    state.notes.push({ code: 'note', reason: `the canary is not read back yet: ${shown}` });
    return;
  }
  // A fast run may have the platform's time only from this reading.
  const afterMs = waitBefore(state, about);
  if (afterMs < policy.waitMs) return;
  const found = findingsIn(state, type, { sent, shown });
  const says = judgeCanary(guard, found, { ...policy, afterMs });
  const approvalsGiven = countApprovals(run.snapshot.meta);
  moveCanary(state, guard, { is: 'read', says, counts: found, approvalsGiven });
}

/** Returns how long the canary had waited when the run began, and stores times that were mended. */
function waitBefore(
  state: RunState,
  { guard, canary }: Pick<ReadingBack, 'guard' | 'canary'>,
): number {
  const begun = begunAt(state);
  const since = mended(canary.since, begun);
  if (since.at !== canary.since.at || since.platformAt !== canary.since.platformAt)
    putCanary(state, guard, { ...canary, since });
  return waitedMs(since, begun);
}

/** Returns when the run began, because everything that it has read is at least as new as that. */
function begunAt({ run }: RunState): CanaryTime {
  const { at, platformAt } = nowByBoth(run);
  const past = at - run.startedAt;
  return { at: run.startedAt, platformAt: platformAt === null ? null : platformAt - past };
}

type Shown = (key: Key) => readonly ObservedRow[];

/** Returns what the platform shows of a slice, or why that is not known. */
async function shownOf(
  state: RunState,
  type: RecordType,
  sent: readonly SentChange[],
): Promise<Shown | string> {
  const { run } = state;
  const { staging, recorded } = run.snapshot;
  const { listing } = findingsOf(state, type);
  if (listing?.complete) return (key) => staging.observed(type.name, key);
  if (run.mode !== 'fast') return `the listing of the ${type.name}s is not complete`;
  const { personRead } = type.capabilities;
  const keys = [...new Set(sent.map(({ key }) => key))];
  if (!personRead || keys.length > readAtMost)
    return `the next full run reads ${keys.length} ${type.name}s`;
  const rows = new Map<Key, ObservedRow[]>();
  try {
    await each(keys, readAtOnce, async (key) => {
      const id = recorded.get(type.name, key)?.id;
      rows.set(key, await personRead.read({ key, id }, run.stop));
    });
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return error.message;
  }
  return (key) => rows.get(key) ?? [];
}

/** Counts the records of a slice by what is wrong with them; each counts once in a bound. */
function findingsIn(
  { run: { snapshot } }: RunState,
  type: RecordType,
  { sent, shown }: { sent: readonly SentChange[]; shown: Shown },
): CanaryCounts {
  const found: CanaryCounts = { unsubscribed: 0, refused: 0, drift: 0, of: 0 };
  for (const [key, changes] of Map.groupBy(sent, (change) => change.key)) {
    const rows = shown(key);
    const recorded = snapshot.recorded.get(type.name, key);
    const all = changes.map((change) =>
      change.state === 'rejected' ? 'refused' : type.readBack(change, { rows, recorded }),
    );
    found.of += 1;
    for (const bound of canaryBounds) if (all.includes(bound)) found[bound] += 1;
  }
  return found;
}
