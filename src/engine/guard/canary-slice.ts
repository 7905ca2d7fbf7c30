/**
 * Chooses the slice of a canary, and leaves everybody else to a later run. Who is in a slice
 * follows from a keyed hash of the record's key and of the run that began the canary, so that it is
 * the same in every run, and that another canary meets other people.
 */
import { type Canary, type CanaryPolicy, sliceSize } from '../../domain/canary.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import { askedClasses, type AskedClass } from '../../domain/plan-rule.ts';
import type { Key } from '../../domain/record.ts';
import type { Meta } from '../../snapshot/database/meta-table.ts';
import { shortHasher } from '../context/person-identity.ts';
import type { ReviewState, RunState } from '../context/run-state.ts';
import { eachRange } from '../context/work-in-parts.ts';
import { mostOf } from '../report/guard-rules.ts';
import { populationOf } from './guard-population.ts';
import { moveCanary, putCanary } from './canary-book.ts';

/** Returns a function that tells whether a record is in the slice. */
export function memberOf(
  meta: Pick<Meta, 'get'>,
  { run, through }: Pick<Canary, 'run' | 'through'>,
): (key: Key) => boolean {
  const hashOf = shortHasher(meta);
  return (key) => hashOf(`${run} ${key}`) <= through;
}

/** Begins the canaries that are due, and leaves what waits for a canary to a later run. */
export function* applyCanaries(
  state: RunState,
  classes: readonly GuardClass[],
): Generator<undefined, void> {
  const { run, review } = state;
  const { canary: policy } = run;
  if (!policy || !review.canaries) return;
  for (const guard of askedClasses.filter((of) => classes.includes(of))) {
    if (!review.canaries.classes[guard]) yield* beginIfDue(state, guard, policy);
    const canary = review.canaries.classes[guard];
    if (canary?.state === 'applying' || canary?.state === 'waiting')
      yield* leaveOthers(state, guard, canary);
  }
}

/** Returns the canary of a class if it is out of bounds. */
export function failedCanary(
  { canaries }: ReviewState,
  guard: GuardClass,
): Extract<Canary, { state: 'failed' }> | undefined {
  const canary = guard === 'opt_out' ? undefined : canaries?.classes[guard];
  return canary?.state === 'failed' ? canary : undefined;
}

/** Marks failed canaries as approved if nothing of what was shown is left to approve. */
export function passApproved(state: RunState): void {
  const { guarded } = state.run.snapshot;
  for (const guard of askedClasses) {
    if (!failedCanary(state.review, guard)) continue;
    if (guarded.canary.countApproved(guard) > 0 && guarded.countWithheld(guard) === 0)
      moveCanary(state, guard, { is: 'approved' });
  }
}

function* beginIfDue(
  state: RunState,
  guard: AskedClass,
  policy: CanaryPolicy,
): Generator<undefined, void> {
  const { run, review } = state;
  const { guarded, meta } = run.snapshot;
  const isTemplate = guardRows[guard].recordType === 'template';
  const because = isTemplate ? ('templates' as const) : review.canaries?.occasion;
  if (!because) return;
  let planned = 0;
  yield* eachRange(guarded.ranges(guard), (range) => {
    planned += guarded.canary.keys({ ...range, guard }).length;
  });
  if (planned === 0 || planned <= (yield* fewest(state, guard, { policy, planned }))) return;
  const size = sliceSize(guard, policy, planned);
  const hashOf = shortHasher(meta);
  let smallest: string[] = [];
  let through = '';
  yield* eachRange(guarded.ranges(guard), (range) => {
    const hashes = guarded.canary
      .keys({ ...range, guard })
      .map((key) => hashOf(`${run.id} ${key}`));
    const isFull = smallest.length >= size;
    const nearer = isFull ? hashes.filter((one) => one < through) : hashes;
    if (nearer.length === 0) return;
    smallest = [...smallest, ...nearer].toSorted().slice(0, size);
    through = smallest.at(-1) ?? '';
  });
  const begunAt = run.clock.now();
  const slice = { because, run: run.id, begunAt, through, size: smallest.length, of: planned };
  putCanary(state, guard, { ...slice, state: 'applying' });
}

/** Returns how many may be planned without a canary. */
function* fewest(
  state: RunState,
  guard: AskedClass,
  { policy: { floor }, planned }: { policy: CanaryPolicy; planned: number },
): Generator<undefined, number> {
  if (guardRows[guard].recordType !== 'template') return floor;
  // More than the guard's limit passes only if somebody has approved it: that is many, too.
  const of = yield* populationOf(state, guard, planned);
  return Math.min(floor, mostOf({ of }, state.run.guards[guard]));
}

function* leaveOthers(
  { run: { snapshot } }: RunState,
  guard: AskedClass,
  canary: Canary,
): Generator<undefined, void> {
  const { guarded, meta, stage } = snapshot;
  const isMember = memberOf(meta, canary);
  yield* eachRange(guarded.ranges(guard), (range) => {
    const others = guarded.canary.keys({ ...range, guard }).filter((key) => !isMember(key));
    if (others.length > 0) stage(() => guarded.deferred.deferFor({ ...range, guard }, others));
  });
}
