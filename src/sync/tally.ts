/** What a run counts and collects on its way, for its summary. Lists are capped; counts are not. */
import type { Change } from '../model/change.ts';
import type { Problem } from '../model/problem.ts';
import type { KindName } from '../model/record.ts';
import type { Kind, Outcome } from '../kind/kind.ts';
import type { ListedProblem } from '../plan/summary.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

export interface Tally {
  adopted(kind: KindName): void;
  /** Stages a problem found while deciding; lists it when it is new. */
  notice(problem: Problem): void;
  /** An opt-out the platform refused, and that is not due for another try yet. */
  optOutWaits(change: Change): void;
  settled(kind: Kind, change: Change, outcome: Outcome): void;
  settledCount(kind: KindName): number;
  counts(): TallyCounts;
  /** At most 100, the gravest first: opt-outs that could not be applied. */
  problems(): ListedProblem[];
}

export interface TallyCounts {
  adopted: Record<KindName, number>;
  /** Records newly rejected or invalid. */
  news: number;
  /** Rejected or invalid before, and still. */
  known: number;
  optOutsFailed: number;
}

const most = 100;

export function createTally(snapshot: Snapshot): Tally {
  const adopted: Record<KindName, number> = { contact: 0, template: 0 };
  const settled: Record<KindName, number> = { contact: 0, template: 0 };
  const ranks: ListedProblem[][] = [[], [], []];
  let news = 0;
  let known = 0;
  let optOutsFailed = 0;
  const list = (rank: 0 | 1 | 2, problem: ListedProblem): void => {
    const listed = ranks[rank] ?? [];
    if (listed.length < most) listed.push(problem);
  };

  return {
    adopted: (kind) => void (adopted[kind] += 1),
    notice(problem) {
      const before = snapshot.problems.get(problem);
      const isConflict = problem.class === 'conflict';
      const isNew = !before || (isConflict && before.reason !== problem.reason);
      snapshot.staging.addNoticed(problem);
      if (!isConflict) isNew ? (news += 1) : (known += 1);
      if (isNew || !isConflict) list(isNew ? 1 : 2, { ...problem, isNew });
    },
    optOutWaits(change) {
      optOutsFailed += 1;
      const { kind, key, part } = change;
      const before = snapshot.problems.get({ kind, key, class: 'rejected', part });
      const reason = before?.reason ?? 'refused by the platform';
      const fix = 'it is tried again with rising delay, at most daily';
      list(0, { kind, key, class: 'rejected', part, reason, fix, isNew: false });
    },
    settled(kind, change, outcome) {
      settled[kind.name] += 1;
      if (outcome.is !== 'rejected') return;
      news += 1;
      if (change.op === 'opt_out') optOutsFailed += 1;
      const { key, part } = change;
      const { reason, fix } = outcome;
      const problem = { kind: kind.name, key, class: 'rejected' as const, part, reason, fix };
      list(change.op === 'opt_out' ? 0 : 1, { ...problem, isNew: true });
    },
    settledCount: (kind) => settled[kind],
    counts: () => ({ adopted, news, known, optOutsFailed }),
    problems: () => ranks.flat().slice(0, most),
  };
}
