/** Tells what the last run left to a later one because no window allowed it. */
import { z } from 'zod';
import { isClosed, opening } from '../../domain/guards/change-window.ts';
import { type AskedClass, askedClasses } from '../../domain/guards/plan-rule.ts';
import { guardRows } from '../../domain/guard-classes.ts';
import { waitWords } from '../../engine/report/guard-text.ts';
import { openIn, storedCanaries } from '../../engine/guard/canary-book.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { isLater } from '../../store/tables/run-history.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { instantOrNull } from '../../compose/output/format-values.ts';

/** What waits in one class of changes. */
export interface ToldWait {
  class: AskedClass;
  /** The number of people or templates. */
  records: number;
  /** When a window opens, with the time zone; null if one is open, or none within two weeks. */
  opens: string | null;
  opensAt: string | null;
}

/** The part of a stored summary that is read. */
const kept = z.object({
  only: z.string().nullable().default(null),
  deferred: z.partialRecord(z.enum(askedClasses), z.number()).default({}),
});

/** The number of runs of a mode among which the last complete one is looked for. */
const looked = 20;

/** Returns what waits, if the configuration has windows. */
export function waitsOf(
  { runs, meta }: Pick<Snapshot, 'runs' | 'meta'>,
  { config: { windows, schedule }, now }: Seen,
): { waiting?: ToldWait[] } {
  if (windows.length === 0) return {};
  const time = { at: now, timezone: schedule?.timezone ?? 'UTC' };
  const ended = ['full', 'fast']
    .flatMap((mode) => runs.lastOf(mode, looked))
    .filter(({ status, summary }) => summary !== null && status !== 'failed')
    .toSorted((a, b) => (isLater(a, b) ? -1 : 1))
    .map(({ summary }) => kept.parse(JSON.parse(summary ?? '{}')));
  // What waits for a canary is told with the canary.
  const canaries = new Set(openIn(storedCanaries(meta)).map(([of]) => of));
  const waiting = askedClasses.flatMap((of): ToldWait[] => {
    const other = guardRows[of].recordType === 'contact' ? 'templates' : 'contacts';
    const records = ended.find(({ only }) => only !== other)?.deferred[of] ?? 0;
    if (records === 0 || canaries.has(of)) return [];
    const opens = isClosed(windows, of, time) ? opening(windows, of, time) : undefined;
    return [{ class: of, records, opens: opens?.words ?? null, opensAt: instantOrNull(opens?.at) }];
  });
  return { waiting };
}

/** Formats it: `12 people to be created or opted in wait for Thu 09:00 UTC` */
export function windowWords(waiting: readonly ToldWait[]): string[] {
  return waiting.map(({ class: of, records, opens }) =>
    waitWords(of, records, opens ?? 'the next run in their window'),
  );
}
