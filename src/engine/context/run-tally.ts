/** Counts and collects what a run's summary reports. Lists are capped; counts are not. */
import type { Change } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Fault, RecordTypeName } from '../../domain/record.ts';
import { sayUnknown, type UnknownWords } from '../../domain/unknown-words.ts';
import type { RecordType, SendOutcome, Stop } from '../../records/record-type.ts';
import type { ListedProblem } from '../report/run-summary.ts';
import type { Unread } from '../../store/tables/retry-later.ts';
import type { Snapshot } from '../../store/snapshot.ts';

/** Counts and collects during a run. */
export interface RunTally {
  /** Counts a record that was found on the platform and is now ours. */
  adopted(kind: RecordTypeName): void;
  /**
   * Stages a problem found while deciding, and lists it if it is new. A problem caused by an
   * unknown word in the field that `option` names is only counted, and listed with that option. An
   * opt-out that may be waiting is counted as one that failed.
   */
  notice(problem: RecordProblem, option?: string): void;
  /** Lists the unknown words of a source, one line for each option. */
  unknown(kind: RecordTypeName, words: readonly UnknownWords[]): void;
  /**
   * Counts and lists a change that the platform refused before and that is not due for a retry yet.
   */
  parked(change: Change, known: Fault): void;
  /** Counts the known problems of records that this run has not read. */
  unread(found: Unread): void;
  /** Lists what awaits approval in a guard class, replacing the earlier entry of that class. */
  held(problem: RecordProblem): void;
  /**
   * Removes the entries of these classes, because none of their changes awaits approval any more.
   */
  released(classes: readonly GuardClass[]): void;
  /** Lists an opt-out that the CRM refuses; `isNew` if the CRM did not refuse it before. */
  notReported(problem: RecordProblem, isNew: boolean): void;
  /** Counts the outcome of a change, and lists a rejected one. */
  outcome(type: RecordType, change: Change, outcome: SendOutcome): void;
  /** Returns the number of completed changes of a record type. */
  outcomeCount(kind: RecordTypeName): number;
  /** Counts a record for which a setting prevents a change. */
  stopped(by: Stop): void;
  counts(): TallyCounts;
  /** Returns at most 100 problems: first what awaits approval, then failed opt-outs. */
  problems(): ListedProblem[];
}

/** The counts of a tally. */
export interface TallyCounts {
  adopted: Record<RecordTypeName, number>;
  /** Records that are rejected or invalid for the first time. */
  news: number;
  /** Records that were rejected or invalid before, and still are. */
  known: number;
  optOutsFailed: number;
  /** The number of people with a change that each setting prevents. */
  stopped: Record<Stop, number>;
}

const most = 100;
/** Changes with these outcomes are left to another run and are not counted. */
const leftUndone: ReadonlySet<SendOutcome['is']> = new Set(['held', 'unsent', 'stopped']);
/** The cause of an opt-out that may be waiting: the record of a subscribed person is unreadable. */
const unreadable = 'opt-out-unreadable';
const waitingOptOut = { class: 'invalid', part: '', cause: unreadable } as const;
/** States what happens to an opt-out that the platform refused. */
const delays = 'it is tried again with rising delay, at most daily';

type Ranks = [ListedProblem[], ...ListedProblem[][]];

