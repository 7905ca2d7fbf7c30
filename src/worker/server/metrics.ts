/**
 * Provides the metrics for Prometheus. Some are counted when a run ends; the others are the state
 * of each mirror, which is read when Prometheus scrapes them.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../../domain/clock.ts';
import { byGuard, type GuardClass } from '../../domain/guard-classes.ts';
import { isExpected } from '../../domain/errors.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { heldIn, type Summary } from '../../engine/report/run-summary.ts';
import { inTurns } from '../../engine/context/work-in-parts.ts';
import type { Depth } from '../../compose/queues/run-queue.ts';

const prefix = 'crm_mirror_';
const runSeconds = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400];
const refusals = ['unsigned', 'old', 'forged', 'unnamed', 'duplicate', 'unavailable'] as const;
type Refusal = (typeof refusals)[number];

export type Metrics = ReturnType<typeof createMetrics>;

/** Names begin with `crm_mirror_`; all but those of process and folder have the label `mirror`. */
export function createMetrics(
  watched: readonly Watched[],
  {
    stopped = () => [],
    unserved = async () => undefined,
    clock,
  }: {
    stopped?: (() => readonly { file: string }[]) | undefined;
    /** Returns how many mirrors of a folder no worker serves; undefined if that is not known. */
    unserved?: (() => Promise<number | undefined>) | undefined;
    clock?: Clock;
  } = {},
) {
  const register = new Registry();
  collectDefaultMetrics({ register, prefix });
  const ask = gaugesOf(register, watched, clock);
  const { accepted, refused, follow } = countEvents(register);
  follow(watched);
  const refusedHelp =
    '1 for each file in the folder of a worker that cannot be used: its mirror is stopped';
  const unservedHelp = 'Mirrors of the folder that no worker serves; absent while Redis is away';
  const stoppedFiles = new Gauge(named(register, 'configuration_refused', refusedHelp, 'file'));
  const unservedMirrors = new Gauge(named(register, 'fleet_unserved', unservedHelp));
  return {
    ended: countRuns(register),
    /** Counts a delivery that was queued with this many records. */
    accepted: (mirror: string, records: number): void => accepted.inc({ mirror }, records),
    refused: (mirror: string, reason: Refusal): void => refused.inc({ mirror, reason }),
    contentType: register.contentType,
    async text(): Promise<string> {
      follow(watched);
      await ask();
      stoppedFiles.reset();
      for (const { file } of stopped()) stoppedFiles.set({ file }, 1);
      const mirrors = await unserved();
      unservedMirrors.remove();
      if (mirrors !== undefined) unservedMirrors.set(mirrors);
      return register.metrics();
    },
  };
}

function named(register: Registry, name: string, help: string, ...labelNames: string[]) {
  return { name: prefix + name, help, labelNames, registers: [register] };
}

function counterIn(register: Registry) {
  return (name: string, help: string, ...labels: string[]) =>
    new Counter(named(register, name, help, 'mirror', ...labels));
}

function countEvents(register: Registry) {
  const counter = counterIn(register);
  const accepted = counter('events_accepted_total', 'Records of which an event was durably queued');
  const refused = counter(
    'events_refused_total',
    'Deliveries that were not queued, and why',
    'reason',
  );
  const counted = new Set<string>();
  return {
    accepted,
    refused,
    follow(watched: readonly Watched[]): void {
      for (const { mirror } of watched) {
        counted.add(mirror);
        accepted.inc({ mirror }, 0);
        for (const reason of refusals) refused.inc({ mirror, reason }, 0);
      }
      for (const mirror of counted) {
        if (watched.some((one) => one.mirror === mirror)) continue;
        counted.delete(mirror);
        accepted.remove({ mirror });
        for (const reason of refusals) refused.remove({ mirror, reason });
      }
    },
  };
}

