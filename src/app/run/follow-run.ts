/** Follows a run: prints its forecast, shows its progress, and stores that for `status`. */
import type { Forecast } from '../../engine/report/duration-forecast.ts';
import type { Mirror, Progress } from '../../engine/context/mirror-context.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { type Foreseen, foreseeing } from './forecast-notice.ts';
import { createProgress, type ProgressOutlets } from '../../compose/progress/progress-line.ts';
import { enterRun } from '../../compose/progress/run-in-progress.ts';

/** The run to follow. */
interface Followed extends Foreseen {
  writes: boolean;
  /** Whether the run is about all people. Only such a run is stored for `status`. */
  isForAll: boolean;
  outlets: ProgressOutlets;
}

/** The hooks of a run. `close` ends the line and removes what was stored. */
interface Follower {
  progress(progress: Progress): void;
  foresees(forecast: Forecast): void;
  close(): void;
}

/** Returns the hooks of a run. The caller closes them when the run has ended. */
export function followRun(
  shell: Pick<Shell, 'note' | 'argv'>,
  mirror: Mirror,
  { writes, isForAll, outlets, ...about }: Followed,
): Follower {
  const said = foreseeing(shell, mirror, about);
  const command = shell.argv?.[0] ?? '';
  const entry = writes && isForAll ? enterRun(mirror, { mode: about.mode, command }) : undefined;
  const line = createProgress({ ...outlets, store: entry?.store }, mirror);
  return {
    progress(progress) {
      said.progress(progress);
      line.progress(progress);
    },
    foresees(forecast) {
      if (writes) line.foresees(forecast);
      said.foresees(forecast);
    },
    close() {
      line.close();
      entry?.end();
    },
  };
}