/** Creates a tally with nothing counted. */
export function createTally(snapshot: Snapshot): RunTally {
  const adopted: Record<RecordTypeName, number> = { contact: 0, template: 0 };
  const settled: Record<RecordTypeName, number> = { contact: 0, template: 0 };
  // The four ranks: awaiting approval, failed opt-outs, new problems, known problems.
  const ranks: Ranks = [[], [], [], []];
  const words = unknownWords();
  const stopped: Record<Stop, number> = { protect: 0, optIns: 0, sample: 0 };
  const sums = { news: 0, known: 0, optOutsFailed: 0 };
  const count = (isNew: boolean): void => void (sums[isNew ? 'news' : 'known'] += 1);
  const list = (rank: 1 | 2 | 3, problem: ListedProblem): void => add(ranks[rank] ?? [], problem);

  return {
    adopted: (kind) => void (adopted[kind] += 1),
    notice({ urgent, ...problem }, option) {
      const again = ranks.flat().some((one) => sameProblem(one, problem));
      const before = snapshot.problems.get(problem);
      const isConflict = problem.class === 'conflict';
      const isNew = !before || (isConflict && before.reason !== problem.reason);
      snapshot.staging.addNoticed(problem);
      if (again) return;
      if (!isConflict) count(isNew);
      if (problem.cause === unreadable) sums.optOutsFailed += 1;
      if (option !== undefined) words.note(option, { isNew, urgent });
      else if (isNew || urgent || !isConflict) list(rankOf(isNew, urgent), { ...problem, isNew });
    },
    unknown: words.list,
    parked({ op, kind, key, part }, { reason, fix }) {
      sums.known += 1;
      if (op === 'opt_out') sums.optOutsFailed += 1;
      const told = op === 'opt_out' ? delays : fix;
      list(op === 'opt_out' ? 1 : 3, refusal({ kind, key, part, reason }, { op, fix: told }));
    },
    unread({ invalid, rejected, refused, optOuts, unreadable: waiting }) {
      sums.known += invalid + rejected + refused;
      sums.optOutsFailed += refused + waiting.length;
      for (const one of waiting) list(1, { ...one, ...waitingOptOut, isNew: false });
      for (const one of optOuts) list(1, refusal(one, { op: 'opt_out', fix: delays }));
    },
    ...holding(snapshot, ranks),
    notReported(problem, isNew) {
      count(isNew);
      list(isNew ? 2 : 3, { ...problem, isNew });
    },
    outcome({ name }, { op, key, part }, outcome) {
      if (!leftUndone.has(outcome.is)) settled[name] += 1;
      if (outcome.is !== 'rejected') return;
      sums.news += 1;
      if (op === 'opt_out') sums.optOutsFailed += 1;
      const { reason, fix } = outcome;
      const problem = refusal({ kind: name, key, part, reason }, { op, fix });
      list(op === 'opt_out' ? 1 : 2, { ...problem, isNew: true });
    },
    outcomeCount: (kind) => settled[kind],
    stopped: (by) => void (stopped[by] += 1),
    counts: () => ({ adopted, stopped, ...sums }),
    problems() {
      const [urgent, others] = parted(words.listed(), ({ cause }) => cause === unreadable);
      const [held, ...rest] = ranks.toSpliced(2, 0, others);
      return [held ?? [], urgent, ...rest].flat().slice(0, most);
    },
  };
}

/** Maintains the list of what awaits approval. */
function holding(snapshot: Snapshot, ranks: Ranks): Pick<RunTally, 'held' | 'released'> {
  return {
    held(problem) {
      const isNew = !snapshot.problems.get(problem);
      snapshot.staging.addNoticed(problem);
      ranks[0] = [...ranks[0].filter((one) => !sameProblem(one, problem)), { ...problem, isNew }];
    },
    released(classes) {
      const [released, held] = parted(ranks[0], ({ key }) => classes.some((of) => of === key));
      for (const { kind, key } of released) snapshot.staging.forgetNoticed(kind, key);
      ranks[0] = held;
    },
  };
}

/**
 * Lists unknown words, one line for each option. A line is new if one of its records is new, and
 * urgent if one of them is.
 */
function unknownWords() {
  const news = new Set<string>();
  const pressing = new Set<string>();
  const listed = new Map<string, ListedProblem>();
  return {
    note(
      option: string,
      { isNew, urgent = false }: { isNew: boolean; urgent?: boolean | undefined },
    ) {
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

function rankOf(isNew: boolean, urgent = false): 1 | 2 | 3 {
  if (urgent) return 1;
  return isNew ? 2 : 3;
}

/** Builds the problem of a change that was refused before. */
function refusal(
  { kind, key, part, reason }: Pick<RecordProblem, 'kind' | 'key' | 'part' | 'reason'>,
  { op, fix }: { op: Change['op']; fix: string },
): ListedProblem {
  return {
    kind,
    key,
    class: 'rejected',
    part,
    cause: op === 'opt_out' ? 'opt-out-refused' : 'platform-refused',
    reason,
    fix,
    isNew: false,
  };
}

function add(listed: ListedProblem[], problem: ListedProblem): void {
  const again = listed.some((one) => sameProblem(one, problem));
  if (listed.length < most && !again) listed.push(problem);
}

function parted<T>(all: readonly T[], is: (one: T) => boolean): [T[], T[]] {
  return [all.filter(is), all.filter((one) => !is(one))];
}

function sameProblem(a: RecordProblem, b: RecordProblem): boolean {
  return a.kind === b.kind && a.key === b.key && a.class === b.class && a.part === b.part;
}