function countRuns(register: Registry): (mirror: string, summary: Summary) => void {
  const counter = counterIn(register);
  const runs = counter('runs_total', 'Runs that have ended', 'mode', 'status');
  const took = new Histogram({
    ...named(register, 'run_duration_seconds', 'How long runs took', 'mirror', 'mode'),
    buckets: runSeconds,
  });
  const requests = counter('requests_total', 'Requests to the platform', 'route');
  const limited = counter('requests_rate_limited_total', 'Requests the platform answered with 429');
  const changes = counter(
    'changes_total',
    'Changes: acknowledged by the platform (acked), refused by it (rejected) or awaiting approval (held)',
    'kind',
    'op',
    'outcome',
  );
  const wantedHelp = 'Changes the last full run found to be made: how far the two sides were apart';
  const differing = new Gauge(
    named(register, 'changes_wanted', wantedHelp, 'mirror', 'kind', 'op'),
  );
  return (mirror, summary) => {
    const { mode, status, ms, only, plan, contacts, templates } = summary;
    runs.inc({ mirror, mode, status });
    took.observe({ mirror, mode }, ms / 1000);
    for (const [route, n] of Object.entries(summary.requests.byRoute)) {
      requests.inc({ mirror, route }, n);
    }
    limited.inc({ mirror }, summary.requests.rateLimited);
    const seen = { contact: contacts, template: templates };
    for (const [kind, { applied, refused, changes: wanted }] of Object.entries(seen)) {
      for (const [op, n] of Object.entries(applied)) {
        changes.inc({ mirror, kind, op, outcome: 'acked' }, n);
      }
      changes.inc({ mirror, kind, op: '', outcome: 'rejected' }, refused);
      if (mode !== 'full' || plan === '' || (only !== null && only !== `${kind}s`)) continue;
      for (const [op, n] of Object.entries(wanted)) differing.set({ mirror, kind, op }, n);
    }
    // Each run counts withheld changes again, with the guard class as `op`.
    const held = heldIn({ contacts, templates });
    byGuard((op, { recordType: kind }) =>
      changes.inc({ mirror, kind, op, outcome: 'held' }, held[op]),
    );
  };
}

type PerKind = { contacts: number; templates: number } | null;

/** The part of `crm-mirror status --json` that becomes metrics. */
export interface GaugedStatus {
  attention: readonly { code: string }[];
  proven: { ageMs: number | null; stale: boolean } | null;
  alerts: readonly { threshold: 'refused' | 'runTime' | 'deviation' }[];
  recorded: PerKind;
  conflicts: PerKind;
  rejected: PerKind;
  invalid: PerKind;
  held: readonly Record<GuardClass, number>[];
  optOutsUnreadable: { count: number };
  optOutsRefused: { count: number };
  /** Null if this mirror does not report to the CRM who unsubscribed. */
  returns: { waiting: number; rejected: { count: number } } | null;
  erasuresUnfinished: { count: number };
  open: { unknown: number };
  paused: object | null;
  quarantine: object | null;
}

/** If a query throws an expected error (domain/errors.ts), its metrics are left out. */
export interface Watched {
  mirror: string;
  /** Returns whether this worker tells the figures: of several workers, the one that has it. */
  isTold(): boolean;
  standing(): Promise<GaugedStatus>;
  /** Returns what fails now, also if the status cannot be read. */
  faults(): readonly { code: string }[];
  limits(): Readonly<Record<string, RouteLimit>>;
  depths(): Promise<readonly Depth[]>;
  /** Returns the age of the oldest event in the queue, or undefined if no event is waiting. */
  lagMs(): Promise<number | undefined>;
}

const help = {
  served: '1 for each mirror whose state this worker has to tell, even if it cannot be read',
  last_proven_run_age_seconds: 'Since the last full run that ended well began; absent without one',
  attention: '1 for each code of what needs attention; absent if nothing does',
  records: 'Records on the platform that are ours',
  conflicts: 'Records on which the CRM and the platform disagree, and which are left alone',
  rejected: 'Records the platform refused',
  invalid: 'Records of the CRM that cannot be used',
  held: 'People, or templates, whose changes await approval',
  unreadable_opt_outs: 'Records of the CRM that may opt somebody out and cannot be read',
  opt_outs_refused: 'Opt-outs the platform refused: these people are still written to',
  returns_waiting: 'Opt-outs that are not reported to the CRM yet',
  returns_rejected: 'Opt-outs that the CRM refused',
  erasures_unfinished: 'Erasures that were requested and are not finished',
  outcomes_unknown: 'Changes whose outcome is unknown',
  paused: '1 while the mirror is paused',
  alert: '1 while the last runs, or the age of the proof, are above a threshold of `alerts`',
  quarantined: '1 while only opt-outs are sent',
  budget_limit: "Requests that a route allows in a window, according to the platform's answers",
  budget_left: 'Requests that remain in the window, without those left to other programs',
  event_lag_seconds: 'Age of the oldest unfinished event; absent while Redis is away',
  queue_jobs: 'Jobs by queue and state; absent while Redis is away',
};

