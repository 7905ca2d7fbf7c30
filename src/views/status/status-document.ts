/** Reads what `status` shows into one document, before any of it is evaluated. */
import { type Fault, exitCode, explain } from '../../compose/output/failure-report.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { existsSync, statSync } from 'node:fs';
import { type GuardClass, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import type { CanaryEnd } from '../../domain/guards/canary.ts';
import { isClosed, opening } from '../../domain/guards/change-window.ts';
import { askedClasses } from '../../domain/guards/plan-rule.ts';
import type { ProblemClass } from '../../domain/record-problem.ts';
import { countUnmanaged } from '../../domain/unmanaged-people.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { dueBefore } from '../../config/schema/cron-pattern.ts';
import { absenceRulesOf, type Config } from '../../config/config.ts';
import { isLeased } from '../../store/database/writer-lease.ts';
import { lastAside } from '../../store/damage-check.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { type Memory, withMemory } from '../../store/memory/memory.ts';
import { isLater, type KeptRun } from '../../store/tables/run-history.ts';
import { storedDifference } from '../../engine/context/platform-knowledge.ts';
import { boundMemory } from '../../engine/context/do-not-contact-binding.ts';
import { quarantineOf } from '../../engine/context/circuit-breaker.ts';
import { unfinishedIn } from '../../engine/erasure/pending/unfinished-erasures.ts';
import { openIn, storedCanaries } from '../../engine/judge/canaries.ts';
import { pastLimit } from '../../engine/judge/guard-counts.ts';
import {
  approvalIds,
  approvalsInForce,
  isAnyLeft,
  pendingApprovals,
} from '../../engine/judge/plan-decisions.ts';
import { seenLimits } from '../../engine/decide/plan-summary.ts';
import { rejectedForMs, tellCanary } from '../../engine/report/guard-text.ts';
import { weekMs } from '../../domain/guards/guard-limits.ts';
import { stuckIn } from '../../engine/write-back/report-opt-outs.ts';
import { runInProgress } from '../../compose/run-progress.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';
import { pausedOf, tellPaused } from '../../compose/mirror-files.ts';
import { copiedAt } from '../../store/database/meta-table.ts';
import { auditFault } from '../audit/log-verification.ts';
import { missingOf } from '../lookup/missing-people.ts';
import { see, type Seen } from '../lookup/seen-mirror.ts';
import { alertsIn, onlyIn, pluralOf, runningOf, tellRun, type ToldRun } from './run-history.ts';
import { type Outage, readHealth, silentMs } from '../../store/health-file.ts';

const peopleShown = 20;
const changesShown = 20;
/** The number of runs of a mode among which the last one of a record type is looked for. */
const runsSearched = 20;

export type CurrentStatus = ReturnType<typeof currentStatusOf>;

/** It names nobody by address. `timeoutMs`: how long a lock of the snapshot is waited for. */
export function readCurrentStatus(config: Config, timeoutMs?: number): CurrentStatus {
  const seen = see(config, false, timeoutMs);
  try {
    return currentStatusOf(seen);
  } finally {
    seen.snapshot?.close();
  }
}

export function statusWithoutSnapshot(config: Config): CurrentStatus {
  const names = () => '';
  const leased = isLeased(config.snapshot);
  return currentStatusOf({ config, snapshot: undefined, names, leased, now: Date.now() });
}

/** Reads the status of an open mirror. Without a snapshot, what it would tell is empty or null. */
export function currentStatusOf(seen: Seen) {
  const { config, snapshot, leased, now } = seen;
  const file = config.snapshot;
  // The newest writes are in a separate file next to it.
  const files = snapshot ? [file, `${file}-wal`].filter((part) => existsSync(part)) : [];
  const bytes = files.reduce((sum, part) => sum + statSync(part).size, 0);
  const read = snapshot && readSnapshot(snapshot, seen);
  const setAside = snapshot && lastAside(file, snapshot, now);
  const none = { count: 0, since: null, people: [] };
  return {
    mirror: config.mirror,
    at: instant(now),
    /** The last full run that completed successfully; null if none is known. */
    proven: read?.proven ?? null,
    lastRuns: read?.lastRuns ?? { full: null, fast: null },
    /** The changes of a first full run that was stopped; null if none was, or they are unknown. */
    firstLoad: read?.firstLoad ?? null,
    /** The last runs of a record type that have ended, if they failed; how many in a row. */
    failedRuns: read?.failedRuns ?? [],
    ...healthOf(file, now),
    /** The thresholds of the configuration that the last runs have crossed. */
    alerts: read?.alerts ?? [],
    /** Subscribed people whose record may state an opt-out that cannot be read. */
    optOutsUnreadable: read?.optOutsUnreadable ?? none,
    /** Opt-outs that the platform refused; `people` names the oldest. */
    optOutsRefused: read?.optOutsRefused ?? none,
    /** Opt-outs not yet reported to the CRM; null if this mirror does not report them. */
    returns: read?.returns ?? null,
    /** Erasures that were requested but are not done. */
    erasuresUnfinished: read?.erasuresUnfinished ?? { ...none, held: 0 },
    recorded: read?.recorded ?? null,
    /** People of ours who are missing from the CRM, as counted by full runs; null if nobody is. */
    missing: read?.missing ?? null,
    /** Gone from the CRM, subscribed and not managed by the mirror; among the conflicts. */
    unmanaged: read?.unmanaged ?? null,
    conflicts: read?.conflicts ?? null,
    rejected: read?.rejected ?? null,
    invalid: read?.invalid ?? null,
    /** Rejected records that are not tried again until they change; a subset of `rejected`. */
    parked: read?.parked ?? { contacts: 0, templates: 0, since: null },
    /** Unanswered changes; those in `sent` may be in progress while a process has the lease. */
    open: read?.open ?? { unknown: 0, sent: 0, since: null },
    paused: read?.paused ?? null,
    /** Only opt-outs are sent until then. After that, the next run tries again. */
    quarantine: read?.quarantine ?? null,
    /** Set if the snapshot was restored from a backup and no full run has ended since. */
    restored: read?.restored ?? null,
    /** Channels that lost most of their people at once. Nobody is opted in there. */
    channelsLost: read?.channelsLost ?? [],
    /**
     * Changes awaiting approval, grouped by the plan that showed them: by guard class, counted in
     * templates for `template`, otherwise in people, with the first ones named.
     */
    held: read?.held ?? [],
    /**
     * Opt-outs stated in the last seven days that exceeded the guard's limit through events; null
     * if there were none within a day.
     */
    optOutsByEvents: read?.optOutsByEvents ?? null,
    /** Approvals, valid until the first full run that completes successfully, or until `until`. */
    approvals: read?.approvals ?? [],
    /** How many approvers have to sign, and what too few have signed; null if none have to. */
    signatures: read?.signatures ?? null,
    /** Changes that nobody makes, because a person rejected them: until `until` at most. */
    rejections: read?.rejections ?? [],
    limits: read?.limits ?? [],
    lease: { held: leased },
    /** The run that is in progress, about all people; null if there is none. */
    running: read?.running ?? null,
    /**
     * `fault` states why every run is refused, `auditFault` why the audit log is not the one that
     * the snapshot knows, or is not written.
     */
    memory: { file: config.memory.path, ...findMemoryFaults(seen) },
    snapshot: { file, exists: snapshot !== undefined, bytes: snapshot ? bytes : null },
    ...read?.delays,
    /** The damaged snapshot that this one has replaced, while its file is beside it. */
    ...(setAside && { setAside }),
  };
}

/** Reads the memory after the snapshot, so that it is at least as new as the snapshot expects. */
function findMemoryFaults({ config, snapshot }: Seen): {
  fault: Fault | null;
  auditFault: string | null;
} {
  try {
    const known = snapshot && boundMemory(snapshot.meta);
    const find = (memory: Memory) => snapshot && auditFault(memory, snapshot);
    return { fault: null, auditFault: withMemory(config.memory, find, known) ?? null };
  } catch (error) {
    const { problem, code } = explain(error);
    // A memory that another process has locked is not a fault; nothing is known about it.
    return { fault: code === exitCode('busy') ? null : problem, auditFault: null };
  }
}

function readSnapshot(snapshot: Snapshot, seen: Seen) {
  const { recorded, meta } = snapshot;
  const { config, now } = seen;
  const paused = pausedOf(meta);
  const quarantine = quarantineOf(meta);
  const copied = copiedAt(meta);
  const past = pastLimit(meta, now);
  const erasures = unfinishedIn(snapshot);
  const open = snapshot.outcomes.countOpen();
  const count = (state: string) => open.find((one) => one.state === state)?.n ?? 0;
  const { approvers } = config;
  const { canary: policy } = config.policy;
  const book = policy && storedCanaries(meta);
  return {
    ...readRuns(snapshot, seen),
    ...countProblems(snapshot),
    ...readOptOuts(snapshot, seen),
    /** A guard withholds `held` of them. `people` are hashes. */
    erasuresUnfinished: {
      count: erasures.length,
      held: erasures.filter((one) => one.held).length,
      since: oldest(erasures),
      people: erasures.slice(0, peopleShown).map(({ hash }) => hash),
    },
    recorded: { contacts: recorded.count('contact'), templates: recorded.count('template') },
    missing: missingOf(snapshot, absenceRulesOf(config)),
    unmanaged: countUnmanaged(snapshot.unmanaged.counts('contact')),
    open: { unknown: count('unknown'), sent: count('sent'), since: oldest(open) },
    paused: paused ? tellPaused(paused) : null,
    quarantine: quarantine
      ? { since: instant(quarantine.since), until: instant(quarantine.until) }
      : null,
    channelsLost: snapshot.retryLater
      .parts('contact')
      .map(({ part: channel, since, ...why }) => ({ channel, ...why, since: instant(since) })),
    held: tellHeld(snapshot, seen),
    ...tellDecisions(snapshot, seen),
    signatures: approvers
      ? { need: approvers.need, pending: pendingApprovals(snapshot, { approvers, now }) }
      : null,
    /** What waits, if the configuration has canaries or windows. */
    delays: {
      ...(policy && {
        canaries: openIn(book).map(([guard, canary]) => tellCanary(guard, canary, policy)),
        lastCanary: book?.last ? tellCanaryEnd(book.last) : null,
      }),
      /** What the last run left to a later one because no window allowed it. */
      ...(config.windows.length > 0 && { waiting: tellWaiting(snapshot, seen) }),
    },
    optOutsByEvents: past ? { ...past, at: instant(past.at) } : null,
    // `limit`: requests per window. `others`: the share that other programs used, from 0 to 1.
    limits: Object.entries(seenLimits(meta)).map(([route, { at, ...limit }]) => ({
      route,
      ...limit,
      at: instant(at),
    })),
    running: tellProgress(snapshot, seen),
    restored: copied === undefined ? null : { backupOf: instant(copied) },
  };
}

function readRuns(snapshot: Snapshot, { config, leased, now }: Seen) {
  const { runs } = snapshot;
  const isRunning = runningOf(snapshot, leased);
  const last = (mode: string): ToldRun | null => {
    const [run] = runs.newest(1, { mode });
    return run ? tellRun(run, isRunning) : null;
  };
  // Runs that have not ended prove nothing yet.
  const ended = ['full', 'fast']
    .flatMap((mode) => runs.newest(runsSearched, { mode }))
    .filter(({ endedAt, status }) => endedAt !== null && status !== 'interrupted')
    .map((run) => ({ run, only: onlyIn(run) }));
  // The last full run of each record type, and its last fast run if no full run followed it.
  const latest = new Map<string, KeptRun & { type: string }>();
  const { contacts, templates } = config;
  for (const type of [...(contacts ? ['contacts'] : []), ...(templates ? ['templates'] : [])]) {
    const own = ended.filter(({ only }) => only === null || only === type);
    const full = own.find(({ run }) => run.mode === 'full')?.run;
    const fast = own.find(({ run }) => run.mode === 'fast')?.run;
    if (full) latest.set(full.id, { ...full, type });
    if (fast && isLater(fast, full)) latest.set(fast.id, { ...fast, type });
  }
  const failed = [...latest.values()].filter(({ status }) => status === 'failed');
  const proven = runs.proven();
  const full = last('full');
  return {
    proven: proven ? tellProof(proven, config, now) : null,
    lastRuns: { full, fast: last('fast') },
    firstLoad: proven || full?.status !== 'interrupted' ? null : tellFirstLoad(snapshot),
    failedRuns: failed.map((run) => {
      const { n = 1, since = null } = runs.failing({ mode: run.mode, type: run.type }) ?? {};
      return { ...tellRun(run, isRunning), failing: { runs: n, since: instantOrNull(since) } };
    }),
    alerts: alertsIn(snapshot, config),
  };
}

/** Counts what the stopped first runs have done, and what the last of them had still to do. */
function tellFirstLoad({ runs, figures }: Snapshot) {
  const [last, ...earlier] = runs
    .newest(runsSearched, { mode: 'full' })
    .map(({ id }) => figures.changesOf(id) ?? []);
  const count = (of: typeof last = [], isDone: boolean): number =>
    of.reduce((sum, { state, n }) => sum + ((state === 'acked') === isDone ? n : 0), 0);
  const left = count(last, false);
  const done = [last, ...earlier].reduce((sum, of) => sum + count(of, true), 0);
  return done + left === 0 ? null : { done, total: done + left };
}

const provenForMs = 36 * 3_600_000;

function tellProof(
  { id, startedAt, endedAt }: KeptRun,
  { schedule, alerts }: Seen['config'],
  now: number,
) {
  let staleBefore = Number.NEGATIVE_INFINITY;
  if (alerts.proofAgeMs !== undefined) staleBefore = now - alerts.proofAgeMs;
  else if (schedule) {
    const { patterns, timezone } = schedule;
    const due = patterns.full === undefined ? now : dueBefore(patterns.full, timezone, now);
    staleBefore = Math.min(due, now - provenForMs);
  }
  return {
    run: id,
    startedAt: instant(startedAt),
    endedAt: instantOrNull(endedAt),
    /** The age of its start: nothing later was read; null if the start is in the future. */
    ageMs: startedAt > now ? null : now - startedAt,
    /**
     * Whether it is older than `alerts.proofAge`; by default, older than 36 hours and also than the
     * last two full runs of the schedule, or never if there is no schedule.
     */
    stale: startedAt < staleBefore,
  };
}

function countProblems({ retryLater }: Snapshot) {
  const counts = retryLater.counts();
  const count = (kind: RecordTypeName, name: ProblemClass): number =>
    counts.reduce((sum, one) => sum + (one.kind === kind && one.class === name ? one.n : 0), 0);
  const perKind = (name: ProblemClass) => {
    return { contacts: count('contact', name), templates: count('template', name) };
  };
  const waiting = counts.filter((one) => one.parked === 1);
  const parked = { contacts: 0, templates: 0, since: oldest(waiting) };
  for (const { kind, n } of waiting) parked[pluralOf(kind)] += n;
  return {
    conflicts: perKind('conflict'),
    rejected: perKind('rejected'),
    invalid: perKind('invalid'),
    parked,
  };
}

function readOptOuts(snapshot: Snapshot, { config, names }: Seen) {
  const { unreadableOptOuts, retryLater, optOutReports, meta } = snapshot;
  const unreadable = unreadableOptOuts.list(peopleShown);
  const refused = retryLater.refusedOptOuts(peopleShown);
  const reports = optOutReports.counts({ kind: 'contact' });
  const stuck = stuckIn({ meta });
  const returns = {
    waiting: reports.waiting,
    since: instantOrNull(reports.waitingSince),
    stuck: stuck ? { ...stuck, since: instant(stuck.since) } : null,
    rejected: {
      count: reports.rejected,
      since: instantOrNull(reports.rejectedSince),
      people: optOutReports.rejected('contact', peopleShown).map((row) => ({
        key: names({ kind: 'contact', key: row.email }),
        channel: row.channel,
        reason: row.reason ?? '',
        fix: row.fix ?? '',
        since: instant(row.plannedAt),
      })),
    },
  };
  return {
    optOutsUnreadable: {
      count: unreadableOptOuts.count(),
      since: oldest(unreadable),
      people: unreadable.map((one) => ({
        key: names(one),
        reason: one.reason,
        fix: one.fix,
        since: instant(one.since),
      })),
    },
    optOutsRefused: {
      count: retryLater.countRefusedOptOuts(),
      since: oldest(refused),
      people: refused.map((one) => ({
        key: names(one),
        channel: one.part,
        reason: one.reason,
        fix: one.fix,
        since: instant(one.since),
        attempts: one.attempts,
        retryAt: instant(one.retryAt),
      })),
    },
    returns: config.contacts?.returns ? returns : null,
  };
}

function tellHeld(snapshot: Snapshot, { names, now, config }: Seen) {
  const { holds } = snapshot;
  const inForce = approvalIds(snapshot, { approvers: config.approvers, now });
  const { aheadMs = null } = storedDifference(snapshot.meta) ?? {};
  const passesAt = (plan: string, counts: Record<GuardClass, number>): number | undefined => {
    const ends = [...timedGuards].flatMap((guard) => {
      if (counts[guard] === 0) return [];
      const since = holds.oldest(guard, { plan, aheadMs });
      const { holdForMs = 0 } = config.guards[guardRows[guard].configKey];
      return since === undefined ? [] : [since + holdForMs];
    });
    return ends.toSorted((a, b) => a - b)[0];
  };
  return holds.current(inForce).map(({ plan, since, undoes, held: counts, ...of }) => {
    const { undecided, ready, waiting, rejected } = of;
    const changes = holds.rows(plan, inForce, { most: changesShown });
    return {
      plan,
      /** Whether all of it is approved, under this plan or another, so that no action is needed. */
      approved: !isAnyLeft(undecided),
      since: instant(since),
      ...counts,
      undecided,
      /** Those with an approved change that waits for a run, by guard class. */
      ready,
      /** The time from which changes of timed classes pass without approval; null: none are. */
      optOutsUntil: instantOrNull(passesAt(plan, counts)),
      /** The first changes that await approval, and how many more there are. */
      changes: changes.map(({ kind, key, op, part }) => ({ key: names({ kind, key }), op, part })),
      more: waiting - rejected - changes.length,
      /** The run that a plan of `undo` undoes. Only that command makes its changes. */
      ...(undoes !== null && { undoes }),
    };
  });
}

function tellDecisions(snapshot: Snapshot, { now, config }: Seen) {
  const { holds } = snapshot;
  return {
    approvals: approvalsInForce(snapshot, { approvers: config.approvers, now }).map(
      ({ id, plan, at, by, reason }) => ({
        plan,
        /** The hash of the approved part; null if the whole plan was approved. */
        part: id === plan ? null : id,
        at: instant(at),
        until: instant(at + weekMs),
        by,
        reason,
      }),
    ),
    rejections: holds.rejections().map(({ id: part, plan, at, by, reason }) => ({
      plan,
      /** The hash of the rejected part, under which the rejection can be taken back. */
      part,
      ...holds.counts({ list: part, approvals: [] }).held,
      at: instant(at),
      until: instant(at + rejectedForMs),
      by,
      reason,
    })),
  };
}

function tellCanaryEnd({ is: ended, at, says, counts, ...of }: CanaryEnd) {
  return { ...of, ended, at: instant(at), found: says ?? null, counts: counts ?? null };
}

const kept = storedJson<{
  only?: string | null;
  deferred?: Partial<Record<(typeof askedClasses)[number], number>>;
}>('the summary of a run');

function tellWaiting({ runs, meta }: Snapshot, { config: { windows, schedule }, now }: Seen) {
  const time = { at: now, timezone: schedule?.timezone ?? 'UTC' };
  const ended = ['full', 'fast']
    .flatMap((mode) => runs.newest(runsSearched, { mode }))
    .filter(({ status, summary }) => summary !== null && status !== 'failed')
    .toSorted((a, b) => (isLater(a, b) ? -1 : 1))
    .map(({ summary }) => kept.decode(summary ?? '{}'));
  // What waits for a canary is told with the canary.
  const canaries = new Set(openIn(storedCanaries(meta)).map(([of]) => of));
  return askedClasses.flatMap((of) => {
    const other = guardRows[of].recordType === 'contact' ? 'templates' : 'contacts';
    const records = ended.find(({ only }) => only !== other)?.deferred?.[of] ?? 0;
    if (records === 0 || canaries.has(of)) return [];
    /** When a window opens, with the time zone; null if one is open, or none within two weeks. */
    const opens = isClosed(windows, of, time) ? opening(windows, of, time) : undefined;
    return [{ class: of, records, opens: opens?.words ?? null, opensAt: instantOrNull(opens?.at) }];
  });
}

/** Returns the progress of the run about all people that a process does now; null if none does. */
function tellProgress(snapshot: Snapshot, { leased, now }: Seen) {
  const found = runInProgress(snapshot, leased);
  if (!found) return null;
  const { token: _, since, at, leftMs, waitMs, ...rest } = found;
  const still = (ms: number | null): number | null => {
    const left = Math.round((ms ?? 0) - Math.max(0, now - at));
    return left > 0 ? left : null;
  };
  const left = { leftMs: still(leftMs), waitMs: still(waitMs) };
  // `since` is the start of the run, and `at` the time of these figures.
  return { ...rest, ...left, since: instant(since), at: instant(at) };
}

function oldest(of: readonly { since: number | null }[]): string | null {
  const times = of.flatMap(({ since }) => since ?? []);
  return times.length === 0 ? null : instant(Math.min(...times));
}

/** Reads what the process that serves the mirror has recorded beside its snapshot. */
function healthOf(snapshot: string, now: number) {
  const { worker, outages } = readHealth(snapshot);
  const isOver = (one: Outage): boolean => one.endedAt !== undefined;
  const all = [...outages.filter((one) => !isOver(one)), ...outages.filter(isOver)];
  const life = worker && now - worker.seenAt > silentMs ? 'silent' : 'alive';
  return {
    /** What fails now, worst first; then what has ended, less than half an hour ago. */
    outages: all.map(tellOutage),
    /** The worker that serves the mirror, or served it last; null if none has. */
    worker: worker && {
      since: instant(worker.since),
      seenAt: instant(worker.endedAt ?? worker.seenAt),
      /** `silent`: no sign of life. `left`: it was stopped, or has given the mirror away. */
      is: worker.endedAt === undefined ? life : ('left' as const),
      ...(worker.reopens && life === 'alive' && { reopens: true }),
    },
  };
}

/** Returns the document of an outage. `seenAt`: when the part failed for the last time. */
export function tellOutage({ since, seenAt, endedAt, isAway: _, ...is }: Outage) {
  const ended = endedAt === undefined ? null : instant(endedAt);
  return { ...is, since: instant(since), seenAt: instant(seenAt), endedAt: ended };
}

export type ToldOutage = ReturnType<typeof tellOutage>;
