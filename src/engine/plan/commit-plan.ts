/**
 * What was decided becomes the journal's plan, and what is known already is recorded: in the ledger
 * first, so that nobody who left is ever known to the snapshot alone.
 *
 * Of very many, most is written part by part before the rest, so that nothing in the process stands
 * still meanwhile; with a process that ends in the middle it is worth what the same would be of a
 * run about these alone:
 *
 *   a part of the plan           the next run abandons it, and plans anew
 *   records that stand alone     are as they were seen; all others wait
 *   the rest, in one go          whoever has another name by now, under both of them
 */
import type { Stretch } from '../../snapshot/database/plan-chunks.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';

const remarksAtOnce = 500;

/** With `more` in the same transaction as the rest. */
export async function commitPlan(run: RunContext, more?: () => void): Promise<void> {
  await yielding(run, steps(run, more));
}

/** Takes the steps; others have their turn between, and whom another run has taken is left out. */
export async function yielding<T>(run: RunContext, taken: Generator<undefined, T>): Promise<T> {
  for (;;) {
    dropSuperseded(run);
    const { done, value } = taken.next();
    if (done) return value;
    await run.clock.sleep(0);
  }
}

/** Where nobody is overtaken, and little was decided: within a transaction of the caller's. */
export function commitNow(run: RunContext): void {
  withoutYielding(steps(run));
}

/** What is done between two steps nobody else sees half of. */
function* steps(run: RunContext, more?: () => void): Generator<undefined, void> {
  const { snapshot, clock, id } = run;
  const { staging, journal, transaction } = snapshot;
  yield* updateDoNotContact(run);
  let last: Stretch | undefined;
  for (const stretch of staging.chunks()) {
    const whole = last;
    yield;
    if (whole) transaction(() => journal.adopt(id, clock.now(), whole));
    last = stretch;
  }
  yield* recordAlone(run);
  yield;
  transaction(() => {
    more?.();
    staging.adoptForgotten();
    staging.adoptNoted();
    journal.adopt(id, clock.now(), last);
  });
  staging.clearDecisions();
}

function* updateDoNotContact({ snapshot, doNotContact, clock }: RunContext): Generator<undefined> {
  let after = 0;
  for (;;) {
    yield;
    const some = snapshot.listNews.next(after, remarksAtOnce);
    doNotContact.write(
      some.map(({ remark }) => remark),
      clock.now(),
    );
    const { nth } = some.at(-1) ?? {};
    if (nth === undefined) return;
    after = nth;
  }
}

/** All ranges but the last: where there are few, everything is in that. */
function* recordAlone({ snapshot, parts }: RunContext): Generator<undefined> {
  const { ranges, staging, transaction } = snapshot;
  for (const { type } of parts) {
    for (const range of ranges.ofNoted(type.name)) {
      if (typeof range.upTo !== 'string') continue;
      yield;
      transaction(() => staging.adoptAlone(type.name, range));
    }
  }
}

/** Takes the steps within this turn. */
export function withoutYielding<T>(taken: Generator<undefined, T>): T {
  for (;;) {
    const { done, value } = taken.next();
    if (done) return value;
  }
}

/**
 * Of whom another run took since it was decided, nothing is recorded, remembered or sent any more;
 * before anything of it is written.
 */
export function dropSuperseded(run: RunContext): void {
  const { staging, stage } = run.snapshot;
  for (const { type } of run.parts) {
    const keys = supersededKeys(run, type);
    if (keys.length > 0) stage(() => staging.undecide(type.name, keys));
  }
}
