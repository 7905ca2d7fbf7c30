/**
 * Applies the rules and windows of the configuration to the plan of a run. A rule is judged on the
 * whole plan as the guards let it pass, and again when the rest is planned anew because the CRM has
 * changed. What it withholds awaits approval like what a guard withholds. A run about one person is
 * not judged.
 *
 * A class that a rule withholds stays withheld in later rounds of the run. The reason is stored, so
 * that later runs can state it for changes that still wait.
 *
 * While no window allows changes, they are left to a later run. Nothing is withheld: the next run
 * in the window plans them again. What the CRM states about one person is made at any time, and so
 * are the opt-outs of `undo`. No run makes the other changes of an undo, so that the command has to
 * be called again.
 */
import { type Steps, eachPart } from '../context/work-in-parts.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import {
  askedBy,
  byAsked,
  askedClasses,
  type CountedOp,
  countedOps,
  type PlanFacts,
  type AskedClass,
} from '../../domain/guards/plan-rule.ts';
import { localTime } from '../../domain/values/local-time.ts';
import { median } from '../../domain/values/counted.ts';
import type { HoldReason } from '../../domain/guards/guard-limits.ts';
import { isFirstLoad, type RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import type { Populations } from './guard-counts.ts';
import { isClosed, opening } from '../../domain/guards/change-window.ts';
import type { JournaledChange } from '../../domain/change.ts';
import type { Problem } from '../../domain/errors.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { countWords, waitWords } from '../report/guard-text.ts';

/** How many runs `usual` is about. */
const mostRuns = 30;

export type AskedReason = Extract<HoldReason, { by: 'rule' | 'canary' }>;

/**
 * Holds what a rule, or a canary that is out of bounds, asks about. Returns why, if that is any. A
 * run about one person is not judged.
 */
export function* holdAsked(
  run: RunContext,
  guard: GuardClass,
  { canary, rule }: { canary: string | undefined; rule: string | undefined },
): Steps<AskedReason | undefined> {
  const asks = [canary, rule].filter((one) => one !== undefined);
  if (asks.length === 0 || onlyKey(run) !== undefined) return undefined;
  const { guarded, stage } = run.snapshot;
  let n = 0;
  yield* eachPart(guarded.ranges({ guard }), (range) => {
    stage(() => void (n += guarded.holdAsked(range)));
  });
  if (n === 0) return undefined;
  return { by: canary === undefined ? 'rule' : 'canary', says: asks.join('; ') };
}

/**
 * Judges the rules on the plan as the guards let it pass. What is slow to count is counted only if
 * a rule reads it. Returns what rules ask about which classes.
 */
export function* askRules(
  run: RunContext,
  classes: readonly GuardClass[],
  populations: Populations,
): Steps<ReadonlyMap<GuardClass, string>> {
  const { guarded, runs } = run.snapshot;
  const reads = (name: keyof PlanFacts) =>
    run.rules.some(({ when: { names } }) => names.includes(name));
  const plan = { ...noChanges, people: 0 };
  const percent: PlanFacts['percent'] = {};
  for (const guard of askedClasses) {
    const { configKey, recordType } = guardRows[guard];
    let records = 0;
    if (classes.includes(guard)) {
      yield* eachPart(guarded.ranges({ guard }), (range) => {
        const counts = guarded.askable(range);
        records += counts.records;
        for (const { op, n } of counts.ops) count(plan, op, n);
      });
    }
    if (recordType === 'contact') plan.people += records;
    if (reads('percent')) {
      const of = records === 0 ? 0 : yield* populations.count(guard, records);
      percent[configKey] = records === 0 ? 0 : (records * 100) / Math.max(of, records);
    }
  }
  const { weekday, hour } = localTime(run.clock.now(), run.timezone);
  const now = run.contacts?.manner;
  const last = runs.lastMapping(run.id);
  return askedBy(run.rules, {
    plan,
    percent,
    usual: reads('usual') ? usualOf(run) : { ...noChanges, runs: 0 },
    hour,
    weekday,
    mode: run.mode === 'fast' ? 'fast' : 'full',
    mapping_changed: last !== undefined && now !== undefined && last !== now,
    templates_published: reads('templates_published') ? guarded.countPublished() : 0,
    first_load: isFirstLoad(run),
  });
}

/** Adds to the counts of an operation. To create a person is to opt them in, too. */
function count(counts: Record<CountedOp, number>, op: string, n: number): void {
  if (op === 'create') counts.opt_in += n;
  for (const one of countedOps) if (one === op) counts[one] += n;
}

const noChanges = { create: 0, opt_in: 0, opt_out: 0, delete: 0, update: 0, archive: 0 };

function usualOf({ snapshot: { figures }, mode }: RunContext): PlanFacts['usual'] {
  const earlier = figures.lastChanges(mode === 'fast' ? 'fast' : 'full', mostRuns);
  const counts = earlier.map(({ run, changes }) => {
    const done = { ...noChanges };
    for (const { kind, op, state, n } of changes) {
      if (state !== 'acked' || (kind === 'template' && op === 'create')) continue;
      if (op !== 'opt_out') count(done, op, n);
    }
    const outs = figures.optOutsOf({ run, at: 0 }).filter(({ origin }) => origin === 'absence');
    done.opt_out = outs.reduce((sum, { n }) => sum + n, 0);
    return done;
  });
  const usual = { ...noChanges, runs: counts.length };
  for (const op of countedOps) usual[op] = Math.floor(median(counts.map((one) => one[op])));
  return usual;
}

/** Returns whether no window allows a class now. */
export function isClosedNow({ windows, timezone, clock }: RunContext, guard: GuardClass): boolean {
  return windows.length > 0 && isClosed(windows, guard, { at: clock.now(), timezone });
}

/** Returns whether a change must not be sent now. */
export function isTooLate(run: RunContext, { guard, seq }: JournaledChange): boolean {
  if (guard === undefined || !isClosedNow(run, guard)) return false;
  return !run.snapshot.guarded.isUrgent(seq);
}

/** Counts the records with changes that are left to a later run, by class. */
export function countDeferred(run: RunContext): Record<AskedClass, number> {
  const isAny = run.windows.length > 0 || run.canary !== undefined;
  return byAsked((guard) => (isAny ? run.snapshot.guarded.countDeferred(guard) : 0));
}

/** Returns whether changes of people, or of templates, are left to a later run. */
export function hasDeferred(run: RunContext, kind: RecordTypeName): boolean {
  const counts = countDeferred(run);
  return askedClasses.some((of) => guardRows[of].recordType === kind && counts[of] > 0);
}

/** States what waits for a window, and until when. */
export function sayDeferred(run: RunContext): Problem[] {
  const { windows, timezone, clock, snapshot, undo } = run;
  const { countDeferred: count } = snapshot.guarded;
  return askedClasses
    .filter((of) => count(of, 'window') > 0)
    .map((of): Problem => {
      const { recordType } = guardRows[of];
      const opens = opening(windows, of, { at: clock.now(), timezone });
      const waiting = count(of, 'window');
      if (undo) {
        const what = `of this undo, changes to ${countWords(recordType, waiting)} are not made`;
        const when = opens ? `from ${opens.words} on` : 'in more than two weeks';
        const fix = `run \`crm-mirror undo ${undo.run}\` again ${when}`;
        return { code: 'note', reason: `${what}: no window allows them now`, fix };
      }
      const until = opens?.words ?? 'longer than two weeks';
      return { code: 'note', reason: `${waitWords(of, waiting, until)} (windows)` };
    });
}
