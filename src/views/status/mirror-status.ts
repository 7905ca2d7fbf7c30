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
import { auditLogState } from '../audit/log-state.ts';
import { explain } from '../../compose/output/failure-report.ts';
import {
  byEvents,
  decisionsOf,
  provenBy,
  quarantinedIn,
  returnsOf,
  type ToldApproval,
  type ToldDelays,
  type ToldSignatures,
  type ToldHeld,
  type ToldProof,
  type ToldRejection,
  type ToldReturns,
} from './status-sections.ts';
import { healthOf, type ToldHealth } from './mirror-health.ts';
import { type Alert, alertsIn } from './alert-thresholds.ts';
import { progressOf, type ToldProgress } from './run-progress.ts';
import { onlyIn, pluralOf, runningOf, tellRun, type ToldRun } from './run-history.ts';
import { isLater, type KeptRun } from '../../store/tables/run-history.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import type { Names } from '../lookup/person-names.ts';
import { copiedAt } from '../../compose/snapshot-marks.ts';
import { pausedOf, tellPaused, type ToldPause } from '../../compose/pause-mark.ts';
import { absenceRulesOf } from '../../compose/mirror-parts.ts';
import { type Missing, missingOf } from '../lookup/missing-people.ts';
import { instant } from '../../compose/output/format-values.ts';
import { exitCode } from '../../compose/output/exit-codes.ts';

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
