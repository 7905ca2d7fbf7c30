/** Loads and stores the canaries of a mirror. */
import {
  advance,
  bookOf,
  type Canary,
  type CanaryBook,
  canaryBook,
  type CanaryEvent,
  endOf,
} from '../../domain/guards/canary.ts';
import { askedClasses, type AskedClass } from '../../domain/guards/plan-rule.ts';
import { type Meta, metaValue } from '../../store/database/meta-table.ts';
import { isFirstLoad } from '../context/first-load.ts';
import { mappingOf, onlyKey } from '../context/mirror-context.ts';
import type { RunState } from '../context/run-state.ts';

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
    mapping: mappingOf(run),
    last: runs.lastMapping(run.id),
    isFirstLoad: isFirstLoad({ snapshot: run.snapshot, firstLoad: false }),
    at: run.clock.now(),
  });
  if (run.writes) run.snapshot.transaction(() => storeCanaries(state));
}

/** Stores the canaries. Must be called within a transaction. */
function storeCanaries({ run, review: { canaries } }: RunState): void {
  if (!run.writes || !canaries) return;
  const { meta } = run.snapshot;
  const text = JSON.stringify(canaries);
  if (text !== meta.get(name)) meta.set(name, text);
}

/**
 * Stores a canary of a class at once, if the run writes; undefined ends it. The first one of a
 * class that has none is counted.
 */
export function putCanary(state: RunState, guard: AskedClass, canary: Canary | undefined): void {
  const { run, review } = state;
  if (!review.canaries) return;
  const { canaries } = review;
  const isNew = canary !== undefined && canaries.classes[guard] === undefined;
  const begun = canaries.begun + (isNew ? 1 : 0);
  review.canaries = { ...canaries, begun, classes: { ...canaries.classes, [guard]: canary } };
  if (run.writes) run.snapshot.transaction(() => storeCanaries(state));
}

/** Moves the canary of a class, if there is one, to its next state. */
export function moveCanary(state: RunState, guard: AskedClass, event: CanaryEvent): void {
  const { run, review } = state;
  const before = review.canaries?.classes[guard];
  if (!before || !review.canaries) return;
  const after = advance(before, event);
  const end = endOf({ guard, before, after, at: run.clock.now() }, 'unwanted');
  if (end) review.canaries = { ...review.canaries, last: end };
  putCanary(state, guard, after);
}

/** Returns the canaries that are under way or have failed; none without a book. */
export function openIn(book: CanaryBook | undefined): [AskedClass, Canary][] {
  return askedClasses.flatMap((guard): [AskedClass, Canary][] => {
    const canary = book?.classes[guard];
    return canary && canary.state !== 'passed' ? [[guard, canary]] : [];
  });
}
