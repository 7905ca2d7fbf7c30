/** How long a run will take, said before it begins to write: where somebody would wonder. */
import type { Config } from '../config/config.ts';
import { intervalOf } from '../config/cron.ts';
import { renderForecast, type Forecast } from '../plan/forecast.ts';
import type { Shell } from './shell.ts';
import { span } from './words.ts';

/** A run that takes longer says so. */
const longMs = 10 * 60_000;

export interface Foreseen {
  config: Pick<Config, 'mirror' | 'schedule'>;
  mode: 'full' | 'fast';
  /** Says it however quick it is. */
  firstLoad?: boolean;
  /** Milliseconds since the epoch. */
  now: number;
}

export function sayForecast(
  forecast: Forecast,
  { note }: Pick<Shell, 'note'>,
  { config, mode, firstLoad = false, now }: Foreseen,
): void {
  const { ms, readMs } = forecast;
  const everyMs = scheduled(config, mode, now);
  // What reading took is known, also where a limit is not.
  const allMs = readMs + (ms ?? 0);
  const about = ms === null ? 'at least' : 'about';
  const isTooLong = everyMs !== undefined && allMs > everyMs;
  if (!firstLoad && !isTooLong && (ms === null || ms < longMs)) return;
  for (const line of renderForecast(forecast, span)) note(`crm-mirror: ${line}`);
  if (!isTooLong) return;
  note(
    `crm-mirror: ${config.mirror}: this run cannot finish within its schedule: it takes ` +
      `${about} ${span(allMs)}, and a ${mode} run is due every ${span(everyMs)} → what is due meanwhile waits for ` +
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
