/** The part of the status about what guards hold. */
import { guardRows, timedGuards, type GuardClass } from '../../domain/guard-classes.ts';
import { weekMs } from '../../engine/report/guard-rules.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { pastLimit } from '../../engine/guard/guard-population.ts';
import type { Seen } from '../lookup/snapshot-command.ts';
import { instant } from '../output/format-values.ts';

/** What one plan holds, by guard class: templates for `template`, people for all others. */
export interface ToldHeld extends Record<GuardClass, number> {
  plan: string;
  /** Whether all of it is approved, under this plan or another: nobody has to look. */
  approved: boolean;
  since: string;
  /** From when on changes of timed classes pass without approval; null: it holds none. */
  optOutsUntil: string | null;
  /** The first changes that are held. */
  changes: { key: string; op: string; part: string }[];
  /** How many more changes are held than listed. */
  more: number;
}

const changesShown = 20;

/**
 * Returns the opt-outs by events that exceed the guard's limit; null: none within a day. `now`:
 * milliseconds since the epoch.
 */
export function byEvents(
  meta: Snapshot['meta'],
  now: number,
): { at: string; people: number; most: number } | null {
  const found = pastLimit(meta, now);
  return found ? { ...found, at: instant(found.at) } : null;
}

/** Returns what guards hold, by plan. */
export function heldOf({ awaitingApproval }: Snapshot, { names, now, config }: Seen): ToldHeld[] {
  const until = (plan: string, held: Record<GuardClass, number>): number | undefined => {
    const ends = [...timedGuards].flatMap((guard) => {
      const since = held[guard] > 0 ? awaitingApproval.oldest(guard, { plan }) : undefined;
      const { holdForMs = 0 } = config.guards[guardRows[guard].configKey];
      return since === undefined ? [] : [since + holdForMs];
    });
    return ends.toSorted((a, b) => a - b)[0];
  };
  return awaitingApproval.current().map(({ plan, since, held: counts }) => {
    const changes = awaitingApproval.changes(plan, changesShown);
    return {
      plan,
      approved: awaitingApproval.isApproved(plan, now - weekMs),
      since: instant(since),
      ...counts,
      optOutsUntil: timeOf(until(plan, counts)),
      changes: changes.map(({ op, part, ...record }) => ({ key: names(record), op, part })),
      more: awaitingApproval.countChanges(plan) - changes.length,
    };
  });
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : instant(at);
}
