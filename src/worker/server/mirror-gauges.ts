/** Reads the state of each mirror at the moment when Prometheus scrapes the metrics. */
import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../domain/clock.ts';
import { isExpected } from '../../domain/errors.ts';
import { guardNames, type GuardClass } from '../../domain/guard-classes.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { inTurns } from '../../engine/context/work-in-parts.ts';
import type { Depth } from '../../compose/queues/queue-view.ts';

type PerKind = { contacts: number; templates: number } | null;

/**
 * The part of a mirror's status that becomes metrics, in the format of `crm-mirror status --json`.
 */
export interface GaugedStatus {
  /** What needs attention, worst first. */
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

/**
 * A mirror that can be queried. If a query throws an expected error (domain/errors.ts), its metrics
 * are left out.
 */
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
export function gaugesOf(
  register: Registry,
  watched: readonly Watched[],
  clock: Pick<Clock, 'sleep'> | undefined,
): () => Promise<void> {
  const gaugeOf = (name: string, about: string) =>
    new Gauge({
      name: `crm_mirror_${name}`,
      help: about,
      labelNames: ['mirror', ...(labels[name] ?? [])],
      registers: [register],
    });
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
    unlessFailed(async () => Object.entries(of.limits()).flatMap(budget)),
    unlessFailed(async () => (await of.depths()).flatMap(depth)),
    unlessFailed(async () => [lag(await of.lagMs())]),
  ]);
  return { mirror: of.mirror, all: [['served', 1], ...found.flat()] };
}

/**
 * Returns `otherwise`, by default nothing, for a query that fails with an expected error, so that
 * the others still produce metrics.
 */
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

function budget([route, { limit, left }]: [string, RouteLimit]): Told[] {
  return [
    ['budget_limit', limit, { route }],
    ['budget_left', left, { route }],
  ];
}

function depth({ queue, waiting, active, delayed }: Depth): Told[] {
  return Object.entries({ waiting, active, delayed }).map(([state, n]) => [
    'queue_jobs',
    n,
    { queue, state },
  ]);
}

function lag(ms: number | undefined): Told {
  return ['event_lag_seconds', seconds(ms ?? 0)];
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}
