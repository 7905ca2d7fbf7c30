/** Reports what a guard, a rule or a canary withholds, and how to approve it. */
import { z } from 'zod';
import { type GuardClass, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import type { ChangeVolume, HoldReason } from '../report/guard-rules.ts';
import { explainHeld, whyOf } from '../report/guard-text.ts';
import type { RunState } from '../context/run-state.ts';
import { endsOf } from './approval-holds.ts';
import { type Meta, metaValue } from '../../store/database/meta-table.ts';
import type { PlanAwaitingApproval } from '../../store/guards/awaiting-approval.ts';

/** A class with withheld changes, why, and their number. */
export interface Withheld {
  found: HoldReason;
  volume: ChangeVolume;
  n: number;
}

/** Reports it as a problem of the run. */
export function tellHeld(context: RunState, { found, volume, n }: Withheld): void {
  const { run, tally, review } = context;
  const { awaitingApproval } = run.snapshot;
  const { guard: of } = volume;
  if (run.writes && !run.undo) keepReason(context, { found, volume });
  const { heldAs } = review;
  const isTimed = timedGuards.has(of);
  // A later round may withhold a few more changes; the report states the total.
  const told = { ...volume, fresh: n + (isTimed ? review.unplanned : 0) };
  // An earlier plan also shows the people that this run has not read. A plan that no run has held
  // cannot be approved, and a later round adds nothing to the plan of the run.
  const current = awaitingApproval.current().filter(({ undoes }) => undoes === null || run.undo);
  const isFirst = review.rounds === 0;
  const isToKeep = run.writes && isFirst;
  const isKept = current.some((one) => one.plan === heldAs && (isFirst || one.held[of] > 0));
  const isOwn = isToKeep || isKept;
  const shown = isOwn && told.fresh === n ? heldAs : largestOf(current, of);
  const { holdForMs } = run.guards[of];
  const since = awaitingApproval.oldest(of, endsOf(run, of)) ?? run.clock.now();
  const fault = explainHeld(found, told, {
    limit: run.guards[of],
    plan: shown ?? (isToKeep ? heldAs : undefined),
    signs: run.approvers !== undefined,
    undoes: run.undo?.run,
    until: isTimed && holdForMs !== undefined ? since + holdForMs : undefined,
  });
  tally.held({
    kind: guardRows[of].recordType,
    key: of,
    class: 'held',
    part: '',
    cause: 'awaiting-approval',
    ...fault,
  });
}

const nameOfReasons = 'reasons of holds';
const reasons = z.record(z.string(), z.string());

/** Returns why changes of a class that still wait were withheld when their hold began. */
export function firstReason(meta: Meta, of: GuardClass): string | undefined {
  return metaValue(meta, nameOfReasons, reasons)?.[of];
}

/** Stores the reason of a hold that begins, with its numbers. */
function keepReason({ run }: RunState, { found, volume }: Omit<Withheld, 'n'>): void {
  const { awaitingApproval, meta, transaction } = run.snapshot;
  const { guard: of } = volume;
  const isStanding = awaitingApproval.oldest(of) !== undefined;
  if (found.by === 'earlier run' || (isStanding && firstReason(meta, of) !== undefined)) return;
  const says = whyOf(found, volume, run.guards[of]);
  const kept = { ...metaValue(meta, nameOfReasons, reasons), [of]: says };
  transaction(() => meta.set(nameOfReasons, JSON.stringify(kept)));
}

function largestOf(plans: readonly PlanAwaitingApproval[], of: GuardClass): string | undefined {
  const [largest] = plans.toSorted((a, b) => b.held[of] - a.held[of]);
  return largest && largest.held[of] > 0 ? largest.plan : undefined;
}
