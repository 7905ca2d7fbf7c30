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
export function alertsIn(snapshot: Snapshot, { alerts }: Pick<Config, 'alerts'>): Alert[] {
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
  run: ToldRun,
  earlier: readonly ToldRun[],
  alerts: Config['alerts'],
): Alert[] {
  const { refused, runTimeMs, deviation } = alerts;
  const fix = `\`crm-mirror runs ${run.run}\` shows what it did`;
  const found: Omit<Alert, 'run' | 'fix'>[] = [
    ...(refused === undefined ? [] : manyRefused(run, refused)),
    ...(runTimeMs === undefined ? [] : tookLong(run, runTimeMs)),
    ...(deviation === undefined ? [] : deviates(run, earlier, deviation)),
  ];
  return found.map((one) => ({ ...one, run: run.run, fix }));
}

type Found = Omit<Alert, 'run' | 'fix'>[];

function manyRefused({ mode, attempted }: ToldRun, most: number): Found {
  const { sent, refused } = attempted ?? { sent: 0, refused: 0 };
  if (refused < refusedAtLeast || refused * 100 <= sent * most) return [];
  const share = Math.round((refused * 1000) / sent) / 10;
  const many = `${withCommas(refused)} of ${counted(sent, 'change')} (${share} %)`;
  const text = `the platform refused ${many} of the last ${mode} run, and alerts.refused is ${most} %`;
  return [{ threshold: 'refused', text }];
}

function tookLong({ mode, ms }: ToldRun, mostMs: number): Found {
  if (ms === null || ms <= mostMs) return [];
  const text = `the last ${mode} run took ${lasting(ms)}, and alerts.runTime is ${lasting(mostMs)}`;
  return [{ threshold: 'runTime', text }];
}

/**
 * Compares the number of changes with what is usual: the median of the runs before, and how far
 * these differ from it at the median. Single large runs move neither.
 */
function deviates(run: ToldRun, earlier: readonly ToldRun[], times: number): Found {
  const before = earlier.filter(isComparable(run)).map(({ attempted }) => attempted?.sent ?? 0);
  if (!run.attempted || before.length < compared.few) return [];
  const usual = median(before);
  const spread = median(before.map((n) => Math.abs(n - usual)));
  const most = Math.floor(usual + Math.max(times * spread, changesAtLeast));
  const { sent } = run.attempted;
  if (sent <= most) return [];
  const text =
    `the last ${run.mode} run made ${counted(sent, 'change')}; the ${before.length} before it made ` +
    `${withCommas(usual)} at the median, and up to ${withCommas(most)} are usual (alerts.deviation is ${times})`;
  return [{ threshold: 'deviation', text }];
}

/** Returns whether another run ended well and covered the same record types. */
function isComparable({ only }: ToldRun): (run: ToldRun) => boolean {
  return (one) =>
    one.attempted !== null && one.only === only && /^(done|held|rejected)$/.test(one.status);
}
