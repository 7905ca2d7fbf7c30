/** The part of the status about the last proof that the platform was as the CRM wanted it. */
import type { Config } from '../../config/config.ts';
import { dueBefore } from '../../config/schema/cron-pattern.ts';
import type { KeptRun } from '../../snapshot/tables/run-history.ts';
import { instant } from '../output/format-values.ts';

/** The last full run that ended well. */
export interface ToldProof {
  run: string;
  startedAt: string;
  endedAt: string | null;
  /** The age of its start, because nothing later was read; null: it lies in the future. */
  ageMs: number | null;
  /** Whether it is older than 36 hours and older than the last two full runs of the schedule. */
  stale: boolean;
}

const provenForMs = 36 * 3_600_000;

/** Returns the proof of a run. `now`: milliseconds since the epoch. */
export function provenBy(
  { id, startedAt, endedAt }: KeptRun,
  config: Config,
  now: number,
): ToldProof {
  return {
    run: id,
    startedAt: instant(startedAt),
    endedAt: endedAt === null ? null : instant(endedAt),
    ageMs: startedAt > now ? null : now - startedAt,
    stale: startedAt < staleBefore(config, now),
  };
}

/**
 * Returns before when a proof is stale, in milliseconds since the epoch; without a schedule none
 * is.
 */
function staleBefore({ schedule }: Config, now: number): number {
  if (!schedule) return Number.NEGATIVE_INFINITY;
  const { patterns, timezone } = schedule;
  const due = patterns.full === undefined ? now : dueBefore(patterns.full, timezone, now);
  return Math.min(due, now - provenForMs);
}
