/** Groups problems by their cause. All functions are pure. */
import { isOptOutOption, type UnknownValue } from '../../domain/unknown-words.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { ProblemClass } from '../../domain/record-problem.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import type { Fault, Key, RecordTypeName } from '../../domain/record.ts';
import { wordOf } from '../../domain/values/record-field.ts';
import type { ReturnedRow } from '../../store/tables/opt-out-reports.ts';

interface Similar {
  class: ProblemClass;
  cause: ProblemCause;
  samples: readonly Sample[];
  fix: string;
}

interface Grouped extends Similar {
  kind: RecordTypeName;
  /** The number of records; of a guard, the number of people or templates that await approval. */
  count: number;
  /** The option of the configuration whose field holds the values. */
  option: string | undefined;
  others: number;
  reason: string;
}

/** The problems with one cause. Values and keys may be personal data. */
export interface ProblemGroup extends Grouped {
  /** The unknown values, most frequent first. */
  values: readonly UnknownValue[];
}

interface Sample {
  key: Key;
  /** The record's place in the source; null if it is unknown or not about the source. */
  place: string | null;
}

export interface SimilarProblems extends Similar {
  n: number;
  about: string;
  option: string | null;
  value: string | null;
}

/** The maximum number of groups with the same cause; further reasons share one group. */
const mostReasons = 20;
const mostValues = 1_000;
const mostSamples = 3;

/** Created when it is first needed, which few runs do. */
let inOrder: Intl.Collator['compare'] | undefined;

const valued: ReadonlySet<ProblemCause> = new Set([
  'opt-out-unreadable',
  'unknown-word',
  'date-in-future',
]);

export type ProblemGroups = ReturnType<typeof groupProblems>;

interface Collected extends Grouped {
  byName: Map<string, { text: string; unknown: UnknownValue['unknown']; records: number }>;
}

export function groupProblems() {
  const found = new Map<string, Collected>();
  const reasons = new Map<string, number>();
  const whole: ProblemGroup[] = [];
  const groupOf = (kind: RecordTypeName, one: SimilarProblems): Collected => {
    const { class: of, cause, about, option, fix } = one;
    const family = JSON.stringify([of, kind, cause]);
    const name = JSON.stringify([family, option, option === null ? about : '']);
    const known = found.get(name);
    if (known) return known;
    const count = (reasons.get(family) ?? 0) + 1;
    const isMany = count > mostReasons;
    const rest = found.get(family);
    if (isMany && rest) return rest;
    reasons.set(family, count);
    const group = {
      class: of,
      kind,
      cause,
      count: 0,
      option: option ?? undefined,
      others: 0,
      samples: [],
      reason: isMany ? 'other reasons' : about,
      fix: isMany ? '`crm-mirror problems --all` lists each' : fix,
      byName: new Map(),
    };
    found.set(isMany ? family : name, group);
    return group;
  };
  const add = (kind: RecordTypeName, all: Iterable<SimilarProblems>): void => {
    for (const one of all) {
      const { n, cause, value, samples } = one;
      if (one.class === 'held') continue;
      const group = groupOf(kind, one);
      group.count += n;
      // Lines of a file stand in their order.
      inOrder ??= new Intl.Collator('en', { numeric: true }).compare;
      const compare = inOrder;
      group.samples = [...group.samples, ...samples]
        .toSorted((a, b) => compare(a.place ?? a.key, b.place ?? b.key))
        .slice(0, mostSamples);
      if (!valued.has(cause) || value === null) continue;
      const known = group.byName.get(wordOf(value));
      const unknown = cause === 'date-in-future' ? 'future' : 'word';
      if (known) known.records += n;
      else if (group.byName.size >= mostValues) group.others += n;
      else group.byName.set(wordOf(value), { text: value, unknown, records: n });
    }
  };
  return {
    /** Leaves out what awaits approval. */
    add,
    addHeld(guard: GuardClass, count: number, { reason, fix }: Fault): void {
      const about = { class: 'held', kind: guardRows[guard].recordType } as const;
      const none = { option: undefined, values: [], others: 0, samples: [] };
      whole.push({ ...about, cause: 'awaiting-approval', ...none, count, reason, fix });
    },
    addRefusedReports(rows: readonly ReturnedRow[]): void {
      const about = { class: 'rejected', cause: 'crm-refused', option: null, value: null } as const;
      const all = rows.map(({ email: key, reason, fix }) => {
        const says = { about: sayRejected(reason ?? ''), fix: fix ?? '' };
        return { ...about, ...says, n: 1, samples: [{ key, place: null }] };
      });
      add('contact', all);
    },
    /** Returns the groups: the most urgent first, then by class and size. */
    groups(): ProblemGroup[] {
      const collected = [...found.values()].map(({ byName, ...group }) => ({
        ...group,
        values: [...byName.values()].toSorted((a, b) => b.records - a.records),
      }));
      return [...whole, ...collected].toSorted(
        (a, b) => rankOf(a) - rankOf(b) || b.count - a.count || (a.reason < b.reason ? -1 : 1),
      );
    },
  };
}

/** States that the CRM has refused an opt-out. */
export function sayRejected(reason: string): string {
  return `the CRM refused this opt-out: ${reason}`;
}

/** Causes for which somebody is still written to against their will come first. */
const urgent: readonly ProblemCause[] = ['opt-out-refused', 'renamed-claimed'];
const classes: readonly ProblemClass[] = ['held', 'rejected', 'invalid', 'conflict'];

function rankOf({ cause, class: of, option = '' }: ProblemGroup): number {
  // Nobody but a person can tell what these records say.
  if (cause === 'opt-out-unreadable') return -2;
  const isUrgent = urgent.includes(cause) || isOptOutOption(option);
  return isUrgent ? -1 : classes.indexOf(of);
}
