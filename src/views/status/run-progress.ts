/** Builds the part of the status about the run that is in progress. */
import { limitWords } from '../../engine/report/forecast-text.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { instant, lasting } from '../../compose/output/format-values.ts';
import { progressForms } from '../../compose/progress/progress-text.ts';
import { type RunInProgress, runInProgress } from '../../compose/progress/run-in-progress.ts';

/** The progress of a run. `since` is the start of the run, and `at` the time of these figures. */
export interface ToldProgress extends Omit<RunInProgress, 'token' | 'since' | 'at'> {
  since: string;
  at: string;
}

/** Returns the progress of the run about all people that a process does now; null if none does. */
export function progressOf({ snapshot, leased, now }: Seen): ToldProgress | null {
  const found = snapshot && runInProgress(snapshot, leased);
  if (!found) return null;
  const { token: _, since, at, leftMs, ...rest } = found;
  const left = leftMs === null ? null : Math.max(0, Math.round(leftMs - Math.max(0, now - at)));
  return { ...rest, leftMs: left, since: instant(since), at: instant(at) };
}

/** Formats the progress of a run. `at` is the time of the status. */
export function progressWords(
  { at: now, running }: { at: string; running: ToldProgress },
  isVerbose = false,
): string {
  const { mode, command, pid, since, at, limit } = running;
  const quietMs = Math.max(0, Date.parse(now) - Date.parse(at));
  const [line] = progressForms({ ...running, quietMs });
  const by = command === '' ? '' : ` by \`${command}\``;
  const seen = limit
    ? `; ${limit.route} allows ${limitWords({ ...limit, others: 0 }, lasting)}`
    : '';
  return `a ${mode} run${by}${isVerbose ? ` (process ${pid})` : ''} since ${since}: ${line}${seen}`;
}
