/** Counts the records that a guard's percentage refers to. This is slow, so it works in parts. */
import { type Steps, eachPart } from '../context/work-in-parts.ts';
import { guardRows, type GuardClass, type PopulationName } from '../../domain/guard-classes.ts';
import { judge, mostOf, type ChangeVolume } from '../report/guard-rules.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { findingsOf, type Known, type RunParts } from '../context/run-results.ts';
import type { RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { ownedOf } from './change-shape.ts';

const dayMs = 86_400_000;

const subscribed = storedFact<{ at: number; n: number }>(
  'subscribed',
  'the number of subscribed people',
);

/** How many records the guards' percentages refer to. */
export type Populations = ReturnType<typeof populationsOf>;

interface Counted {
  run: RunContext;
  parts: RunParts;
  known: Known;
}

/**
 * Counts the records that the percentages of the guard classes refer to, each class once in a run:
 * `before` has been counted.
 */
export function populationsOf(
  { run, parts, known }: Counted,
  before: Readonly<Partial<Record<GuardClass, number>>>,
) {
  const counted = { ...before };
  const { shaping, meta, transaction } = run.snapshot;

  /** Counts the subscribed people that the class does not change in this run, up to `enough`. */
  function* others(guard: GuardClass, enough = Infinity): Steps<number> {
    const { recordType: name } = guardRows[guard];
    const channels = name === 'contact' ? (parts.contacts?.channels ?? []) : [];
    let n = 0;
    yield* eachPart(shaping.spansOfKnown(name), (range) => {
      n += shaping.subscribed(name, { ...range, guard }, channels);
      return n < enough;
    });
    return n;
  }

  /**
   * `asked` is the number of the records that this run would change.
   *
   *   owned        recorded as ours
   *   known        ours, including those adopted by this run
   *   subscribed   ours, including those adopted by this run, and subscribed in at least one
   *                channel of the mirror: as the platform shows it, or as recorded if nothing was
   *                listed. Counted before the run's own opt-outs. A run about one person uses a
   *                count from the last day, if any
   *   wanted       in the source, and asking for something
   */
  const populations: Readonly<
    Record<PopulationName, (of: GuardClass, asked: number) => Steps<number>>
  > = {
    *owned(of) {
      return (yield* ownedOf(run, guardRows[of].recordType)).all;
    },
    *known(of) {
      const { recordType: kind } = guardRows[of];
      let n = 0;
      yield* eachPart(shaping.spansOfKnown(kind), (range) => {
        n += shaping.known(kind, range);
      });
      return n;
    },
    *subscribed(of, asked) {
      const at = run.clock.now();
      const kept = onlyKey(run) === undefined ? undefined : subscribed.read(meta);
      if (kept && Math.abs(at - kept.at) < dayMs) return kept.n;
      const n = asked + (yield* others(of));
      if (run.writes) transaction(() => subscribed.write(meta, { at, n }));
      return n;
    },
    // eslint-disable-next-line require-yield
    *wanted(of) {
      return findingsOf(known, guardRows[of].recordType).sizes.wanted;
    },
  };

  return {
    counted,
    others,
    *count(of: GuardClass, asked: number): Steps<number> {
      return (counted[of] ??= yield* populations[guardRows[of].population](of, asked));
    },
  };
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
