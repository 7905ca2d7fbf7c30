/** Counts the records that a guard's percentage refers to. This is slow, so it works in parts. */
import { z } from 'zod';
import { guardRows, type GuardClass, type PopulationName } from '../../domain/guard-classes.ts';
import { judge, mostOf, type ChangeVolume } from '../report/guard-rules.ts';
import { type Meta, metaValue } from '../../store/database/meta-table.ts';
import { type RunState, findingsNamed } from '../context/run-state.ts';
import type { RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { eachPart } from '../context/work-in-parts.ts';
import { channelsOf, ownedOf } from './change-shape.ts';

const dayMs = 86_400_000;

type Count = (context: RunState, of: GuardClass, asked: number) => Generator<undefined, number>;

/**
 * Counts the records that a percentage refers to, each record once. `asked` is the number of them
 * that this run would change.
 *
 *   owned        recorded as ours
 *   known        ours, including those adopted by this run
 *   subscribed   ours, including those adopted by this run, and subscribed in at least one channel
 *                of the mirror: as the platform shows it, or as recorded if nothing was listed.
 *                Counted before the run's own opt-outs
 *   wanted       in the source, and asking for something
 */
const populations: Readonly<Record<PopulationName, Count>> = {
  *owned({ run }, of) {
    return (yield* ownedOf(run, guardRows[of].recordType)).all;
  },
  known: knownOf,
  subscribed: subscribedOf,
  // eslint-disable-next-line require-yield
  *wanted({ known }, of) {
    return findingsNamed(known, guardRows[of].recordType).sizes.wanted;
  },
};

/** Counts the records that the percentage of a class refers to, once in a run. */
export function* populationOf(
  context: RunState,
  of: GuardClass,
  asked: number,
): Generator<undefined, number> {
  const { population } = context.review;
  return (population[of] ??= yield* populations[guardRows[of].population](context, of, asked));
}

/** Counts the subscribed people that the class does not change in this run, up to `enough`. */
export function* othersOf(
  context: RunState,
  guard: GuardClass,
  enough = Infinity,
): Generator<undefined, number> {
  const { shaping } = context.run.snapshot;
  const { recordType: name } = guardRows[guard];
  const channels = channelsOf(context, guard);
  let n = 0;
  yield* eachPart(shaping.spansOfKnown(name), (range) => {
    n += shaping.subscribed(name, { ...range, guard }, channels);
    return n < enough;
  });
  return n;
}

function* knownOf({ run }: RunState, guard: GuardClass): Generator<undefined, number> {
  const { shaping } = run.snapshot;
  const { recordType: kind } = guardRows[guard];
  let n = 0;
  yield* eachPart(shaping.spansOfKnown(kind), (range) => {
    n += shaping.known(kind, range);
  });
  return n;
}

const counted = z.object({ at: z.number(), n: z.number() });
const nameOfCount = 'subscribed';

/** Counts the subscribed people. A run about one person uses a count from the last day, if any. */
function* subscribedOf(
  context: RunState,
  of: GuardClass,
  asked: number,
): Generator<undefined, number> {
  const { meta, transaction } = context.run.snapshot;
  const at = context.run.clock.now();
  const isAlone = onlyKey(context.run) !== undefined;
  const kept = isAlone ? metaValue(meta, nameOfCount, counted) : undefined;
  if (kept && Math.abs(at - kept.at) < dayMs) return kept.n;
  const n = asked + (yield* othersOf(context, of));
  if (context.run.writes) transaction(() => meta.set(nameOfCount, JSON.stringify({ at, n })));
  return n;
}

const volume = z.object({ at: z.number(), people: z.number(), most: z.number() });
const nameOfRush = 'opt-outs past the limit';

/**
 * Opt-outs caused by events and by `one` that exceeded the limit; `at` is in milliseconds since the
 * epoch.
 */
export type PastLimit = z.infer<typeof volume>;

/** Records that opt-outs which are never held have exceeded the limit. */
export function noteVolume(run: RunContext, of: GuardClass, asked: ChangeVolume): void {
  const limit = run.guards[of];
  if (!run.writes || !judge(asked, limit)) return;
  const { meta, transaction } = run.snapshot;
  const people = asked.week + asked.unapproved;
  const note: PastLimit = { at: run.clock.now(), people, most: 2 * mostOf(asked, limit) };
  transaction(() => meta.set(nameOfRush, JSON.stringify(note)));
}

/** Returns the record of the last day, or undefined if there is none. */
export function pastLimit(meta: Meta, now: number): PastLimit | undefined {
  const kept = metaValue(meta, nameOfRush, volume);
  return kept && Math.abs(now - kept.at) < dayMs ? kept : undefined;
}
