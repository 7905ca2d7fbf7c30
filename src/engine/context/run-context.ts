/** What every step of a run needs. A step reads it and never writes to it. */
import type { RecordTypeName } from '../../domain/record.ts';
import type { LearnedFacts } from './learned-facts.ts';
import type { GroupCommit } from './group-commit.ts';
import type { JournaledChange } from '../../domain/change.ts';
import { type Mirror, onlyKey, type RunOptions } from './mirror-context.ts';

/** Everything within a run that its steps share. */
export interface RunContext extends Mirror, RunOptions {
  id: string;
  /** By our clock; milliseconds since the epoch. */
  startedAt: number;
  /** What is known of the platform itself. */
  facts: LearnedFacts;
  /** Writes to the snapshot what others write at the same time. */
  groupCommit: GroupCommit;
  /** Only opt-outs are planned. */
  quarantined: boolean;
  /** The platform's clock, once it was asked for: its time, and ours that never jumps, then. */
  platformTime: { isAsked: boolean; read?: { date: number; monotonic: number } };
}

/** The latest time that it may be: either clock may be slow, or was set back. */
export function latestNow({ clock, platformNow }: Pick<Mirror, 'clock' | 'platformNow'>): number {
  return Math.max(clock.now(), platformNow() ?? 0);
}

/** What the run has to find out about: not what others are at. */
export function openIn(run: RunContext, kind: RecordTypeName): JournaledChange[] {
  const only = onlyKey(run);
  const open = run.snapshot.journal.open(kind);
  if (only !== undefined) return open.filter(({ key }) => key === only);
  const others = run.locks.others(run.id);
  return open.filter((change) => !others.includes(change.run));
}

/** Knowledge of this run counts for so long; what is older is looked at again before an opt-in. */
const freshMs = 15 * 60_000;

/** Seen in this run, and not too long ago. */
export function isFresh(run: RunContext, at: number): boolean {
  return at >= run.startedAt && run.clock.now() - at < freshMs;
}
