/** Says how long a run takes if that may surprise, and shows and stores its progress. */
import {
  type Forecast,
  forecastAgain,
  leastMs,
  renderForecast,
} from '../../engine/report/duration-forecast.ts';
import type { Mirror, Progress } from '../../engine/context/mirror-context.ts';
import type { Shell } from '../../compose/process-shell.ts';
import {
  createProgress,
  type ProgressOutlets,
  enterRun,
  type Pace,
} from '../../compose/run-progress.ts';
import { Interrupted, renderProblem } from '../../domain/errors.ts';
import { pausedOf } from '../../compose/mirror-files.ts';
import type { Config } from '../../config/config.ts';
import { intervalOf } from '../../config/schema/cron-pattern.ts';
import { lasting } from '../../compose/output/format-values.ts';

/**
 * Returns the hooks of a run, which the caller closes at its end, and its shell: `pause --stop`
 * stops it, too. Only a run about all people is stored for `status`, and stopped by a pause.
 */
export function followRun(
  shell: Shell,
  mirror: Mirror,
  {
    writes,
    isForAll,
    outlets,
    ...about
  }: Foreseen & { writes: boolean; isForAll: boolean; outlets: ProgressOutlets },
) {
  const said = foreseeing(shell, mirror, about);
  const command = shell.argv?.[0] ?? '';
  const entry = writes && isForAll ? enterRun(mirror, { mode: about.mode, command }) : undefined;
  const paused = new AbortController();
  const beat = (): void => {
    if (!pausedOf(mirror.snapshot.meta)?.isStop || paused.signal.aborted) return;
    shell.note(`crm-mirror: ${mirror.name}: a pause stops this run; what it has done is recorded`);
    paused.abort(new Interrupted('SIGTERM'));
  };
  const line = createProgress({ ...outlets, store: entry?.store, beat: entry && beat }, mirror);
  return {
    shell: { ...shell, stop: AbortSignal.any([shell.stop, paused.signal]) },
    progress(progress: Progress): void {
      said.progress(progress);
      line.progress(progress);
    },
    foresees(forecast: Forecast): void {
      if (writes) line.foresees(forecast);
      said.foresees(forecast);
    },
    close(): void {
      line.close();
      entry?.end();
    },
  };
}

/** The duration above which a run is announced. */
const longMs = 10 * 60_000;
/** The shortest time between two runs that a schedule can ask for. */
const shortestMs = 1_000;

interface Foreseen {
  config: { mirror: string; schedule?: Config['schedule'] };
  mode: 'full' | 'fast';
  firstLoad?: boolean;
}

/** The notice comes before the run writes, or later if no limit was known at that time. */
export function foreseeing(shell: Shell, mirror: Pace, about: Foreseen) {
  let unknown: Forecast | undefined;
  const say = (forecast: Forecast): void => {
    unknown = isWorthSaying(forecast) ? undefined : forecast;
    sayForecast(forecast, shell, { ...about, now: mirror.clock.now() });
  };
  return {
    foresees: say,
    /** Prints the notice as soon as a response shows the limit that was unknown. */
    progress({ stage }: { stage: Progress['stage'] }) {
      if (!unknown || stage !== 'applying') return;
      const forecast = forecastAgain(unknown, { limits: mirror.limits(), reserve: mirror.reserve });
      if (isWorthSaying(forecast)) say(forecast);
    },
  };
}

/** The limit of the route with the most requests is known, or the run is long in any case. */
function isWorthSaying(forecast: Forecast): boolean {
  const { routes } = forecast;
  const most = Math.max(0, ...routes.map(({ requests }) => requests));
  const isKnown = routes.every(({ requests, ms }) => requests < most || ms !== null);
  return isKnown || leastMs(forecast) >= longMs;
}

/** Says it if the run is long, or does not fit into its schedule. `now`: epoch ms. */
export function sayForecast(
  forecast: Forecast,
  { note }: Shell,
  { config, mode, firstLoad = false, now }: Foreseen & { now: number },
): void {
  const { ms, readMs } = forecast;
  // Known routes count even if the limit of another route is unknown.
  const knownMs = leastMs(forecast);
  const allMs = readMs + knownMs;
  const { patterns, timezone = 'UTC' } = config.schedule ?? {};
  const pattern = allMs < shortestMs ? undefined : patterns?.[mode];
  const everyMs = pattern === undefined ? undefined : intervalOf(pattern, { timezone, now });
  const about = ms === null ? 'at least' : 'about';
  const isTooLong = everyMs !== undefined && allMs > everyMs;
  if (!firstLoad && !isTooLong && knownMs < longMs) return;
  for (const line of renderForecast(forecast, lasting)) note(`crm-mirror: ${line}`);
  if (!isTooLong) return;
  const late = renderProblem({
    reason:
      `this run cannot finish within its schedule: it takes ${about} ${lasting(allMs)}, ` +
      `and a ${mode} run is due every ${lasting(everyMs)}`,
    fix:
      'what is due meanwhile waits for it; schedule fewer, ' +
      'or have the platform raise the limits',
  });
  note(`crm-mirror: ${config.mirror}: ${late}`);
}
