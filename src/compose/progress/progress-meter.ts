/**
 * Measures the progress of a run: what is done, how fast, and how long the rest takes. Renders it
 * as one line.
 */
import {
  changesOf,
  type Forecast,
  forecastAgain,
  noTime,
  type Rest,
  restOf,
} from '../../engine/report/duration-forecast.ts';
import type { Mirror, Progress } from '../../engine/context/mirror-context.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { lasting } from '../output/format-values.ts';

/** The shortest time over which a rate is meaningful. */
const leastMs = 500;
/** After this many windows, the measured rate gives a better estimate than the limits. */
const enoughWindows = 5;

/** The progress of a run at one moment. */
export interface Measured {
  phase: Progress['stage'];
  kind: string;
  done: number;
  /** Null while it is not known. */
  total: number | null;
  /** The share that is done, from 0 to 1; null if it is not known. */
  share: number | null;
  /** Null until it can be measured. */
  perSecond: number | null;
  /** Null if it is not known. */
  leftMs: number | null;
  quietMs: number;
  /** The rate limit of the route that takes longest; null if it is not known. */
  limit: { route: string; limit: number; windowMs: number } | null;
}

/** The latest progress of a record type, in monotonic milliseconds. */
interface News extends Progress {
  sinceMs: number;
  atMs: number;
}

/** The rest is estimated from the rate limits, and from the rate once enough was done. */
export function createMeter({
  clock,
  limits,
  reserve,
}: Pick<Mirror, 'clock' | 'limits' | 'reserve'>) {
  /** The latest progress by record type, newest last. */
  const news = new Map<string, News>();
  /** When each stage of a record type began; the rate is measured from then. */
  const began = new Map<string, number>();
  let forecast: Forecast | undefined;

  const hear = (progress: Progress): void => {
    const nowMs = clock.monotonic();
    const stage = progress.stage + progress.kind;
    const sinceMs = began.get(stage) ?? nowMs;
    began.set(stage, sinceMs);
    news.delete(progress.kind);
    news.set(progress.kind, { ...progress, sinceMs, atMs: nowMs });
  };
  return {
    hear,
    foresee(told: Forecast): void {
      forecast = told;
      news.clear();
      for (const [kind, of] of changesOf(told)) hear({ stage: 'applying', kind, done: 0, of });
    },
    /** Returns the current progress; undefined before the first news. */
    now(): Measured | undefined {
      const all = [...news.values()];
      const one = all.findLast(({ done, of = 0 }) => done < of) ?? all.at(-1);
      if (!one) return undefined;
      const seen = { limits: limits(), reserve };
      const known = one.stage === 'applying' ? forecast : undefined;
      const rest = known ? restOf(known, one, seen) : noTime;
      const { routes } = known ? forecastAgain(known, seen) : { routes: [] };
      const slowest = routes.find(({ route }) => route.startsWith(`${one.kind}s.`));
      const { route = '', limit = null, windowMs = null } = slowest ?? {};
      const isKnown = limit !== null && windowMs !== null;
      const found = measured(one, clock.monotonic(), rest);
      return { ...found, limit: isKnown ? { route, limit, windowMs } : null };
    },
  };
}

function measured(one: News, nowMs: number, rest: Rest): Omit<Measured, 'limit'> {
  const { stage: phase, kind, done, of, sinceMs, atMs } = one;
  const elapsedMs = nowMs - sinceMs;
  const isMeasured = done > 0 && elapsedMs >= leastMs;
  return {
    phase,
    kind,
    done,
    total: of ?? null,
    share: one.share ?? (of === undefined || of === 0 ? null : done / of),
    perSecond: isMeasured ? (done / elapsedMs) * 1000 : null,
    leftMs: leftOf(one, nowMs, rest),
    quietMs: nowMs - atMs,
  };
}

/**
 * Estimates the remaining time. The limits give a lower bound. While a window is exhausted, the
 * measured rate is meaningless.
 */
function leftOf(
  { done, of, share, sinceMs, atMs }: News,
  nowMs: number,
  rest: Rest,
): number | null {
  const elapsedMs = nowMs - sinceMs;
  const part = share ?? (of === undefined ? undefined : done / of);
  if (part === undefined || part >= 1) return null;
  if (share !== undefined && elapsedMs < leastMs) return null;
  const byLimits = rest.ms > 0 ? rest.ms - (nowMs - atMs) : 0;
  const byRate = ((1 - part) * elapsedMs) / part;
  const isEarly = byLimits > 0 && elapsedMs < enoughWindows * rest.windowMs;
  const ms = isEarly ? byLimits : Math.max(byLimits, byRate);
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}

/** Waiting times below this are not mentioned. */
const longQuietMs = 2000;

/**
 * Returns the line in full, such as "reading the CRM: 120,000 rows (48 %), 12,000/s, 11 s left",
 * and then shorter forms of it for narrow terminals.
 */
export function progressForms(measured: Measured): [string, ...string[]] {
  const { phase, kind, perSecond, leftMs, quietMs } = measured;
  const reading = kind === 'contact' ? 'reading the CRM' : `reading the ${kind}s`;
  const phases: Readonly<Record<string, string>> = { reading, listing: 'listing the platform' };
  const count = `${phases[phase] ?? phase}: ${countWords(measured)}`;
  const inSecond = (n: number): string => (n < 10 ? n.toFixed(1) : withCommas(Math.round(n)));
  const rate = perSecond === null ? [] : [`${inSecond(perSecond)}/s`];
  const left = leftMs === null ? [] : [`${lasting(leftMs)} left`];
  const seconds = Math.floor(quietMs / 1000);
  const quiet = quietMs < longQuietMs ? [] : [`waiting for ${lasting(seconds * 1000)}`];
  return [
    [count, ...rate, ...left, ...quiet].join(', '),
    [count, ...left].join(', '),
    [`${measured.phase}: ${shareWords(measured) || countWords(measured)}`, ...left].join(', '),
  ];
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
