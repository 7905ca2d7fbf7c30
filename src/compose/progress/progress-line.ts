/**
 * Shows the progress of a run: as one line that is redrawn on a terminal, and otherwise as a line
 * every ten seconds. A run that writes also stores it, for `status`.
 */
import type { Forecast } from '../../engine/report/duration-forecast.ts';
import type { Mirror, Progress } from '../../engine/context/mirror-context.ts';
import type { Shell } from '../process-shell.ts';
import { createMeter, type Measured, progressForms } from './progress-meter.ts';

const redrawMs = 100;
/** How often to redraw without news, to show that the run is alive. */
const waitingMs = 1000;
/** How often to print a line if none can be redrawn. */
const plainMs = 10_000;
/** How often to store the progress, which takes a transaction. */
const storeMs = 2000;

export interface ProgressOutlets {
  /** Redraws one line on a terminal; undefined if there is none. */
  draw?: Shell['progress'] | undefined;
  /** Prints or logs one line now and then. */
  say?: ((line: string, measured: Measured) => void) | undefined;
  /** Stores the progress. It is called at intervals, and only if there is news. Never throws. */
  store?: ((measured: Measured) => void) | undefined;
}

/** Returns where a command shows the progress of a run: nowhere if it is to be quiet. */
export function outletsOf(
  shell: Pick<Shell, 'interactive' | 'progress' | 'note' | 'quiet'>,
): ProgressOutlets {
  if (shell.quiet) return {};
  return shell.interactive ? { draw: shell.progress } : { say: (line) => shell.note(line) };
}

/** Shows the progress of one run until it is closed. */
export function createProgress(
  { draw, say, store }: ProgressOutlets,
  mirror: Pick<Mirror, 'clock' | 'limits' | 'reserve'>,
) {
  const { clock } = mirror;
  const meter = createMeter(mirror);
  let drawnMs = Number.NEGATIVE_INFINITY;
  let isNews = false;

  const show = (): void => {
    const measured = meter.now();
    if (!measured) return;
    drawnMs = clock.monotonic();
    const [line, ...shorter] = progressForms(measured);
    if (draw) draw(line, shorter);
    else say?.(line, measured);
  };
  const keep = (): void => {
    const measured = isNews ? meter.now() : undefined;
    isNews = false;
    if (measured) store?.(measured);
  };
  const closed = new AbortController();
  const repeat = async (act: () => void, everyMs: number): Promise<void> => {
    for (;;) {
      await clock.sleep(everyMs, closed.signal);
      act();
    }
  };
  const begin = (act: () => void, everyMs: number): void =>
    void repeat(act, everyMs).catch(() => undefined);
  if (draw ?? say) begin(show, draw ? waitingMs : plainMs);
  if (store) begin(keep, storeMs);
  return {
    progress(progress: Progress): void {
      meter.hear(progress);
      const isDue = clock.monotonic() - drawnMs >= redrawMs || progress.done === progress.of;
      if (draw && isDue) show();
      isNews = true;
    },
    foresees(forecast: Forecast): void {
      meter.foresee(forecast);
      isNews = true;
    },
    close: () => closed.abort(),
  };
}