const labels: Record<string, readonly string[]> = {
  attention: ['code'],
  records: ['kind'],
  conflicts: ['kind'],
  rejected: ['kind'],
  invalid: ['kind'],
  held: ['class'],
  alert: ['threshold'],
  budget_limit: ['route'],
  budget_left: ['route'],
  queue_jobs: ['queue', 'state'],
};

type Name = keyof typeof help;
/** One value, or values by the first label of the gauge, and below that by the next. */
type Values = number | undefined | { readonly [label: string]: Values };

/** Returns what asks all mirrors and sets the gauges; other work goes on if there is a clock. */
function gaugesOf(
  register: Registry,
  watched: readonly Watched[],
  clock: Clock | undefined,
): () => Promise<void> {
  const gauges = Object.entries(help).map(([name, about]): [string, Gauge] => {
    return [name, new Gauge(named(register, name, about, 'mirror', ...(labels[name] ?? [])))];
  });
  return async () => {
    const told: { mirror: string; values: Readonly<Record<string, Values>> }[] = [];
    const ours = watched.filter(({ isTold }) => isTold());
    for await (const one of clock ? inTurns({ clock }, ours) : ours) {
      told.push({ mirror: one.mirror, values: await askAll(one) });
    }
    for (const [name, gauge] of gauges) {
      gauge.reset();
      for (const { mirror, values } of told) {
        for (const [more, value] of seriesOf(values[name], labels[name] ?? [])) {
          gauge.set({ mirror, ...more }, value);
        }
      }
    }
  };
}

function seriesOf(
  values: Values,
  [label = '', ...labels]: readonly string[],
): [labels: Record<string, string>, value: number][] {
  if (values === undefined) return [];
  if (typeof values === 'number') return [[{}, values]];
  return Object.entries(values).flatMap(([key, inner]) =>
    seriesOf(inner, labels).map(([more, value]): [Record<string, string>, number] => {
      return [{ [label]: key, ...more }, value];
    }),
  );
}

/** Returns the values of all gauges; those of a query that failed are undefined. */
async function askAll(of: Watched): Promise<Record<Name, Values>> {
  const unlessFailed = async <T>(ask: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await ask();
    } catch (error) {
      if (isExpected(error)) return undefined;
      throw error;
    }
  };
  const [status, limits, depths, lagMs] = await Promise.all([
    unlessFailed(() => of.standing()),
    unlessFailed(() => of.limits()),
    unlessFailed(() => of.depths()),
    unlessFailed(async () => (await of.lagMs()) ?? 0),
  ]);
  const attention = status?.attention ?? of.faults();
  const perKind = (counts: PerKind | undefined): Values =>
    counts ? { contact: counts.contacts, template: counts.templates } : undefined;
  const isAbove = (name: GaugedStatus['alerts'][number]['threshold']): Values =>
    status && Number(status.alerts.some(({ threshold }) => threshold === name));
  const byRoute = (value: (limit: RouteLimit) => number | undefined): Values =>
    Object.fromEntries(Object.entries(limits ?? {}).map(([route, one]) => [route, value(one)]));
  return {
    served: 1,
    last_proven_run_age_seconds: seconds(status?.proven?.ageMs),
    attention: Object.fromEntries(attention.map(({ code }) => [code, 1])),
    records: perKind(status?.recorded),
    conflicts: perKind(status?.conflicts),
    rejected: perKind(status?.rejected),
    invalid: perKind(status?.invalid),
    held: status && byGuard((guard) => status.held.reduce((sum, one) => sum + one[guard], 0)),
    unreadable_opt_outs: status?.optOutsUnreadable.count,
    opt_outs_refused: status?.optOutsRefused.count,
    returns_waiting: status?.returns?.waiting,
    returns_rejected: status?.returns?.rejected.count,
    erasures_unfinished: status?.erasuresUnfinished.count,
    outcomes_unknown: status?.open.unknown,
    alert: {
      refused: isAbove('refused'),
      run_time: isAbove('runTime'),
      deviation: isAbove('deviation'),
      proof_age: status && Number(status.proven?.stale === true),
    },
    paused: status && Number(status.paused !== null),
    quarantined: status && Number(status.quarantine !== null),
    budget_limit: byRoute(({ limit }) => limit),
    budget_left: byRoute(({ left }) => left),
    event_lag_seconds: seconds(lagMs),
    queue_jobs: Object.fromEntries(
      (depths ?? []).map(({ queue, waiting, active, delayed }) => {
        return [queue, { waiting, active, delayed }];
      }),
    ),
  };
}

function seconds(ms: number | null | undefined): number | undefined {
  return ms === undefined || ms === null ? undefined : ms / 1000;
}
