/**
 * Provides the metrics for Prometheus. Some are counted when a run ends; the others are the state
 * of each mirror, which is read when Prometheus scrapes them.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../../domain/clock.ts';
import { byGuard, type GuardClass, guardNames } from '../../domain/guard-classes.ts';
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

/**
 * Creates the metrics. Their names begin with `crm_mirror_`, and all except those of the process
 * and of a folder have the label `mirror`. The lists may change.
 */
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
    /** Counts a run that has ended, of any mode and status. */
    ended: countRuns(register),
    /** Counts a delivery that was queued with this many records. */
    accepted: (mirror: string, records: number): void => accepted.inc({ mirror }, records),
    /** Counts a delivery that was not queued. */
    refused: (mirror: string, reason: Refusal): void => refused.inc({ mirror, reason }),
    contentType: register.contentType,
    /** Returns all metrics in the Prometheus text format. */
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

function countEvents(register: Registry) {
  const counter = (name: string, help: string, ...labels: string[]) =>
    new Counter(named(register, name, help, 'mirror', ...labels));
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
  const counter = (name: string, help: string, ...labels: string[]) =>
    new Counter(named(register, name, help, 'mirror', ...labels));
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
  budget_left: 'Requests that remain in the window',
  event_lag_seconds: 'Age of the oldest unfinished event; absent while Redis is away',
  queue_jobs: 'Jobs by queue and state; absent while Redis is away',
};

const kinds = [
  ['contact', 'contacts'],
  ['template', 'templates'],
] as const;

type Name = keyof typeof help;
type Told = [name: Name, value: number | undefined, labels?: Record<string, string>];

/**
 * Creates the gauges and returns the function that queries all mirrors and sets the gauges. Other
 * work of the process goes on meanwhile if there is a clock: hundreds of snapshots take seconds.
 */
function gaugesOf(
  register: Registry,
  watched: readonly Watched[],
  clock: Clock | undefined,
): () => Promise<void> {
  const gaugeOf = (name: string, about: string) =>
    new Gauge(named(register, name, about, 'mirror', ...(labels[name] ?? [])));
  const gauges = new Map(Object.entries(help).map(([name, about]) => [name, gaugeOf(name, about)]));
  return async () => {
    const told: Awaited<ReturnType<typeof askAll>>[] = [];
    const ours = watched.filter(({ isTold }) => isTold());
    for await (const one of clock ? inTurns({ clock }, ours) : ours) told.push(await askAll(one));
    for (const gauge of gauges.values()) gauge.reset();
    for (const { mirror, all } of told) {
      for (const [name, value, more] of all) {
        if (value !== undefined) gauges.get(name)?.set({ mirror, ...more }, value);
      }
    }
  };
}

const labels: Record<string, string[]> = {
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

async function askAll(of: Watched): Promise<{ mirror: string; all: Told[] }> {
  const found = await Promise.all([
    unlessFailed(
      async () => standing(await of.standing()),
      () => attentionRows(of.faults()),
    ),
    unlessFailed(async () =>
      Object.entries(of.limits()).flatMap(([route, { limit, left }]): Told[] => [
        ['budget_limit', limit, { route }],
        ['budget_left', left, { route }],
      ]),
    ),
    unlessFailed(async () =>
      (await of.depths()).flatMap(({ queue, waiting, active, delayed }) =>
        Object.entries({ waiting, active, delayed }).map(([state, n]): Told => [
          'queue_jobs',
          n,
          { queue, state },
        ]),
      ),
    ),
    unlessFailed(async () => [['event_lag_seconds', seconds((await of.lagMs()) ?? 0)]]),
  ]);
  return { mirror: of.mirror, all: [['served', 1], ...found.flat()] };
}

async function unlessFailed(
  ask: () => Promise<Told[]>,
  otherwise: () => Told[] = () => [],
): Promise<Told[]> {
  try {
    return await ask();
  } catch (error) {
    if (isExpected(error)) return otherwise();
    throw error;
  }
}

function attentionRows(lines: readonly { code: string }[]): Told[] {
  return lines.map(({ code }) => ['attention', 1, { code }]);
}

function standing(of: GaugedStatus): Told[] {
  const { proven, held, erasuresUnfinished, open, paused, quarantine } = of;
  const perKind = (name: Name, counts: PerKind): Told[] =>
    kinds.map(([kind, plural]) => [name, counts?.[plural], { kind }]);
  const heldOf = (guard: GuardClass): Told => {
    const people = held.reduce((sum, one) => sum + one[guard], 0);
    return ['held', people, { class: guard }];
  };
  return [
    ...attentionRows(of.attention),
    ['last_proven_run_age_seconds', seconds(proven?.ageMs ?? undefined)],
    ...perKind('records', of.recorded),
    ...perKind('conflicts', of.conflicts),
    ...perKind('rejected', of.rejected),
    ...perKind('invalid', of.invalid),
    ...guardNames.map(heldOf),
    ['unreadable_opt_outs', of.optOutsUnreadable.count],
    ['opt_outs_refused', of.optOutsRefused.count],
    ['returns_waiting', of.returns?.waiting],
    ['returns_rejected', of.returns?.rejected.count],
    ['erasures_unfinished', erasuresUnfinished.count],
    ['outcomes_unknown', open.unknown],
    ...alertsOf(of),
    ['paused', paused ? 1 : 0],
    ['quarantined', quarantine ? 1 : 0],
  ];
}

function alertsOf({ alerts, proven }: GaugedStatus): Told[] {
  const rows = [
    ['refused', 'refused'],
    ['run_time', 'runTime'],
    ['deviation', 'deviation'],
  ] as const;
  const told = rows.map(([threshold, name]): Told => {
    return ['alert', Number(alerts.some((one) => one.threshold === name)), { threshold }];
  });
  return [...told, ['alert', Number(proven?.stale === true), { threshold: 'proof_age' }]];
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}
