/**
 * Provides the metrics for Prometheus. Some are counted when a run ends; the others are read when
 * Prometheus scrapes them.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../../domain/clock.ts';
import { byGuard } from '../../domain/guard-classes.ts';
import { heldIn, type KindSummary, type Summary } from '../../engine/report/run-summary.ts';
import { gaugesOf, type Watched } from './mirror-gauges.ts';

/** The reason why a delivery of events was not queued. */
export type Refusal = 'unsigned' | 'old' | 'forged' | 'unnamed' | 'duplicate' | 'unavailable';

/** The metrics of a worker. */
export interface Metrics {
  /** Counts a run that has ended, of any mode and status. */
  ended(mirror: string, summary: Summary): void;
  /** Counts a delivery that was queued with this many records. */
  accepted(mirror: string, records: number): void;
  /** Counts a delivery that was not queued. */
  refused(mirror: string, reason: Refusal): void;
  contentType: string;
  /** Returns all metrics in the Prometheus text format. */
  text(): Promise<string>;
}

const prefix = 'crm_mirror_';
const runSeconds = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400];
const refusals = ['unsigned', 'old', 'forged', 'unnamed', 'duplicate', 'unavailable'] as const;

/** What metrics tell besides the mirrors. */
export interface MetricsOptions {
  /** Returns the files of a folder whose mirrors are stopped. */
  stopped?: (() => readonly { file: string }[]) | undefined;
  /** Returns how many mirrors of a folder no worker serves; undefined if that is not known. */
  unserved?: (() => Promise<number | undefined>) | undefined;
  clock?: Pick<Clock, 'sleep'>;
}

/**
 * Creates the metrics. Their names begin with `crm_mirror_`, and all except those of the process
 * and of a folder have the label `mirror`. The lists may change.
 */
export function createMetrics(
  watched: readonly Watched[],
  { stopped = () => [], unserved = async () => undefined, clock }: MetricsOptions = {},
): Metrics {
  const register = new Registry();
  collectDefaultMetrics({ register, prefix });
  const ask = gaugesOf(register, watched, clock);
  const { accepted, refused, follow } = countEvents(register);
  follow(watched);
  const tellStopped = gaugeStopped(register);
  const tellUnserved = gaugeUnserved(register);
  return {
    ended: countRuns(register),
    accepted: (mirror, records) => accepted.inc({ mirror }, records),
    refused: (mirror, reason) => refused.inc({ mirror, reason }),
    contentType: register.contentType,
    async text() {
      follow(watched);
      await ask();
      tellStopped(stopped());
      tellUnserved(await unserved());
      return register.metrics();
    },
  };
}

function gaugeStopped(register: Registry): (files: readonly { file: string }[]) => void {
  const gauge = new Gauge({
    name: `${prefix}configuration_refused`,
    help: '1 for each file in the folder of a worker that cannot be used: its mirror is stopped',
    labelNames: ['file'],
    registers: [register],
  });
  return (files) => {
    gauge.reset();
    for (const { file } of files) gauge.set({ file }, 1);
  };
}

function gaugeUnserved(register: Registry): (mirrors: number | undefined) => void {
  const gauge = new Gauge({
    name: `${prefix}fleet_unserved`,
    help: 'Mirrors of the folder that no worker serves; absent while Redis is away',
    labelNames: [],
    registers: [register],
  });
  return (mirrors) => {
    gauge.remove();
    if (mirrors !== undefined) gauge.set(mirrors);
  };
}

function countEvents(register: Registry) {
  const accepted = new Counter({
    name: `${prefix}events_accepted_total`,
    help: 'Records of which an event was durably queued',
    labelNames: ['mirror'],
    registers: [register],
  });
  const refused = new Counter({
    name: `${prefix}events_refused_total`,
    help: 'Deliveries that were not queued, and why',
    labelNames: ['mirror', 'reason'],
    registers: [register],
  });
  const counted = new Set<string>();
  return {
    accepted,
    refused,
    /** Begins to count for each of these mirrors, and forgets the others. */
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

function countRuns(register: Registry): Metrics['ended'] {
  const counter = (name: string, help: string, ...labels: string[]) =>
    new Counter({
      name: prefix + name,
      help,
      labelNames: ['mirror', ...labels],
      registers: [register],
    });
  const runs = counter('runs_total', 'Runs that have ended', 'mode', 'status');
  const took = new Histogram({
    name: `${prefix}run_duration_seconds`,
    help: 'How long runs took',
    labelNames: ['mirror', 'mode'],
    buckets: runSeconds,
    registers: [register],
  });
  const requests = counter('requests_total', 'Requests to the platform', 'route');
  const limited = counter('requests_rate_limited_total', 'Requests the platform answered with 429');
  const changes = countChanges(register);
  return (mirror, summary) => {
    const { mode, status, ms } = summary;
    runs.inc({ mirror, mode, status });
    took.observe({ mirror, mode }, ms / 1000);
    for (const [route, n] of Object.entries(summary.requests.byRoute)) {
      requests.inc({ mirror, route }, n);
    }
    limited.inc({ mirror }, summary.requests.rateLimited);
    changes(mirror, summary);
  };
}

/**
 * Counts changes. Each run counts withheld changes again, with the guard class as `op`. Rejected
 * changes have no `op`.
 */
function countChanges(register: Registry): Metrics['ended'] {
  const changes = new Counter({
    name: `${prefix}changes_total`,
    help: 'Changes: acknowledged by the platform (acked), refused by it (rejected) or awaiting approval (held)',
    labelNames: ['mirror', 'kind', 'op', 'outcome'],
    registers: [register],
  });
  const differing = new Gauge({
    name: `${prefix}changes_wanted`,
    help: 'Changes the last full run found to be made: how far the two sides were apart',
    labelNames: ['mirror', 'kind', 'op'],
    registers: [register],
  });
  const ofKind = (mirror: string, kind: string, { applied, refused }: KindSummary): void => {
    for (const [op, n] of Object.entries(applied)) {
      changes.inc({ mirror, kind, op, outcome: 'acked' }, n);
    }
    changes.inc({ mirror, kind, op: '', outcome: 'rejected' }, refused);
  };
  return (mirror, { mode, only, plan, contacts, templates }) => {
    ofKind(mirror, 'contact', contacts);
    ofKind(mirror, 'template', templates);
    const held = heldIn({ contacts, templates });
    byGuard((op, { recordType: kind }) =>
      changes.inc({ mirror, kind, op, outcome: 'held' }, held[op]),
    );
    if (mode !== 'full' || plan === '') return;
    const seen = { contact: contacts, template: templates };
    for (const [kind, { changes: wanted }] of Object.entries(seen)) {
      if (only !== null && only !== `${kind}s`) continue;
      for (const [op, n] of Object.entries(wanted)) differing.set({ mirror, kind, op }, n);
    }
  };
}
