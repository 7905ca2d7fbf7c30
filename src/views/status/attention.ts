/** A line that needs attention, and which of them is worse. All functions are pure. */
import { range } from '../../compose/output/format-values.ts';

/** The codes, worst first. They stay the same even if the wording changes. */
const codes = [
  'snapshot_unreadable',
  'ledger',
  'opt_outs_unreadable',
  'opt_outs_refused',
  'worker_dead',
  'disk_full',
  'redis_away',
  'redis_evicts',
  'key_refused',
  'platform_away',
  'source_away',
  'templates_away',
  'clock_differs',
  'no_snapshot',
  'returns_stuck',
  'returns_rejected',
  'erasure_unfinished',
  'channel_lost',
  'held',
  'opt_outs_many',
  'never_proven',
  'stale',
  'run_failed',
  'run_interrupted',
  'alert_refused',
  'alert_run_time',
  'alert_deviation',
  'outcomes_unknown',
  'quarantined',
  'paused',
  'restored',
  'unmanaged',
  'audit_log',
] as const;

export interface Attention {
  code: (typeof codes)[number];
  text: string;
  fix: string;
  /** Since when, if that is known. */
  since: string | null;
  /** Reported daily instead of once, because it changes without waiting for a person. */
  isDaily?: true;
}

/** The codes of parts that fail. A process may notice them itself, and have recorded them. */
const single: ReadonlySet<string> = new Set([
  'disk_full',
  'redis_away',
  'key_refused',
  'platform_away',
  'source_away',
  'templates_away',
  'clock_differs',
  'stale',
] satisfies Attention['code'][]);

/** Sorts lines, and keeps one of those that say the same. */
export function worstFirst(all: readonly Attention[]): Attention[] {
  const kept = all.filter(
    ({ code }, at) => !single.has(code) || all.findIndex((one) => one.code === code) === at,
  );
  return kept.toSorted((a, b) => rank(a) - rank(b));
}

/** Returns whether a code is about the present, and not about what a run has left. */
export function isPresent(code: string): boolean {
  return single.has(code);
}

/** Returns how bad a line is: 0 is the worst. */
export function rank({ code }: { code: string }): number {
  return codes.findIndex((one) => one === code);
}

/** Formats how long ago something began. */
export function ago(since: string | null, at: string): string {
  return since === null ? 'unknown' : range(Math.max(0, Date.parse(at) - Date.parse(since)));
}
