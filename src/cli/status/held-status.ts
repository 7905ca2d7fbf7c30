/** What guards hold, as `status` tells it. */
import { weekMs } from '../../engine/report/guard-rules.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { pastLimit } from '../../engine/guard/guard-population.ts';
import type { Seen } from '../lookup/snapshot-command.ts';
import { instant } from '../output/format-values.ts';

export interface ToldHeld {
  plan: string;
  /** All of it, under this plan or another one: nobody need look. */
  approved: boolean;
  since: string;
  delete: number;
  opt_in: number;
  opt_out: number;
  /** Templates; all others are people. */
  template: number;
  /** From when on its stated opt-outs pass without approval; null: it holds none. */
  optOutsUntil: string | null;
  /** The first of what is held. */
  changes: { key: string; op: string; part: string }[];
  /** How many changes more are held than are listed. */
  more: number;
}

const changesShown = 20;

/** Opt-outs past the limit of the guard, by events; null: none of the last day. */
export function byEvents(
  meta: Snapshot['meta'],
  now: number,
): { at: string; people: number; most: number } | null {
  const found = pastLimit(meta, now);
  return found ? { ...found, at: instant(found.at) } : null;
}

/** By the plan that showed it. */
export function heldOf({ awaitingApproval }: Snapshot, { names, now, config }: Seen): ToldHeld[] {
  const until = (plan: string): number | undefined => {
    const since = awaitingApproval.oldest('opt_out', { plan });
    return since === undefined ? undefined : since + config.guards.optOuts.holdForMs;
  };
  return awaitingApproval.current().map(({ plan, since, held: counts }) => {
    const changes = awaitingApproval.changes(plan, changesShown);
    return {
      plan,
      approved: awaitingApproval.isApproved(plan, now - weekMs),
      since: instant(since),
      ...counts,
      optOutsUntil: timeOf(counts.opt_out > 0 ? until(plan) : undefined),
      changes: changes.map(({ op, part, ...record }) => ({ key: names(record), op, part })),
      more: awaitingApproval.countChanges(plan) - changes.length,
    };
  });
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : instant(at);
}
