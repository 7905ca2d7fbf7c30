/** Renders the progress of a run as one line. All functions are pure. */
import { counted, withCommas } from '../../domain/values/counted.ts';
import { lasting } from '../output/format-values.ts';
import type { Measured } from './progress-meter.ts';

/** Waiting times below this are not mentioned. */
const longQuietMs = 2000;

/**
 * Returns the line in full, such as "reading the CRM: 120,000 rows (48 %), 12,000/s, 11 s left",
 * and then shorter forms of it for narrow terminals.
 */
export function progressForms(measured: Measured): [string, ...string[]] {
  const { perSecond, leftMs, quietMs } = measured;
  const count = `${phaseWords(measured)}: ${countWords(measured)}`;
  const rate = perSecond === null ? [] : [rateWords(perSecond)];
  const left = leftMs === null ? [] : [`${lasting(leftMs)} left`];
  const seconds = Math.floor(quietMs / 1000);
  const quiet = quietMs < longQuietMs ? [] : [`waiting for ${lasting(seconds * 1000)}`];
  return [
    [count, ...rate, ...left, ...quiet].join(', '),
    [count, ...left].join(', '),
    [`${measured.phase}: ${shareWords(measured) || countWords(measured)}`, ...left].join(', '),
  ];
}

function phaseWords({ phase, kind }: Measured): string {
  if (phase === 'reading') return kind === 'contact' ? 'reading the CRM' : `reading the ${kind}s`;
  return phase === 'listing' ? 'listing the platform' : phase;
}

function countWords(measured: Measured): string {
  const { phase, kind, done, total } = measured;
  const noun = phase === 'reading' && kind === 'contact' ? 'row' : kind;
  const what = phase === 'applying' ? `${kind} change` : noun;
  if (total !== null) return `${withCommas(done)} of ${counted(total, what)}`;
  const share = shareWords(measured);
  return `${counted(done, what)}${share === '' ? '' : ` (${share})`}`;
}

function shareWords({ share }: Measured): string {
  return share === null ? '' : `${Math.floor(share * 100)} %`;
}

function rateWords(perSecond: number): string {
  const rate = perSecond < 10 ? perSecond.toFixed(1) : withCommas(Math.round(perSecond));
  return `${rate}/s`;
}
