import { forecastAgain, type Forecast } from '../plan/forecast.ts';
import type { Mirror, Progress } from '../sync/mirror.ts';
import type { Shell } from './shell.ts';
import { lasting } from './words.ts';

const redrawMs = 100;
/** As often without news, so that it is seen to be alive. */
const waitingMs = 1000;
/** After so many windows what was done tells more than the limit. */
const enoughWindows = 5;
const shownStages = {
  reading: 'read',
  listing: 'listed',
  deciding: 'decided',
  applying: 'applied',
};

export interface Line {
  progress(progress: Progress): void;
  foresees(forecast: Forecast): void;
  close(): void;
}

/**
 * One line that tells what is going on, at which rate, and for how much longer: by the limits, and
 * once enough was done, by that.
 */
export function createProgress(
  shell: Pick<Shell, 'interactive' | 'progress'>,
  mirror: Pick<Mirror, 'clock' | 'limits' | 'reserve'>,
): Line {
  const { clock } = mirror;
  const began = new Map<string, number>();
  let drawn = 0;
  let latest: { progress: Progress; at: number } | undefined;
  let forecast: Forecast | undefined;

  const draw = (now: number): void => {
    if (!latest) return;
    const { stage, kind, done, of } = latest.progress;
    const elapsedMs = now - (began.get(stage + kind) ?? now);
    const total = of === undefined ? '' : ` of ${of.toLocaleString('en')}`;
    const rate = rateOf((done / elapsedMs) * 1000);
    const isOver = of === undefined || done >= of;
    const left = isOver ? '' : leftOf({ done, of, elapsedMs }, foreseen(latest.progress));
    const quietMs = now - latest.at;
    const quiet =
      quietMs < 2 * waitingMs ? '' : `, waiting for ${lasting(Math.floor(quietMs / 1000) * 1000)}`;
    const count = `${done.toLocaleString('en')}${total}`;
    drawn = now;
    shell.progress(`${kind}s ${shownStages[stage]} ${count}${rate}${left}${quiet}`);
  };
  const foreseen = ({ stage, kind, done, of }: Progress): Forecast | undefined => {
    if (stage !== 'applying' || !forecast || of === undefined) return undefined;
    const routes = forecast.routes.filter(({ route }) => route.startsWith(`${kind}s.`));
    const { reserve } = mirror;
    return forecastAgain(
      { ...forecast, routes },
      { limits: mirror.limits(), reserve },
      1 - done / of,
    );
  };
  const closed = new AbortController();
  const keepDrawing = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(waitingMs, closed.signal);
      draw(clock.monotonic());
    }
  };
  if (shell.interactive) void keepDrawing().catch(() => undefined);
  return {
    progress(progress) {
      if (!shell.interactive) return;
      const now = clock.monotonic();
      const { stage, kind, done, of } = progress;
      if (!began.has(stage + kind)) began.set(stage + kind, now);
      latest = { progress, at: now };
      if (now - drawn >= redrawMs || done === of) draw(now);
    },
    foresees: (told) => void (forecast = told),
    close: () => closed.abort(),
  };
}

function rateOf(perSecond: number): string {
  if (perSecond === 0 || !Number.isFinite(perSecond)) return '';
  return `, ${perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s`;
}

function leftOf(
  { done, of, elapsedMs }: { done: number; of: number; elapsedMs: number },
  foreseen: Forecast | undefined,
): string {
  const [slowest] = foreseen?.routes ?? [];
  const byLimits = slowest?.ms ?? 0;
  const isEarly = elapsedMs < enoughWindows * (slowest?.windowMs ?? 0);
  if (byLimits > 0 && isEarly) return `, ${lasting(byLimits)} left`;
  const ms = ((of - done) * elapsedMs) / done;
  return Number.isFinite(ms) && ms > 0 ? `, ${lasting(ms)} left` : '';
}
