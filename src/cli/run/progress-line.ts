import {
  changesOf,
  noTime,
  restOf,
  type Forecast,
  type Rest,
} from '../../engine/report/duration-forecast.ts';
import type { Mirror, Progress } from '../../engine/context/mirror-context.ts';
import type { Shell } from '../compose/process-shell.ts';
import { lasting } from '../output/format-values.ts';

const redrawMs = 100;
/** How often to redraw without news, to show that the run is alive. */
const waitingMs = 1000;
/** The shortest time over which a rate is meaningful. */
const leastMs = 500;
/** After this many windows, the measured rate gives a better estimate than the limits. */
const enoughWindows = 5;
const shownStages = {
  reading: 'read',
  listing: 'listed',
  deciding: 'decided',
  applying: 'applied',
};

/** The progress line of a run. */
export interface ProgressLine {
  progress(progress: Progress): void;
  foresees(forecast: Forecast): void;
  close(): void;
}

/** The latest progress of a record type, in monotonic milliseconds. */
interface News extends Progress {
  sinceMs: number;
  atMs: number;
}

/**
 * Draws one line with the stage, the rate and the remaining time, which is estimated from the rate
 * limits, and from the measured rate once enough was done.
 */
export function createProgress(
  shell: Pick<Shell, 'interactive' | 'progress'>,
  mirror: Pick<Mirror, 'clock' | 'limits' | 'reserve'>,
): ProgressLine {
  const { clock, limits, reserve } = mirror;
  /** The latest progress by record type, newest last. */
  const news = new Map<string, News>();
  /** When each stage of a record type began; the rate is measured from then. */
  const began = new Map<string, number>();
  let drawnMs = Number.NEGATIVE_INFINITY;
  let forecast: Forecast | undefined;

  const hear = (progress: Progress): void => {
    const nowMs = clock.monotonic();
    const stage = progress.stage + progress.kind;
    const sinceMs = began.get(stage) ?? nowMs;
    began.set(stage, sinceMs);
    news.delete(progress.kind);
    news.set(progress.kind, { ...progress, sinceMs, atMs: nowMs });
  };
  const draw = (): void => {
    const all = [...news.values()];
    const one = all.findLast(isUnderWay) ?? all.at(-1);
    if (!one) return;
    drawnMs = clock.monotonic();
    const seen = { limits: limits(), reserve };
    const isApplied = one.stage === 'applying';
    const rest = isApplied && forecast ? restOf(forecast, one, seen) : noTime;
    shell.progress(lineOf(one, drawnMs, rest));
  };
  const closed = new AbortController();
  const keepDrawing = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(waitingMs, closed.signal);
      draw();
    }
  };
  if (shell.interactive) void keepDrawing().catch(() => undefined);
  return {
    progress(progress) {
      if (!shell.interactive) return;
      hear(progress);
      if (clock.monotonic() - drawnMs >= redrawMs || progress.done === progress.of) draw();
    },
    foresees(told) {
      forecast = told;
      news.clear();
      for (const [kind, of] of changesOf(told)) hear({ stage: 'applying', kind, done: 0, of });
    },
    close: () => closed.abort(),
  };
}

function isUnderWay({ done, of }: Progress): boolean {
  return of !== undefined && done < of;
}

function lineOf(one: News, nowMs: number, rest: Rest): string {
  const { stage, kind, done, of, sinceMs, atMs } = one;
  const total = of === undefined ? '' : ` of ${of.toLocaleString('en')}`;
  const rate = rateOf(done, nowMs - sinceMs);
  const left = of !== undefined && done < of ? leftOf({ ...one, of }, nowMs, rest) : '';
  const quietSeconds = Math.floor((nowMs - atMs) / 1000);
  const quiet = quietSeconds < 2 ? '' : `, waiting for ${lasting(quietSeconds * 1000)}`;
  const count = `${done.toLocaleString('en')}${total}`;
  return `${kind}s ${shownStages[stage]} ${count}${rate}${left}${quiet}`;
}

function rateOf(done: number, elapsedMs: number): string {
  const perSecond = (done / elapsedMs) * 1000;
  if (done === 0 || elapsedMs < leastMs) return '';
  return `, ${perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s`;
}

/**
 * Estimates the remaining time. The limits give a lower bound. While a window is exhausted, the
 * measured rate is meaningless.
 */
function leftOf(
  { done, of, sinceMs, atMs }: News & { of: number },
  nowMs: number,
  rest: Rest,
): string {
  const elapsedMs = nowMs - sinceMs;
  const byLimits = rest.ms > 0 ? rest.ms - (nowMs - atMs) : 0;
  const byRate = ((of - done) * elapsedMs) / done;
  const isEarly = byLimits > 0 && elapsedMs < enoughWindows * rest.windowMs;
  const ms = isEarly ? byLimits : Math.max(byLimits, byRate);
  return Number.isFinite(ms) && ms > 0 ? `, ${lasting(ms)} left` : '';
}
