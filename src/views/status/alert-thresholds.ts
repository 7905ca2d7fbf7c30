/**
 * Compares the last runs with the thresholds of the configuration (`alerts`). Crossing one needs
 * attention, and stops nothing. A threshold that is not set is never crossed; `alerts.proofAge` is
 * in mirror-status.ts. All functions except `alertsIn` are pure.
 */
import type { Config } from '../../config/config.ts';
import { median } from '../../domain/values/median.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { isLater, type KeptRun } from '../../store/tables/run-history.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { type ToldRun, tellRun } from './run-history.ts';

/** A threshold that a run has crossed. */
export interface Alert {
  threshold: 'refused' | 'runTime' | 'deviation';
  /** The id of the run. */
  run: string;
  text: string;
  fix: string;
}

/** A few refused changes are problems of single records. */
const refusedAtLeast = 3;
/** With fewer runs than `few`, nothing is usual yet. */
const compared = { few: 10, most: 30 };
/** A run that differs by fewer changes is usual, whatever the others made. */
const changesAtLeast = 20;

/** Returns the thresholds that the last full run, and the last fast run after it, have crossed. */
export function alertsIn(snapshot: Snapshot, { alerts }: Config): Alert[] {
  if (Object.values(alerts).every((value) => value === undefined)) return [];
  const of = (mode: string): KeptRun[] =>
    snapshot.runs.lastOf(mode, compared.most + 1).filter(({ endedAt }) => endedAt !== null);
  const crossed = ([last, ...earlier]: KeptRun[]): Alert[] => {
    const tell = (run: KeptRun) => tellRun(run, () => false);
    return last ? alertsOf(tell(last), earlier.map(tell), alerts) : [];
  };
  const full = of('full');
  const fast = of('fast');
  const isFastLater = fast[0] && isLater(fast[0], full[0]);
  return [...crossed(full), ...(isFastLater ? crossed(fast) : [])];
}

/** Returns the thresholds that a run has crossed; `earlier` are the runs of the same mode. */
export function alertsOf(
  { run, mode, only, ms, attempted }: ToldRun,
  earlier: readonly ToldRun[],
  { refused: mostRefused, runTimeMs, deviation }: Config['alerts'],
): Alert[] {
  const alerts: Alert[] = [];
  const add = (threshold: Alert['threshold'], text: string) =>
    alerts.push({ threshold, run, text, fix: `\`crm-mirror runs ${run}\` shows what it did` });
  const { sent, refused } = attempted ?? { sent: 0, refused: 0 };
  if (
    mostRefused !== undefined &&
    refused >= refusedAtLeast &&
    refused * 100 > sent * mostRefused
  ) {
    const share = Math.round((refused * 1000) / sent) / 10;
    const many = `${withCommas(refused)} of ${counted(sent, 'change')} (${share} %)`;
    add(
      'refused',
      `the platform refused ${many} of the last ${mode} run, and alerts.refused is ${mostRefused} %`,
    );
  }
  if (runTimeMs !== undefined && ms !== null && ms > runTimeMs) {
    const is = `and alerts.runTime is ${lasting(runTimeMs)}`;
    add('runTime', `the last ${mode} run took ${lasting(ms)}, ${is}`);
  }
  // A run is compared with those that ended well and covered the same record types.
  const before = earlier
    .filter((one) => one.only === only && /^(done|held|rejected)$/.test(one.status))
    .flatMap((one) => one.attempted?.sent ?? []);
  if (deviation === undefined || !attempted || before.length < compared.few) return alerts;
  // Single large runs move neither the median nor how far runs differ from it at the median.
  const usual = median(before);
  const spread = median(before.map((n) => Math.abs(n - usual)));
  const most = Math.floor(usual + Math.max(deviation * spread, changesAtLeast));
  if (sent > most) {
    add(
      'deviation',
      `the last ${mode} run made ${counted(sent, 'change')}; the ${before.length} before it made ` +
        `${withCommas(usual)} at the median, and up to ${withCommas(most)} are usual (alerts.deviation is ${deviation})`,
    );
  }
  return alerts;
}
