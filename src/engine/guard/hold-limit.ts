/**
 * For how long a stated opt-out is held, at most: `holdFor`, by whichever clock shows that more has
 * passed, ours or the platform's. A late opt-out is worse than one that has to be taken back.
 *
 *   our clock is put back       the platform's goes on; what lies ahead of ours counts from now
 *   the platform does not say   ours counts alone
 *   a backup is restored        the times in it are absolute: what is over is over
 */
import { guardRows, timedGuards, type GuardClass } from '../../domain/guard-classes.ts';
import type { Ends, HeldSince } from '../../snapshot/tables/approval-holds.ts';
import { yielding } from '../plan/commit-plan.ts';
import type { RunState } from '../context/run-state.ts';
import { addHolds } from './held-changes.ts';
import type { RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';

/** Before the guards of a run are asked: what time it is, where anything is held for a time. */
export async function beginHolds({ run, parts }: RunState): Promise<void> {
  if (onlyKey(run) !== undefined) return;
  const { awaitingApproval, transaction } = run.snapshot;
  for (const guard of timedGuards) {
    const isPart = parts.some(({ type }) => type.name === guardRows[guard].recordType);
    if (!isPart || awaitingApproval.oldest(guard) === undefined) continue;
    await run.platformTime.ask();
    if (run.writes) transaction(() => awaitingApproval.mend(guard, sinceNow(run)));
  }
}

/** Has what a run withholds held in later runs too, from now on. */
export async function holdWithheld(run: RunContext): Promise<void> {
  const { guarded } = run.snapshot;
  if ([...timedGuards].some((guard) => guarded.countWithheld(guard) > 0)) {
    await run.platformTime.ask();
  }
  await yielding(run, addHolds(run, sinceNow(run)));
}

/** What began by then is held no longer. */
export function endsOf(run: RunContext, guard: GuardClass): Ends {
  const { at, platformAt } = sinceNow(run);
  const { holdForMs = Infinity } = run.guards[guard];
  return { local: at - holdForMs, platform: platformAt === null ? null : platformAt - holdForMs };
}

export function sinceNow({ clock, platformTime }: RunContext): HeldSince {
  return { at: clock.now(), platformAt: platformTime.now() };
}
