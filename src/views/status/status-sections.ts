/**
 * Builds three parts of the status: what guards withhold, the opt-outs not yet reported to the CRM,
 * and the last proof that the platform equalled the CRM.
 */
import { type GuardClass, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { weekMs } from '../../engine/report/guard-rules.ts';
import { rejectedForMs } from '../../engine/report/approval-rules.ts';
import { isAnyLeft } from '../../engine/guard/plan-decisions.ts';
import {
  approvalsInForce,
  type PendingApproval,
  pendingApprovals,
} from '../../engine/guard/signed-approvals.ts';
import { openIn, storedCanaries } from '../../engine/guard/canary-book.ts';
import { tellCanary, type ToldCanary } from '../../engine/report/canary-text.ts';
import { tellCanaryEnd, type ToldCanaryEnd } from './canary-rows.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { storedDifference } from '../../engine/context/clock-difference.ts';
import { quarantineOf } from '../../engine/context/platform-quarantine.ts';
import { pastLimit } from '../../engine/guard/guard-population.ts';
import { type ToldWait, waitsOf } from './window-waits.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { stuckIn } from '../../engine/write-back/report-delivery.ts';
import type { Names } from '../lookup/person-names.ts';
import type { Config } from '../../config/config.ts';
import { dueBefore } from '../../config/schema/cron-pattern.ts';
import type { KeptRun } from '../../store/tables/run-history.ts';

/**
 * The changes of one plan that await approval, by guard class: counted in templates for `template`,
 * otherwise in people.
 */
export interface ToldHeld extends Record<GuardClass, number> {
  plan: string;
  /** Whether all of it is approved, under this plan or another, so that no action is needed. */
  approved: boolean;
  since: string;
  /** Those of them that nobody has approved, by guard class. */
  undecided: Record<GuardClass, number>;
  /** Those with an approved change that waits for a run, by guard class. */
  ready: Record<GuardClass, number>;
  /** The time from which changes of timed classes pass without approval; null if there are none. */
  optOutsUntil: string | null;
  /** The first changes that await approval. */
  changes: { key: string; op: string; part: string }[];
  /** How many more changes await approval than are listed. */
  more: number;
  /** The run that a plan of `undo` undoes. Only that command makes its changes. */
  undoes?: string;
}

const changesShown = 20;

/**
 * Returns the opt-outs by events that exceed the guard's limit, or null if there were none within a
 * day. `now` is in milliseconds since the epoch.
 */
export function byEvents(
  meta: Snapshot['meta'],
  now: number,
): { at: string; people: number; most: number } | null {
  const found = pastLimit(meta, now);
  return found ? { ...found, at: instant(found.at) } : null;
}

/** An approval that has not ended; null if it was given by a version that did not store it. */
export interface ToldApproval {
  /** The plan that was approved. */
  plan: string;
  /** The hash of the approved part; null if the whole plan was approved. */
  part: string | null;
  at: string;
  until: string;
  by: string | null;
  reason: string | null;
}

/** A rejection: the rejected changes by guard class, counted like those in ToldHeld. */
export interface ToldRejection extends Record<GuardClass, number> {
  /** The plan whose changes were rejected. */
  plan: string;
  /** The hash of the rejected part, under which the rejection can be taken back. */
  part: string;
  at: string;
  until: string;
  by: string;
  reason: string;
}

/** Returns what guards and canaries withhold, and what was decided about it. */
export function decisionsOf(snapshot: Snapshot, seen: Seen) {
  return {
    held: heldOf(snapshot, seen),
    approvals: approvalsOf(snapshot, seen),
    signatures: signaturesOf(snapshot, seen),
    rejections: rejectionsOf(snapshot),
    ...canariesOf(snapshot, seen),
    ...waitsOf(snapshot, seen),
  };
}

/** What waits, if the configuration has canaries or windows. */
export interface ToldDelays {
  canaries?: ToldCanary[];
  lastCanary?: ToldCanaryEnd | null;
  waiting?: ToldWait[];
}

function canariesOf({ meta }: Snapshot, { config }: Seen): Omit<ToldDelays, 'waiting'> {
  const { canary: policy } = config.policy;
  if (!policy) return {};
  const book = storedCanaries(meta);
  return {
    canaries: openIn(book).map(([guard, canary]) => tellCanary(guard, canary, policy)),
    lastCanary: book?.last ? tellCanaryEnd(book.last) : null,
  };
}

/** How many approvers have to sign, and the parts that too few of them have signed. */
export interface ToldSignatures {
  need: number;
  pending: PendingApproval[];
}

function signaturesOf(snapshot: Snapshot, { now, config }: Seen): ToldSignatures | null {
  const { approvers } = config;
  if (!approvers) return null;
  return { need: approvers.need, pending: pendingApprovals(snapshot, { approvers, now }) };
}

/** Returns the approvals in force. */
function approvalsOf(snapshot: Snapshot, { now, config }: Seen): ToldApproval[] {
  return approvalsInForce(snapshot, { approvers: config.approvers, now }).map(
    ({ plan, whole, at, by, reason }) => ({
      plan: whole ?? plan,
      part: whole === null ? null : plan,
      at: instant(at),
      until: instant(at + weekMs),
      by,
      reason,
    }),
  );
}

/** Returns the rejections that have not ended. */
function rejectionsOf({ awaitingApproval }: Snapshot): ToldRejection[] {
  return awaitingApproval.rejections().map(({ plan: part, whole: plan, at, by, reason }) => ({
    plan,
    part,
    ...awaitingApproval.left(part),
    at: instant(at),
    until: instant(at + rejectedForMs),
    by,
    reason,
  }));
}

/** Returns what guards withhold, by plan. */
function heldOf(snapshot: Snapshot, { names, now, config }: Seen): ToldHeld[] {
  const { awaitingApproval } = snapshot;
  const inForce = approvalsInForce(snapshot, { approvers: config.approvers, now });
  const { aheadMs = null } = storedDifference(snapshot.meta) ?? {};
  const until = (plan: string, held: Record<GuardClass, number>): number | undefined => {
    const ends = [...timedGuards].flatMap((guard) => {
      const since = held[guard] > 0 ? awaitingApproval.oldest(guard, { plan, aheadMs }) : undefined;
      const { holdForMs = 0 } = config.guards[guardRows[guard].configKey];
      return since === undefined ? [] : [since + holdForMs];
    });
    return ends.toSorted((a, b) => a - b)[0];
  };
  return awaitingApproval.current().map(({ plan, since, undoes, held: counts }) => {
    const changes = awaitingApproval.changes(plan, changesShown);
    const undecided = awaitingApproval.undecided(plan, inForce);
    return {
      plan,
      approved: !isAnyLeft(undecided),
      since: instant(since),
      ...counts,
      undecided,
      ready: awaitingApproval.countApproved(plan, inForce),
      optOutsUntil: instantOrNull(until(plan, counts)),
      changes: changes.map(({ op, part, ...record }) => ({ key: names(record), op, part })),
      more: awaitingApproval.countChanges(plan) - changes.length,
      ...(undoes !== null && { undoes }),
    };
  });
}

/** Opt-outs for the CRM. */
export interface ToldReturns {
  /** The number of opt-outs not yet reported, counted by CRM record. */
  waiting: number;
  since: string | null;
  /** Since when nothing can be reported to the CRM, and why; null if reporting works. */
  stuck: { since: string; reason: string; fix: string | undefined } | null;
  /** Opt-outs that the CRM rejected. The next run after a day tries them again. */
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

/** The last full run that completed successfully. */
export interface ToldProof {
  run: string;
  startedAt: string;
  endedAt: string | null;
  /** The age of its start, because nothing later was read; null if the start is in the future. */
  ageMs: number | null;
  /**
   * Whether it is older than `alerts.proofAge`; by default, older than 36 hours and also than the
   * last two full runs of the schedule.
   */
  stale: boolean;
}

const provenForMs = 36 * 3_600_000;

/** Returns the proof that a run provides. `now` is in milliseconds since the epoch. */
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
 * Returns the time before which a proof is stale, in milliseconds since the epoch. Without a
 * schedule and `alerts.proofAge`, no proof is stale.
 */
function staleBefore({ schedule, alerts }: Config, now: number): number {
  if (alerts.proofAgeMs !== undefined) return now - alerts.proofAgeMs;
  if (!schedule) return Number.NEGATIVE_INFINITY;
  const { patterns, timezone } = schedule;
  const due = patterns.full === undefined ? now : dueBefore(patterns.full, timezone, now);
  return Math.min(due, now - provenForMs);
}

/** Returns since when and until when only opt-outs are sent; null if everything is. */
export function quarantinedIn(meta: Snapshot['meta']): { since: string; until: string } | null {
  const quarantine = quarantineOf(meta);
  return quarantine ? { since: instant(quarantine.since), until: instant(quarantine.until) } : null;
}
