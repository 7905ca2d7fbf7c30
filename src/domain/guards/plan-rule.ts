/**
 * Rules of the configuration about a whole plan (docs/guards-and-approvals.md). A rule can only ask
 * for an approval.
 */
import {
  byGuard,
  type GuardClass,
  guardNames,
  type GuardKey,
  timedGuards,
} from '../guard-classes.ts';

/** The classes that a rule can withhold. Nothing withholds what the CRM states about one person. */
export type AskedClass = Exclude<GuardClass, 'opt_out'>;

/** The classes that a rule can withhold, in the order of the table. */
export const askedClasses: readonly AskedClass[] = guardNames.filter(
  (guard): guard is AskedClass => !timedGuards.has(guard),
);

/** Returns an object with one value for each of them, in alphabetical order as in JSON. */
export function byAsked<T>(of: (guard: GuardClass) => T): Record<AskedClass, T> {
  const { opt_out: _, ...asked } = byGuard(of);
  return asked;
}

/** Counts the records whose changes wait for a window or a canary. */
export function deferredCount(deferred: Record<AskedClass, number>): number {
  return askedClasses.reduce((sum, asked) => sum + deferred[asked], 0);
}

/** The counts of changes that a rule reads, of this run and of earlier ones. */
export const countedOps = ['create', 'opt_in', 'opt_out', 'delete', 'update', 'archive'] as const;
export type CountedOp = (typeof countedOps)[number];

/** What a rule knows about a run. Counts are of changes that a rule can withhold. */
export interface PlanFacts {
  /** The changes by operation; `people`: the people with such a change, each once in a class. */
  plan: Record<CountedOp | 'people', number>;
  /** The records of a class, as a percentage of those that its guard refers to. */
  percent: Partial<Record<GuardKey, number>>;
  /** The medians of the last runs of the same mode with changes; `runs`: how many there are. */
  usual: Record<CountedOp | 'runs', number>;
  /** The hour of the day, 0 to 23. */
  hour: number;
  /** Mon, Tue, Wed, Thu, Fri, Sat or Sun. */
  weekday: string;
  mode: 'full' | 'fast';
  /** Whether the contacts are read differently from the last completed run. */
  mapping_changed: boolean;
  /** The number of templates that are published after the run and that it creates or changes. */
  templates_published: number;
  first_load: boolean;
}

/** The condition of a rule. It is pure and parsed once. */
export interface PlanCondition {
  /** The text of the condition in the configuration. */
  readonly text: string;
  readonly names: readonly string[];
  /** Returns whether the condition is true; undefined if it cannot be evaluated. */
  judge(facts: PlanFacts): boolean | undefined;
}

export interface PlanRule {
  readonly when: PlanCondition;
  readonly then: 'ask';
  readonly say?: string | undefined;
  /** The classes that the rule withholds; undefined for all. */
  readonly for?: readonly AskedClass[] | undefined;
}

/** Returns what rules withhold, and what the approver reads. A rule that fails matches. */
export function askedBy(rules: readonly PlanRule[], facts: PlanFacts): Map<GuardClass, string> {
  const asked = new Map<GuardClass, string>();
  for (const rule of rules) {
    const result = rule.when.judge(facts);
    if (result === false) continue;
    const fails = result === undefined ? ' cannot be evaluated' : '';
    const about = `the rule \`${rule.when.text}\`${fails}`;
    const unsaid = fails === '' ? `${about} asks for it` : about;
    const words = rule.say === undefined ? unsaid : `${rule.say} (${about})`;
    for (const guard of rule.for ?? askedClasses) {
      const before = asked.get(guard);
      asked.set(guard, before === undefined ? words : `${before}; ${words}`);
    }
  }
  return asked;
}
