/** How long a run will take, said before it begins to write: where somebody would wonder. */
import type { Config } from '../../config/config.ts';
import { intervalOf } from '../../config/schema/cron-pattern.ts';
import { forecastAgain, leastMs, type Forecast } from '../../engine/report/duration-forecast.ts';
import { renderForecast } from '../../engine/report/forecast-text.ts';
import type { Mirror, Progress } from '../../engine/context/mirror-context.ts';
import type { Shell } from '../compose/process-shell.ts';
import { lasting } from '../output/format-values.ts';

/** A run that takes longer says so. */
const longMs = 10 * 60_000;

export interface Foreseen {
  config: Pick<Config, 'mirror' | 'schedule'>;
  mode: 'full' | 'fast';
  /** Says it however quick it is. */
  firstLoad?: boolean;
}

export interface Foreseeing {
  foresees(forecast: Forecast): void;
  /** An answer may be the first to tell a limit. */
  progress(progress: Pick<Progress, 'stage'>): void;
}

/** Says it before the run begins to write; and, where nobody knew, when the answers have told. */
export function foreseeing(
  shell: Pick<Shell, 'note'>,
  mirror: Pick<Mirror, 'limits' | 'reserve' | 'clock'>,
  about: Foreseen,
): Foreseeing {
  let unknown: Forecast | undefined;
  const say = (forecast: Forecast): void => {
    unknown = isWorthSaying(forecast) ? undefined : forecast;
    sayForecast(forecast, shell, { ...about, now: mirror.clock.now() });
  };
  return {
    foresees: say,
    progress({ stage }) {
      if (!unknown || stage !== 'applying') return;
      const forecast = forecastAgain(unknown, { limits: mirror.limits(), reserve: mirror.reserve });
      if (isWorthSaying(forecast)) say(forecast);
    },
  };
}

/** That it is long is known, or the limit of the route with the most requests. */
function isWorthSaying(forecast: Forecast): boolean {
  const { routes } = forecast;
  const most = Math.max(0, ...routes.map(({ requests }) => requests));
  const isKnown = routes.every(({ requests, ms }) => requests < most || ms !== null);
  return isKnown || leastMs(forecast) >= longMs;
}

/** `now`: milliseconds since the epoch. */
export function sayForecast(
  forecast: Forecast,
  { note }: Pick<Shell, 'note'>,
  { config, mode, firstLoad = false, now }: Foreseen & { now: number },
): void {
  const { ms, readMs } = forecast;
  const everyMs = scheduled(config, mode, now);
  // What is known counts, also where the limit of another route is not.
  const knownMs = leastMs(forecast);
  const allMs = readMs + knownMs;
  const about = ms === null ? 'at least' : 'about';
  const isTooLong = everyMs !== undefined && allMs > everyMs;
  if (!firstLoad && !isTooLong && knownMs < longMs) return;
  for (const line of renderForecast(forecast, lasting)) note(`crm-mirror: ${line}`);
  if (!isTooLong) return;
  note(
    `crm-mirror: ${config.mirror}: this run cannot finish within its schedule: it takes ` +
      `${about} ${lasting(allMs)}, and a ${mode} run is due every ${lasting(everyMs)} → what is due meanwhile waits for ` +
      'it; schedule fewer, or have the platform raise the limits',
  );
}

function scheduled(
  { schedule }: Foreseen['config'],
  mode: 'full' | 'fast',
  now: number,
): number | undefined {
  const pattern = schedule?.patterns[mode];
  if (!schedule || pattern === undefined) return undefined;
  return intervalOf(pattern, { timezone: schedule.timezone, now });
}
