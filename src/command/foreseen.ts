/** How long a run will take, said before it begins to write: where somebody would wonder. */
import type { Config } from '../config/config.ts';
import { intervalOf } from '../config/cron.ts';
import { forecastAgain, renderForecast, type Forecast } from '../plan/forecast.ts';
import type { Mirror } from '../sync/mirror.ts';
import type { Shell } from './shell.ts';
import { lasting } from './words.ts';

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
  /** An answer has come: it may have been the first to tell a limit. */
  answered(): void;
}

/** Says it before the run begins to write; what no limit was known of, when the answers tell. */
export function foreseeing(
  shell: Pick<Shell, 'note'>,
  mirror: Pick<Mirror, 'limits' | 'reserve' | 'clock'>,
  about: Foreseen,
): Foreseeing {
  let open: Forecast | undefined;
  let said = false;
  const say = (forecast: Forecast): void => {
    open = forecast.ms === null ? forecast : undefined;
    if (!said) said = sayForecast(forecast, shell, { ...about, now: mirror.clock.now() });
    else if (about.firstLoad) sayLines(forecast, shell);
  };
  return {
    foresees: say,
    answered() {
      if (!open) return;
      const now = forecastAgain(open, { limits: mirror.limits(), reserve: mirror.reserve });
      if (unknowns(now) < unknowns(open)) say(now);
    },
  };
}

function unknowns({ routes }: Forecast): number {
  return routes.filter(({ ms }) => ms === null).length;
}

/** Answers whether it said that the schedule cannot be kept. `now`: milliseconds of the epoch. */
export function sayForecast(
  forecast: Forecast,
  shell: Pick<Shell, 'note'>,
  { config, mode, firstLoad = false, now }: Foreseen & { now: number },
): boolean {
  const { ms, readMs, routes } = forecast;
  const everyMs = scheduled(config, mode, now);
  // What is known counts, also where the limit of another route is not.
  const leastMs = Math.max(0, ...routes.map((route) => route.ms ?? 0));
  const allMs = readMs + leastMs;
  const about = ms === null ? 'at least' : 'about';
  const isTooLong = everyMs !== undefined && allMs > everyMs;
  if (!firstLoad && !isTooLong && leastMs < longMs) return false;
  sayLines(forecast, shell);
  if (!isTooLong) return false;
  shell.note(
    `crm-mirror: ${config.mirror}: this run cannot finish within its schedule: it takes ` +
      `${about} ${lasting(allMs)}, and a ${mode} run is due every ${lasting(everyMs)} → what is due meanwhile waits for ` +
      'it; schedule fewer, or have the platform raise the limits',
  );
  return true;
}

function sayLines(forecast: Forecast, { note }: Pick<Shell, 'note'>): void {
  for (const line of renderForecast(forecast, lasting)) note(`crm-mirror: ${line}`);
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
