/**
 * Chooses the slice of a canary, and leaves everybody else to a later run. Who is in a slice
 * follows from a hash of the record's key and of the canary's seed, so that it is the same in every
 * run, in a plan before it without a snapshot too, and that another canary meets other people.
 */
import { hash } from 'node:crypto';
import { type Canary, type CanaryPolicy, seedOf, sliceSize } from '../../domain/guards/canary.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import { askedClasses, type AskedClass } from '../../domain/guards/plan-rule.ts';
import type { Key } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { SentChange } from '../../store/guards/guarded-changes.ts';
import type { ReviewState, RunState } from '../context/run-state.ts';
import { eachPart } from '../context/work-in-parts.ts';
import { mostOf } from '../report/guard-rules.ts';
import { populationOf } from './guard-population.ts';
import { moveCanary, putCanary } from './canary-book.ts';

type Hash = (key: Key) => string;
interface Hashed {
  key: Key;
  hash: string;
}

/** Returns a function that tells whether a record is in the slice, unless it is a newcomer. */
export function memberOf({
  seed,
  through,
}: Pick<Canary, 'seed' | 'through'>): (key: Key) => boolean {
  const hashOf = hasher(seed);
  return (key) => hashOf(key) <= through;
}

/** Returns the changes of a slice that have been sent and have an outcome. */
export function sentOf(
  { guarded }: Pick<Snapshot, 'guarded'>,
  guard: AskedClass,
  canary: Canary,
): SentChange[] {
  const isMember = memberOf(canary);
  return guarded.canary.sent(guard, canary.run).filter(({ key }) => isMember(key));
}

function hasher(seed: string): Hash {
  return (key) => hash('sha256', `${seed} ${key}`).slice(0, 12);
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
  const { mirror, run, review } = state;
  const { guarded } = run.snapshot;
  const isTemplate = guardRows[guard].recordType === 'template';
  const because = isTemplate ? ('templates' as const) : review.canaries?.occasion;
  if (!because || !review.canaries) return;
  let planned = 0;
  yield* eachPart(guarded.ranges(guard), (range) => {
    planned += guarded.canary.keys({ ...range, guard }).length;
  });
  if (planned === 0 || planned <= (yield* fewest(state, guard, { policy, planned }))) return;
  const seed = seedOf(mirror.name, review.canaries);
  const hashOf = hasher(seed);
  const most = sliceSize(guard, policy, planned);
  const first = yield* firstOf(state, guard, { hashOf, most, among: () => true });
  const through = first.at(-1)?.hash ?? '';
  putCanary(state, guard, {
    because,
    run: run.id,
    seed,
    begunAt: run.clock.now(),
    through,
    size: first.length,
    of: planned,
    state: 'applying',
  });
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

/** Returns the planned records with the smallest hashes, by hash. */
function* firstOf(
  { run: { snapshot } }: RunState,
  guard: AskedClass,
  { hashOf, most, among }: { hashOf: Hash; most: number; among: (key: Key) => boolean },
): Generator<undefined, Hashed[]> {
  const { guarded } = snapshot;
  let first: Hashed[] = [];
  yield* eachPart(guarded.ranges(guard), (range) => {
    const last = first.length < most ? undefined : first.at(-1)?.hash;
    const nearer = guarded.canary
      .keys({ ...range, guard })
      .filter(among)
      .map((key) => ({ key, hash: hashOf(key) }))
      .filter(({ hash }) => last === undefined || hash < last);
    if (nearer.length === 0) return;
    const all = [...first, ...nearer].toSorted((a, b) => (a.hash < b.hash ? -1 : 1));
    first = all.slice(0, most);
  });
  return first;
}

function* leaveOthers(
  state: RunState,
  guard: AskedClass,
  canary: Canary,
): Generator<undefined, void> {
  const { guarded, stage } = state.run.snapshot;
  const passing = yield* passingOf(state, guard, canary);
  yield* eachPart(guarded.ranges(guard), (range) => {
    const others = guarded.canary.keys({ ...range, guard }).filter((key) => !passing.has(key));
    if (others.length > 0) stage(() => guarded.deferred.deferFor({ ...range, guard }, others));
  });
}

/**
 * Returns the records that pass with the slice: those that have been changed, and until all of it
 * is, as many others as it has room for. Newcomers whose hash is in it wait, too.
 */
function* passingOf(
  state: RunState,
  guard: AskedClass,
  canary: Canary,
): Generator<undefined, ReadonlySet<Key>> {
  const isMember = memberOf(canary);
  const passing = new Set(sentOf(state.run.snapshot, guard, canary).map(({ key }) => key));
  const room = canary.size - passing.size;
  if (canary.state !== 'applying' || room <= 0) return passing;
  const next = yield* firstOf(state, guard, {
    hashOf: hasher(canary.seed),
    most: room,
    among: (key) => isMember(key) && !passing.has(key),
  });
  return new Set([...passing, ...next.map(({ key }) => key)]);
}
