/** The last proof that a mirror was as the CRM wanted it, and whether that is too long ago. */
import type { Config } from '../../config/config.ts';
import { dueBefore } from '../../config/schema/cron-pattern.ts';
import type { KeptRun } from '../../snapshot/tables/run-history.ts';
import { instant } from '../output/format-values.ts';

export interface ToldProof {
  run: string;
  startedAt: string;
  endedAt: string | null;
  /** Counts from its start: nothing later was looked at. */
  ageMs: number | null;
  /** Older than a day and a half and than the last two full runs that were due by the schedule. */
  stale: boolean;
}

const provenForMs = 36 * 3_600_000;

/** By a clock that was put back nobody knows how long ago it was. */
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

/** Without a schedule nobody knows how often it should be proven. */
function staleBefore({ schedule }: Config, now: number): number {
  if (!schedule) return Number.NEGATIVE_INFINITY;
  const { patterns, timezone } = schedule;
  const due = patterns.full === undefined ? now : dueBefore(patterns.full, timezone, now);
  return Math.min(due, now - provenForMs);
}
