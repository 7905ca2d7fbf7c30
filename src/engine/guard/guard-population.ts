/** Counts the records that a guard's percentage refers to. This is slow, so it works in parts. */
import { type Steps, eachPart } from '../context/work-in-parts.ts';
import { guardRows, type GuardClass, type PopulationName } from '../../domain/guard-classes.ts';
import { judge, mostOf, type ChangeVolume } from '../report/guard-rules.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { type RunState, findingsOf } from '../context/run-state.ts';
import type { RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { ownedOf } from './change-shape.ts';

const dayMs = 86_400_000;

const subscribed = storedFact<{ at: number; n: number }>(
  'subscribed',
  'the number of subscribed people',
);

/**
 * Counts the records that a percentage refers to, each record once. `asked` is the number of them
 * that this run would change.
 *
 *   owned        recorded as ours
 *   known        ours, including those adopted by this run
 *   subscribed   ours, including those adopted by this run, and subscribed in at least one channel
 *                of the mirror: as the platform shows it, or as recorded if nothing was listed.
 *                Counted before the run's own opt-outs. A run about one person uses a count from
 *                the last day, if any
 *   wanted       in the source, and asking for something
 */
const populations: Readonly<
  Record<PopulationName, (state: RunState, of: GuardClass, asked: number) => Steps<number>>
> = {
  *owned({ run }, of) {
    return (yield* ownedOf(run, guardRows[of].recordType)).all;
  },
  *known({ run }, of) {
    const { shaping } = run.snapshot;
    const { recordType: kind } = guardRows[of];
    let n = 0;
    yield* eachPart(shaping.spansOfKnown(kind), (range) => {
      n += shaping.known(kind, range);
    });
    return n;
  },
  *subscribed(state, of, asked) {
    const { snapshot, clock, writes } = state.run;
    const at = clock.now();
    const isAlone = onlyKey(state.run) !== undefined;
    const kept = isAlone ? subscribed.read(snapshot.meta) : undefined;
    if (kept && Math.abs(at - kept.at) < dayMs) return kept.n;
    const n = asked + (yield* othersOf(state, of));
    if (writes) snapshot.transaction(() => subscribed.write(snapshot.meta, { at, n }));
    return n;
  },
  // eslint-disable-next-line require-yield
  *wanted(state, of) {
    return findingsOf(state, guardRows[of].recordType).sizes.wanted;
  },
};

/** Counts the records that the percentage of a class refers to, once in a run. */
export function* populationOf(state: RunState, of: GuardClass, asked: number): Steps<number> {
  const { population } = state.review;
  return (population[of] ??= yield* populations[guardRows[of].population](state, of, asked));
}

/** Counts the subscribed people that the class does not change in this run, up to `enough`. */
export function* othersOf(state: RunState, guard: GuardClass, enough = Infinity): Steps<number> {
  const { shaping } = state.run.snapshot;
  const { recordType: name } = guardRows[guard];
  const channels = name === 'contact' ? (state.contacts?.channels ?? []) : [];
  let n = 0;
  yield* eachPart(shaping.spansOfKnown(name), (range) => {
    n += shaping.subscribed(name, { ...range, guard }, channels);
    return n < enough;
  });
  return n;
}

/**
 * Opt-outs caused by events and by `sync --person` that exceeded the limit; `at` is in milliseconds
 * since the epoch.
 */
export interface PastLimit {
  at: number;
  people: number;
  most: number;
}

const optOutsPastLimit = storedFact<PastLimit>(
  'opt-outs past the limit',
  'the opt-outs past the limit',
);

/** Records that opt-outs which are never held have exceeded the limit. */
export function noteVolume(run: RunContext, of: GuardClass, asked: ChangeVolume): void {
  const limit = run.guards[of];
  if (!run.writes || !judge(asked, limit)) return;
  const { meta, transaction } = run.snapshot;
  const people = asked.week + asked.unapproved;
  const note: PastLimit = { at: run.clock.now(), people, most: 2 * mostOf(asked, limit) };
  transaction(() => optOutsPastLimit.write(meta, note));
}

/** Returns the record of the last day, or undefined if there is none. */
export function pastLimit(meta: Meta, now: number): PastLimit | undefined {
  const kept = optOutsPastLimit.read(meta);
  return kept && Math.abs(now - kept.at) < dayMs ? kept : undefined;
}
