/**
 * Three parts of the status: what guards hold, the opt-outs that the CRM was not told of yet, and
 * the last proof that the platform was as the CRM wanted it.
 */
import { type GuardClass, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { weekMs } from '../../engine/report/guard-rules.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { pastLimit } from '../../engine/guard/guard-population.ts';
import type { Seen } from '../lookup/snapshot-command.ts';
import { instant, instantOrNull } from '../output/format-values.ts';
import { stuckIn } from '../../write-back/report-delivery.ts';
import type { Names } from '../lookup/person-names.ts';
import type { Config } from '../../config/config.ts';
import { dueBefore } from '../../config/schema/cron-pattern.ts';
import type { KeptRun } from '../../snapshot/tables/run-history.ts';

/** The changes that one plan holds, by guard class: templates for `template`, else people. */
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
      optOutsUntil: instantOrNull(until(plan, counts)),
      changes: changes.map(({ op, part, ...record }) => ({ key: names(record), op, part })),
      more: awaitingApproval.countChanges(plan) - changes.length,
    };
  });
}

/** Opt-outs for the CRM. */
export interface ToldReturns {
  /** Opt-outs that were not told yet, counted by CRM record. */
  waiting: number;
  since: string | null;
  /** Since when the CRM cannot be told anything, and why; null: it can. */
  stuck: { since: string; reason: string; fix: string | undefined } | null;
  /** Opt-outs that the CRM rejected; the next run after a day tries them again. */
  rejected: { count: number; since: string | null; people: ToldRejected[] };
}

interface ToldRejected {
  key: string;
  channel: string;
  reason: string;
  fix: string;
  since: string;
}

const peopleShown = 20;
const kind = 'contact';

/** Returns the opt-outs for the CRM. */
export function returnsOf(snapshot: Snapshot, names: Names): ToldReturns {
  const { optOutReports, meta } = snapshot;
  const { waiting, waitingSince, rejected, rejectedSince } = optOutReports.counts(kind);
  const stuck = stuckIn({ meta });
  return {
    waiting,
    since: instantOrNull(waitingSince),
    stuck: stuck ? { ...stuck, since: instant(stuck.since) } : null,
    rejected: {
      count: rejected,
      since: instantOrNull(rejectedSince),
      people: optOutReports.rejected(kind, peopleShown).map((row) => ({
        key: names({ kind, key: row.email }),
        channel: row.channel,
        reason: row.reason ?? '',
        fix: row.fix ?? '',
        since: instant(row.plannedAt),
      })),
    },
  };
}

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
    endedAt: instantOrNull(endedAt),
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
