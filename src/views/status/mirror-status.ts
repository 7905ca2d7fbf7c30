/** Reads everything that `status` shows into one document, before any of it is evaluated. */
import { existsSync, statSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import type { Problem } from '../../domain/errors.ts';
import type { ProblemClass } from '../../domain/record-problem.ts';
import { countUnmanaged, type UnmanagedPeople } from '../../domain/unmanaged-people.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { RefusedOptOut } from '../../store/tables/retry-later.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { readDoNotContactList } from '../../store/do-not-contact/list-file.ts';
import { boundDoNotContactList } from '../../engine/context/do-not-contact-binding.ts';
import { seenLimits } from '../../engine/plan/run-forecast.ts';
import { unfinishedIn } from '../../engine/erasure/pending/unfinished-erasures.ts';
import { auditLogState } from '../audit/log-verification.ts';
import { explain } from '../../compose/output/failure-report.ts';
import { healthOf, type ToldHealth } from './mirror-health.ts';
import { type Alert, alertsIn } from './alert-thresholds.ts';
import { onlyIn, pluralOf, runningOf, tellRun, type ToldRun } from './run-history.ts';
import { isLater, type KeptRun } from '../../store/tables/run-history.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import type { Names } from '../lookup/person-names.ts';
import { copiedAt } from '../../compose/snapshot-marks.ts';
import { pausedOf, tellPaused, type ToldPause } from '../../compose/pause-mark.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import { type Missing, missingOf } from '../lookup/missing-people.ts';
import { instant, instantOrNull, lasting } from '../../compose/output/format-values.ts';
import { exitCode } from '../../compose/output/exit-codes.ts';
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
import {
  tellCanary,
  type ToldCanary,
  canaryWords,
  sliceWords,
} from '../../engine/report/canary-text.ts';
import { storedDifference } from '../../engine/context/clock-difference.ts';
import { quarantineOf } from '../../engine/context/platform-quarantine.ts';
import { pastLimit } from '../../engine/guard/guard-population.ts';
import { stuckIn } from '../../engine/write-back/report-delivery.ts';
import { dueBefore } from '../../config/schema/cron-pattern.ts';
import { z } from 'zod';
import { isClosed, opening } from '../../domain/guards/change-window.ts';
import { type AskedClass, askedClasses } from '../../domain/guards/plan-rule.ts';
import { waitWords } from '../../engine/report/guard-text.ts';
import { canaryBounds, type CanaryEnd } from '../../domain/guards/canary.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { limitWords } from '../../engine/report/forecast-text.ts';
import { progressForms } from '../../compose/progress/progress-text.ts';
import { type RunInProgress, runInProgress } from '../../compose/progress/run-in-progress.ts';

/** Counts by record type; null if unknown because there is no snapshot. */
type PerKind = { contacts: number; templates: number } | null;

/** The document printed by `status`. */
export interface CurrentStatus extends ToldDelays, ToldHealth {
  mirror: string;
  at: string;
  /** Null if no such run is known. */
  proven: ToldProof | null;
  lastRuns: { full: ToldRun | null; fast: ToldRun | null };
  /** The last runs of a record type that have ended, if they failed. */
  failedRuns: ToldRun[];
  /** The thresholds of the configuration that the last runs have crossed. */
  alerts: Alert[];
  /** Subscribed people whose record may state an opt-out that cannot be read, likewise. */
  optOutsUnreadable: { count: number; since: string | null; people: ToldUnreadable[] };
  /** Opt-outs that the platform refused; `people` names the oldest. */
  optOutsRefused: { count: number; since: string | null; people: ToldOptOut[] };
  /** Opt-outs not yet reported to the CRM; null if this mirror does not report them. */
  returns: ToldReturns | null;
  /**
   * Erasures that were requested but are not done. A guard withholds `held` of them. `people` are
   * hashes.
   */
  erasuresUnfinished: { count: number; held: number; since: string | null; people: string[] };
  /** The number of records that are ours. */
  recorded: PerKind;
  /** People of ours who are missing from the CRM, as counted by full runs; null if nobody is. */
  missing: Missing | null;
  /**
   * People who are gone from the CRM and subscribed, and not managed by the mirror; null
   * without a snapshot. They are among the conflicts.
   */
  unmanaged: UnmanagedPeople | null;
  conflicts: PerKind;
  rejected: PerKind;
  invalid: PerKind;
  /** Rejected records that are not tried again until they change; a subset of `rejected`. */
  parked: { contacts: number; templates: number; since: string | null };
  /**
   * Changes that were sent but not answered. Those in `sent` may be in progress while a process has
   * the lease.
   */
  open: { unknown: number; sent: number; since: string | null };
  paused: ToldPause | null;
  /** Only opt-outs are sent until then. After that, the next run tries again. */
  quarantine: { since: string; until: string } | null;
  /**
   * Set if the snapshot was restored from a backup of that time and no full run has ended since.
   */
  restored: { backupOf: string } | null;
  /** Channels that lost most of their people at once. Nobody is opted in there. */
  channelsLost: { channel: string; reason: string; fix: string; since: string }[];
  /**
   * Changes awaiting approval, grouped by the plan that showed them: counted in people, with the
   * first ones named.
   */
  held: ToldHeld[];
  /**
   * Opt-outs stated in the last seven days that exceeded the guard's limit through events; null if
   * none did.
   */
  optOutsByEvents: { at: string; people: number; most: number } | null;
  /** Approvals, valid until the first full run that completes successfully, or until `until`. */
  approvals: ToldApproval[];
  /** The signatures that approvals need; null if they need none. */
  signatures: ToldSignatures | null;
  /** Changes that nobody makes, because a person rejected them: until `until` at most. */
  rejections: ToldRejection[];
  /** The rate limits observed by the latest run. */
  limits: ToldLimit[];
  lease: { held: boolean };
  /** The run that is in progress, about all people; null if there is none. */
  running: ToldProgress | null;
  /** `fault` states why every run is refused. */
  ledger: { file: string; fault: Omit<Problem, 'code'> | null };
  /** `fault` states why the audit log is not the one that the snapshot knows. */
  audit: { file: string; fault: string | null };
  snapshot: { file: string; exists: boolean; bytes: number | null };
}

/** A rate limit of a route. */
interface ToldLimit {
  route: string;
  /** The number of requests per window. */
  limit: number;
  windowMs: number;
  /** The share of the used requests that other programs made, from 0 to 1. */
  others: number;
  at: string;
}

/** An opt-out that the platform refused. */
interface ToldOptOut {
  key: string;
  channel: string;
  reason: string;
  fix: string;
  since: string;
  attempts: number;
  /** The time from which the next run tries it again. */
  retryAt: string;
}

/** A subscribed person whose record may state an opt-out that cannot be read. */
interface ToldUnreadable {
  key: string;
  reason: string;
  fix: string;
  since: string;
}

const peopleShown = 20;

/** Reads the status of an open mirror. */
export function currentStatusOf(seen: Seen): CurrentStatus {
  const { config, snapshot, leased, names, now } = seen;
  const base: CurrentStatus = {
    mirror: config.mirror,
    at: instant(now),
    proven: null,
    lastRuns: { full: null, fast: null },
    failedRuns: [],
    ...healthOf(config, now),
    alerts: [],
    optOutsUnreadable: { count: 0, since: null, people: [] },
    optOutsRefused: { count: 0, since: null, people: [] },
    returns: null,
    erasuresUnfinished: { count: 0, held: 0, since: null, people: [] },
    recorded: null,
    missing: null,
    unmanaged: null,
    conflicts: null,
    rejected: null,
    invalid: null,
    parked: { contacts: 0, templates: 0, since: null },
    open: { unknown: 0, sent: 0, since: null },
    paused: null,
    quarantine: null,
    restored: null,
    channelsLost: [],
    held: [],
    optOutsByEvents: null,
    approvals: [],
    signatures: null,
    rejections: [],
    limits: [],
    lease: { held: leased },
    running: null,
    ledger: ledgerOf(seen),
    audit: auditLogState(seen),
    snapshot: fileOf(config.snapshot, snapshot !== undefined),
  };
  if (!snapshot) return base;
  const { recorded, meta } = snapshot;
  const paused = pausedOf(meta);
  const copied = copiedAt(meta);
  return {
    ...base,
    ...runsOf(snapshot, seen),
    ...problemsOf(snapshot),
    optOutsUnreadable: unreadableOf(snapshot, names),
    optOutsRefused: optOutsOf(snapshot, names),
    returns: seen.config.contacts?.returns ? returnsOf(snapshot, names) : null,
    erasuresUnfinished: erasuresOf(snapshot),
    recorded: { contacts: recorded.count('contact'), templates: recorded.count('template') },
    missing: missingOf(snapshot, absenceRulesOf(config)),
    unmanaged: countUnmanaged(snapshot.unmanaged.counts('contact')),
    open: openOf(snapshot),
    paused: paused ? tellPaused(paused) : null,
    quarantine: quarantinedIn(meta),
    channelsLost: snapshot.retryLater
      .parts('contact')
      .map(({ part: channel, since, ...why }) => ({ channel, ...why, since: instant(since) })),
    ...decisionsOf(snapshot, seen),
    optOutsByEvents: byEvents(meta, now),
    limits: limitsOf(meta),
    running: progressOf(seen),
    restored: copied === undefined ? null : { backupOf: instant(copied) },
  };
}

/** Reads the list after the snapshot, so that it is at least as new as the snapshot expects. */
function ledgerOf({ config, snapshot }: Seen): CurrentStatus['ledger'] {
  const file = config.ledger.path;
  try {
    readDoNotContactList(config.ledger, snapshot && boundDoNotContactList(snapshot.meta)).close();
    return { file, fault: null };
  } catch (error) {
    const { problem, code } = explain(error);
    // A list that another process has locked is not a fault; nothing is known about it.
    return { file, fault: code === exitCode('busy') ? null : problem };
  }
}

function fileOf(file: string, exists: boolean): CurrentStatus['snapshot'] {
  if (!exists) return { file, exists, bytes: null };
  // The newest writes are in a separate file next to it.
  const parts = [file, `${file}-wal`].filter((part) => existsSync(part));
  return { file, exists, bytes: parts.reduce((sum, part) => sum + statSync(part).size, 0) };
}

function runsOf(
  snapshot: Snapshot,
  { config, leased, now }: Seen,
): Pick<CurrentStatus, 'proven' | 'lastRuns' | 'failedRuns' | 'alerts'> {
  const { runs } = snapshot;
  const isRunning = runningOf(snapshot, leased);
  const last = (mode: string): ToldRun | null => {
    const run = runs.newestOf(mode);
    return run ? tellRun(run, isRunning) : null;
  };
  const proven = runs.proven();
  return {
    proven: proven ? provenBy(proven, config, now) : null,
    lastRuns: { full: last('full'), fast: last('fast') },
    failedRuns: failedIn(snapshot, config).map((run) => tellRun(run, isRunning)),
    alerts: alertsIn(snapshot, config),
  };
}

/** The number of runs of a mode among which the last one of a record type is looked for. */
const looked = 20;

/**
 * Returns the last full run of each record type, and its last fast run if no full run followed it,
 * if they failed. Runs that have not ended are left out: they prove nothing yet.
 */
function failedIn({ runs }: Snapshot, { contacts, templates }: Config): KeptRun[] {
  const ended = ['full', 'fast']
    .flatMap((mode) => runs.lastOf(mode, looked))
    .filter(({ endedAt, status }) => endedAt !== null && status !== 'interrupted')
    .map((run) => ({ run, only: onlyIn(run) }));
  const found = new Map<string, KeptRun>();
  for (const type of [...(contacts ? ['contacts'] : []), ...(templates ? ['templates'] : [])]) {
    const own = ended.filter(({ only }) => only === null || only === type);
    const full = own.find(({ run }) => run.mode === 'full')?.run;
    const fast = own.find(({ run }) => run.mode === 'fast')?.run;
    if (full) found.set(full.id, full);
    if (fast && isLater(fast, full)) found.set(fast.id, fast);
  }
  return [...found.values()].filter(({ status }) => status === 'failed');
}

function problemsOf({
  retryLater,
}: Snapshot): Pick<CurrentStatus, 'conflicts' | 'rejected' | 'invalid' | 'parked'> {
  const counts = retryLater.counts();
  const count = (kind: RecordTypeName, name: ProblemClass): number =>
    counts.reduce((sum, one) => sum + (one.kind === kind && one.class === name ? one.n : 0), 0);
  const perKind = (name: ProblemClass) => ({
    contacts: count('contact', name),
    templates: count('template', name),
  });
  const parked: CurrentStatus['parked'] = { contacts: 0, templates: 0, since: null };
  const waiting = counts.filter((one) => one.parked === 1);
  for (const { kind, n } of waiting) parked[pluralOf(kind)] += n;
  return {
    conflicts: perKind('conflict'),
    rejected: perKind('rejected'),
    invalid: perKind('invalid'),
    parked: { ...parked, since: oldest(waiting) },
  };
}

function unreadableOf(
  { unreadableOptOuts }: Snapshot,
  names: Names,
): CurrentStatus['optOutsUnreadable'] {
  const people = unreadableOptOuts.list(peopleShown);
  return {
    count: unreadableOptOuts.count(),
    since: oldest(people),
    people: people.map((one) => ({
      key: names(one),
      reason: one.reason,
      fix: one.fix,
      since: instant(one.since),
    })),
  };
}

function optOutsOf({ retryLater }: Snapshot, names: Names): CurrentStatus['optOutsRefused'] {
  const told = (one: RefusedOptOut): ToldOptOut => ({
    key: names(one),
    channel: one.part,
    reason: one.reason,
    fix: one.fix,
    since: instant(one.since),
    attempts: one.attempts,
    retryAt: instant(one.retryAt),
  });
  const people = retryLater.refusedOptOuts(peopleShown);
  return {
    count: retryLater.countRefusedOptOuts(),
    since: oldest(people),
    people: people.map(told),
  };
}

function erasuresOf(snapshot: Snapshot): CurrentStatus['erasuresUnfinished'] {
  const all = unfinishedIn(snapshot);
  const people = all.slice(0, peopleShown).map(({ hash }) => hash);
  const held = all.filter((one) => one.held).length;
  return { count: all.length, held, since: oldest(all), people };
}

function limitsOf(meta: Snapshot['meta']): ToldLimit[] {
  return Object.entries(seenLimits(meta)).map(([route, { at, ...seen }]) => ({
    route,
    ...seen,
    at: instant(at),
  }));
}

function openOf({ outcomes }: Snapshot): CurrentStatus['open'] {
  const counts = outcomes.countOpen();
  const of = (state: string) => counts.find((one) => one.state === state)?.n ?? 0;
  return { unknown: of('unknown'), sent: of('sent'), since: oldest(counts) };
}

function oldest(of: readonly { since: number | null }[]): string | null {
  const times = of.flatMap(({ since }) => since ?? []);
  return times.length === 0 ? null : instant(Math.min(...times));
}

/**
 * The changes of one plan that await approval, by guard class: counted in templates for `template`,
 * otherwise in people.
 */
interface ToldHeld extends Record<GuardClass, number> {
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
function byEvents(
  meta: Snapshot['meta'],
  now: number,
): { at: string; people: number; most: number } | null {
  const found = pastLimit(meta, now);
  return found ? { ...found, at: instant(found.at) } : null;
}

/** An approval that has not ended; null if it was given by a version that did not store it. */
interface ToldApproval {
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
interface ToldRejection extends Record<GuardClass, number> {
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
function decisionsOf(snapshot: Snapshot, seen: Seen) {
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
interface ToldDelays {
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
interface ToldSignatures {
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
interface ToldReturns {
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

const kind = 'contact';

/** Returns the opt-outs for the CRM. */
function returnsOf(snapshot: Snapshot, names: Names): ToldReturns {
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
interface ToldProof {
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
function provenBy({ id, startedAt, endedAt }: KeptRun, config: Config, now: number): ToldProof {
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
function quarantinedIn(meta: Snapshot['meta']): { since: string; until: string } | null {
  const quarantine = quarantineOf(meta);
  return quarantine ? { since: instant(quarantine.since), until: instant(quarantine.until) } : null;
}

/** What waits in one class of changes. */
interface ToldWait {
  class: AskedClass;
  /** The number of people or templates. */
  records: number;
  /** When a window opens, with the time zone; null if one is open, or none within two weeks. */
  opens: string | null;
  opensAt: string | null;
}

/** The part of a stored summary that is read. */
const kept = z.object({
  only: z.string().nullable().default(null),
  deferred: z.partialRecord(z.enum(askedClasses), z.number()).default({}),
});

/** Returns what waits, if the configuration has windows. */
function waitsOf(
  { runs, meta }: Pick<Snapshot, 'runs' | 'meta'>,
  { config: { windows, schedule }, now }: Seen,
): { waiting?: ToldWait[] } {
  if (windows.length === 0) return {};
  const time = { at: now, timezone: schedule?.timezone ?? 'UTC' };
  const ended = ['full', 'fast']
    .flatMap((mode) => runs.lastOf(mode, looked))
    .filter(({ status, summary }) => summary !== null && status !== 'failed')
    .toSorted((a, b) => (isLater(a, b) ? -1 : 1))
    .map(({ summary }) => kept.parse(JSON.parse(summary ?? '{}')));
  // What waits for a canary is told with the canary.
  const canaries = new Set(openIn(storedCanaries(meta)).map(([of]) => of));
  const waiting = askedClasses.flatMap((of): ToldWait[] => {
    const other = guardRows[of].recordType === 'contact' ? 'templates' : 'contacts';
    const records = ended.find(({ only }) => only !== other)?.deferred[of] ?? 0;
    if (records === 0 || canaries.has(of)) return [];
    const opens = isClosed(windows, of, time) ? opening(windows, of, time) : undefined;
    return [{ class: of, records, opens: opens?.words ?? null, opensAt: instantOrNull(opens?.at) }];
  });
  return { waiting };
}

/** Formats it: `12 people to be created or opted in wait for Thu 09:00 UTC` */
export function windowWords(waiting: readonly ToldWait[]): string[] {
  return waiting.map(({ class: of, records, opens }) =>
    waitWords(of, records, opens ?? 'the next run in their window'),
  );
}

/** How the last canary ended, as `status` shows it. */
interface ToldCanaryEnd extends Pick<
  ToldCanary,
  'class' | 'run' | 'size' | 'of' | 'found' | 'counts'
> {
  ended: CanaryEnd['is'];
  at: string;
}

/** Returns the end of a canary as programs read it. */
function tellCanaryEnd({ is: ended, at, says, counts, ...of }: CanaryEnd): ToldCanaryEnd {
  return { ...of, ended, at: instant(at), found: says ?? null, counts: counts ?? null };
}

/** Formats the canaries that are open, as one row. */
export function canaryRow(canaries: readonly ToldCanary[]): string {
  const told = canaries.map((one) => `${canaryWords(one)}${lookWords(one)}`);
  return told.join('; ') || 'none is under way';
}

/** States how many of the slice count for each cause, and the commands that name them. */
function lookWords({ class: of, run, counts }: ToldCanary): string {
  if (!counts) return '';
  const all = canaryBounds.map((bound) => `${bound} ${withCommas(counts[bound])}`).join(', ');
  const explains =
    guardRows[of].recordType === 'contact'
      ? ', `crm-mirror explain PERSON` says what became of one'
      : '';
  return ` (${all}): \`crm-mirror runs ${run}\` lists the slice${explains}`;
}

const ends: Record<Exclude<CanaryEnd['is'], 'passed'>, string> = {
  approved: 'approved',
  replaced: 'ended by another mapping',
  unwanted: 'ended, because no run plans the rest any more,',
};

/** States how a canary ended, and when. */
export function canaryEndWords({ ended, at, found, ...told }: ToldCanaryEnd): string {
  const slice = sliceWords(told);
  if (ended === 'passed') return `${slice} was within bounds at ${at}`;
  return `${slice} was out of bounds: ${found}; ${ends[ended]} at ${at}`;
}

/** The progress of a run. `since` is the start of the run, and `at` the time of these figures. */
interface ToldProgress extends Omit<RunInProgress, 'token' | 'since' | 'at'> {
  since: string;
  at: string;
}

/** Returns the progress of the run about all people that a process does now; null if none does. */
function progressOf({ snapshot, leased, now }: Seen): ToldProgress | null {
  const found = snapshot && runInProgress(snapshot, leased);
  if (!found) return null;
  const { token: _, since, at, leftMs, ...rest } = found;
  const left = leftMs === null ? null : Math.max(0, Math.round(leftMs - Math.max(0, now - at)));
  return { ...rest, leftMs: left, since: instant(since), at: instant(at) };
}

/** Formats the progress of a run. `at` is the time of the status. */
export function progressWords(
  { at: now, running }: { at: string; running: ToldProgress },
  isVerbose = false,
): string {
  const { mode, command, pid, since, at, limit } = running;
  const quietMs = Math.max(0, Date.parse(now) - Date.parse(at));
  const [line] = progressForms({ ...running, quietMs });
  const by = command === '' ? '' : ` by \`${command}\``;
  const seen = limit
    ? `; ${limit.route} allows ${limitWords({ ...limit, others: 0 }, lasting)}`
    : '';
  return `a ${mode} run${by}${isVerbose ? ` (process ${pid})` : ''} since ${since}: ${line}${seen}`;
}
