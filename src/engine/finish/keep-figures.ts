/** Stores the figures of a run that has ended, for the history that plots are drawn from. */
import type { Summary } from '../report/run-summary.ts';
import type { RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { inTurns } from '../context/work-in-parts.ts';
import type { RunState } from '../context/run-state.ts';
import type { JournalTally } from '../../store/tables/journal.ts';
import type { OptOutDay } from '../../store/tables/run-figures.ts';

/** What a full run counts among all recorded people. */
interface PeopleCounts {
  /** The number of people subscribed, by channel. */
  subscribed: Map<string, number>;
  /** The opt-outs made on the platform since people were last counted. */
  made: OptOutDay[];
}

/** Counts the recorded people, and lets other tasks run in between if there are many. */
export async function countPeople(run: RunContext): Promise<PeopleCounts> {
  const { figures, ranges } = run.snapshot;
  const since = figures.countedAt() ?? 0;
  const counts: PeopleCounts = { subscribed: new Map(), made: [] };
  for await (const range of inTurns(run, ranges.ofRecorded('contact'))) {
    for (const { channel, n } of figures.subscribed(range)) {
      counts.subscribed.set(channel, (counts.subscribed.get(channel) ?? 0) + n);
    }
    counts.made.push(...figures.madeSince(range, since));
    if (typeof range.upTo !== 'string') break;
  }
  return counts;
}

/** The results of a run that the figures are made of. */
export interface Ended {
  summary: Summary;
  done: readonly JournalTally[];
  counts: PeopleCounts | undefined;
}

/** Stores the figures. Must be called within the transaction that stores the end of the run. */
export function keepFigures({ run, mirror }: RunState, { summary, done, counts }: Ended): void {
  const { snapshot, clock, id } = run;
  const { figures, runs } = snapshot;
  const at = clock.now();
  for (const of of figures.optOutsOf(id, at)) figures.addOptOuts(of);
  for (const of of counts?.made ?? []) figures.addOptOuts(of);
  if (onlyKey(run) !== undefined) return;
  const { requests, ms } = summary;
  const proven = runs.proven();
  const acked = done.filter(({ state }) => state === 'acked');
  figures.add({
    run: id,
    at,
    mode: summary.mode,
    ms,
    requests: requests.total,
    refused: requests.rateLimited,
    used: shareUsed(summary, mirror.limits()),
    proofMs: proven ? at - proven.startedAt : null,
    changed: acked.reduce((sum, { n }) => sum + n, 0),
    changes: JSON.stringify(done.map(({ kind, op, state, n }) => ({ kind, op, state, n }))),
    people: counts ? JSON.stringify(Object.fromEntries(counts.subscribed)) : null,
  });
}

/** Returns the largest share of a route's limit that the requests took up, or null if unknown. */
function shareUsed(
  { requests: { byRoute }, ms }: Summary,
  limits: ReturnType<RunState['mirror']['limits']>,
): number | null {
  const shares = Object.entries(limits).flatMap(([route, { limit, windowMs }]) => {
    if (limit === undefined || windowMs === undefined) return [];
    return Math.min(1, (byRoute[route] ?? 0) / (limit * Math.max(1, ms / windowMs)));
  });
  return shares.length === 0 ? null : Math.max(...shares);
}
