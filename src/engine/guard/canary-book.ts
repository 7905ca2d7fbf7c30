/** Loads and stores the canaries of a mirror, and tells them to people and programs. */
import {
  advance,
  bookOf,
  type Canary,
  type CanaryBook,
  canaryBook,
  type CanaryEvent,
  type CanaryTime,
} from '../../domain/canary.ts';
import type { Problem } from '../../domain/errors.ts';
import { askedClasses, type AskedClass } from '../../domain/plan-rule.ts';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';
import { isFirstLoad } from '../context/first-load.ts';
import { onlyKey } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { RunState } from '../context/run-state.ts';
import { type ToldCanary, tellCanary, waitingWords } from '../report/canary-text.ts';

const name = 'canary';

/** Returns the canaries that the snapshot holds; undefined if it holds none. */
export function storedCanaries(meta: Meta): CanaryBook | undefined {
  return metaValue(meta, name, canaryBook);
}

/**
 * Opens the canaries of a run. Runs about one person or a list of people have none, and neither has
 * a run that undoes another: they are about people that somebody has named.
 */
export function openCanaries(state: RunState): void {
  const { run, options, review } = state;
  if (!run.canary || run.undo || options.onlyPeople || onlyKey(run) !== undefined) return;
  const { meta, runs } = run.snapshot;
  review.canaries = bookOf(storedCanaries(meta), {
    mapping: run.parts.find(({ manner }) => manner !== undefined)?.manner,
    last: runs.lastMapping(run.id),
    isFirstLoad: isFirstLoad({ snapshot: run.snapshot, firstLoad: false }),
    at: run.clock.now(),
  });
  if (run.writes) run.snapshot.transaction(() => storeCanaries(state));
}

/** Stores the canaries. Must be called within a transaction. */
export function storeCanaries({ run, review: { canaries } }: RunState): void {
  if (!run.writes || !canaries) return;
  const { meta } = run.snapshot;
  const text = JSON.stringify(canaries);
  if (text !== meta.get(name)) meta.set(name, text);
}

/** Stores a canary of a class at once, if the run writes; undefined ends it. */
export function putCanary(state: RunState, guard: AskedClass, canary: Canary | undefined): void {
  const { run, review } = state;
  if (!review.canaries) return;
  const { canaries } = review;
  review.canaries = { ...canaries, classes: { ...canaries.classes, [guard]: canary } };
  if (run.writes) run.snapshot.transaction(() => storeCanaries(state));
}

/** Moves the canary of a class, if there is one, to its next state. */
export function moveCanary(state: RunState, guard: AskedClass, event: CanaryEvent): void {
  const canary = state.review.canaries?.classes[guard];
  if (canary) putCanary(state, guard, advance(canary, event));
}

/** Returns the current time by both clocks; the platform's is known from its last answer. */
export function canaryNow({ clock, platformNow }: RunContext): CanaryTime {
  const at = platformNow();
  return { at: clock.now(), platformAt: at === undefined ? null : Math.floor(at) };
}

/** Returns the canaries that are under way or have failed. */
export function openIn({ classes }: CanaryBook): [AskedClass, Canary][] {
  return askedClasses.flatMap((guard): [AskedClass, Canary][] => {
    const canary = classes[guard];
    return canary && canary.state !== 'passed' ? [[guard, canary]] : [];
  });
}

/** Returns the canaries of a run as its summary shows them; undefined without `policy.canary`. */
export function canariesOf({ run, review }: RunState): ToldCanary[] | undefined {
  const { canary: policy } = run;
  if (!policy) return undefined;
  return askedClasses.flatMap((guard) => {
    const canary = review.canaries?.classes[guard];
    return canary ? [tellCanary(guard, canary, policy)] : [];
  });
}

/** States what waits for canaries, until when, and what to run next. */
export function sayCanaries(state: RunState): Problem[] {
  const { deferred } = state.run.snapshot.guarded;
  return (canariesOf(state) ?? []).flatMap((told): Problem[] => {
    const waiting = deferred.count(told.class, 'canary');
    return waiting === 0 ? [] : [{ code: 'note', ...waitingWords(told.class, waiting, told) }];
  });
}
