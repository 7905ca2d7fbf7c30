/** Counts and collects what a run's summary reports. Lists are capped; counts are not. */
import type { Change } from '../../domain/change.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Fault, Key, RecordTypeName } from '../../domain/record.ts';
import { sayUnknown, type UnknownWords } from '../../domain/unknown-words.ts';
import type { SendOutcome } from '../../records/change-outcome.ts';
import type { Stop } from '../../records/decision.ts';
import type { ListedProblem } from '../report/run-summary.ts';
import type { Unread } from '../../store/tables/known-problems.ts';
import type { Snapshot } from '../../store/snapshot.ts';

const most = 100;
/** Changes with these outcomes are left to another run and are not counted. */
const leftUndone: ReadonlySet<SendOutcome['is']> = new Set(['held', 'unsent', 'stopped']);
/** The record of a subscribed person, which may say that they opt out, cannot be read. */
const unreadable = 'opt-out-unreadable';
const waitingOptOut = { class: 'invalid', part: '', cause: unreadable } as const;
const delays = 'it is tried again with rising delay, at most daily';

export type RunTally = ReturnType<typeof createTally>;

export function createTally(snapshot: Snapshot) {
  const adopted: Record<RecordTypeName, number> = { contact: 0, template: 0 };
  const done: Record<RecordTypeName, number> = { contact: 0, template: 0 };
  const failed: ListedProblem[] = [];
  const ranks = { 'failed opt-outs': failed, new: failed.slice(), known: failed.slice() };
  const list = (rank: keyof typeof ranks, problem: ListedProblem): void => {
    const again = ranks[rank].some((one) => sameProblem(one, problem));
    if (ranks[rank].length < most && !again) ranks[rank].push(problem);
  };
  const words = unknownWords();
  /** The number of people with a change that each setting prevents. */
  const stopped: Record<Stop, number> = { protect: 0, optIns: 0, sample: 0 };
  /** `known`: records that were rejected or invalid before, and still are. */
  const sums = { news: 0, known: 0, optOutsFailed: 0 };
  const count = (isNew: boolean): void => void (sums[isNew ? 'news' : 'known'] += 1);
  return {
    adopted: (kind: RecordTypeName): void => void (adopted[kind] += 1),
    /**
     * Stages a problem found while deciding, and lists it if it is new. A problem caused by an
     * unknown word in the field that `option` names is only counted, and listed with that option.
     * An opt-out that may be waiting is counted as one that failed.
     */
    notice({ urgent, ...problem }: RecordProblem, option?: string): void {
      const again = Object.values(ranks)
        .flat()
        .some((one) => sameProblem(one, problem));
      const before = snapshot.problems.get(problem);
      const isConflict = problem.class === 'conflict';
      const isNew = !before || (isConflict && before.reason !== problem.reason);
      snapshot.staging.addNoticed(problem);
      if (again) return;
      if (!isConflict) count(isNew);
      if (problem.cause === unreadable) sums.optOutsFailed += 1;
      if (option !== undefined) words.note(option, isNew, urgent === true);
      else if (urgent) list('failed opt-outs', { ...problem, isNew });
      else if (isNew || !isConflict) list(isNew ? 'new' : 'known', { ...problem, isNew });
    },
    unknown: words.list,
    /** Counts and lists a change that was refused before and that is not due for a retry yet. */
    parked({ op, kind, key, part }: Change, { reason, fix }: Fault): void {
      sums.known += 1;
      const isOptOut = op === 'opt_out';
      if (isOptOut) sums.optOutsFailed += 1;
      const problem = refusal({ kind, key, part, reason }, { op, fix: isOptOut ? delays : fix });
      list(isOptOut ? 'failed opt-outs' : 'known', problem);
    },
    /** Counts the known problems of records that this run has not read. */
    unread({ invalid, rejected, refused, optOuts, unreadable: waiting }: Unread): void {
      sums.known += invalid + rejected + refused;
      sums.optOutsFailed += refused + waiting.length;
      for (const one of waiting)
        list('failed opt-outs', { ...one, ...waitingOptOut, isNew: false });
      const again = { op: 'opt_out', fix: delays } as const;
      for (const one of optOuts) list('failed opt-outs', refusal(one, again));
    },
    /** Lists an opt-out that the CRM refuses; `isNew` if the CRM did not refuse it before. */
    notReported(problem: RecordProblem, isNew: boolean): void {
      count(isNew);
      list(isNew ? 'new' : 'known', { ...problem, isNew });
    },
    outcome({ kind, op, key, part }: Change, outcome: SendOutcome): void {
      if (!leftUndone.has(outcome.is)) done[kind] += 1;
      if (outcome.is !== 'rejected') return;
      sums.news += 1;
      if (op === 'opt_out') sums.optOutsFailed += 1;
      const about = { kind, key, part, reason: outcome.reason };
      const problem = refusal(about, { op, fix: outcome.fix });
      list(op === 'opt_out' ? 'failed opt-outs' : 'new', { ...problem, isNew: true });
    },
    outcomeCount: (kind: RecordTypeName): number => done[kind],
    stopped: (by: Stop): void => void (stopped[by] += 1),
    counts: () => ({ adopted, stopped, ...sums }),
    /** Returns at most 100 problems: first what is `awaiting` approval, then failed opt-outs. */
    problems(awaiting: readonly ListedProblem[]): ListedProblem[] {
      const listed = words.listed();
      const urgent = listed.filter(({ cause }) => cause === unreadable);
      const others = listed.filter(({ cause }) => cause !== unreadable);
      const first = [...awaiting, ...urgent, ...ranks['failed opt-outs'], ...others];
      return [...first, ...ranks.new, ...ranks.known].slice(0, most);
    },
  };
}

/** Lists unknown words, one line for each option: new or urgent if one of its records is. */
function unknownWords() {
  const news = new Set<string>();
  const pressing = new Set<string>();
  const listed = new Map<string, ListedProblem>();
  return {
    note(option: string, isNew: boolean, urgent: boolean) {
      if (isNew) news.add(option);
      if (urgent) pressing.add(option);
    },
    list(kind: RecordTypeName, all: readonly UnknownWords[]) {
      for (const words of all) {
        const { option: key, fix } = words;
        const isUrgent = pressing.has(key);
        const more = isUrgent ? '; it concerns people who are subscribed and may want no mail' : '';
        const reason = `${sayUnknown(words, { asTheyAre: false })}${more}`;
        const shown = `${sayUnknown(words, { asTheyAre: true })}${more}`;
        const isNew = news.has(key);
        const cause = isUrgent ? unreadable : 'unknown-word';
        const about = { kind, key, class: 'invalid', part: '', cause } as const;
        listed.set(key, { ...about, reason, fix, isNew, shown });
      }
    },
    listed: () => [...listed.values()],
  };
}

function refusal(
  { kind, key, part, reason }: { kind: RecordTypeName; key: Key; part: string; reason: string },
  { op, fix }: { op: Change['op']; fix: string },
): ListedProblem {
  const cause = op === 'opt_out' ? 'opt-out-refused' : 'platform-refused';
  return { kind, key, part, reason, class: 'rejected', cause, fix, isNew: false };
}

function sameProblem(a: RecordProblem, b: RecordProblem): boolean {
  return a.kind === b.kind && a.key === b.key && a.class === b.class && a.part === b.part;
}
