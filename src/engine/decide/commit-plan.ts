/**
 * Writes what was decided: planned changes to the journal, and already known facts to the recorded
 * state. The do-not-contact list is written first, so that no opt-out is ever known only to the
 * snapshot. A large plan is mostly written in parts before the rest; if the process dies while it
 * writes
 *
 *   a part of the plan             the next run abandons it, and plans again
 *   records without any relation   are recorded as they were observed; all others wait
 *   the rest, in one transaction   nothing of it is written: a renamed person is recorded under
 *                                  both keys, or under neither
 */
import { inTurns, type Steps, untilDone } from '../context/work-in-parts.ts';
import { type Key, recordTypes } from '../../domain/record.ts';
import type { Plan } from '../report/run-summary.ts';
import { type Stretch, whole } from '../../store/database/key-range.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { type MirrorContacts, onlyKey } from '../context/mirror-context.ts';
import { identityOf } from '../context/person-identity.ts';
import type { Findings } from '../context/run-results.ts';

const remarksAtOnce = 500;

/** Writes the plan, with `more` in one transaction. Returns the numbers of changes to send. */
export async function commitPlan(run: RunContext, more?: () => void): Promise<Plan['changes']> {
  return yielding(run, steps(run, more));
}

/** Runs the steps and lets other tasks run in between. Skips people that another run has locked. */
export async function yielding<T>(run: RunContext, taken: Steps<T>): Promise<T> {
  const { value } = await untilDone(run, () => {
    dropSuperseded(run);
    const step = taken.next();
    return step.done ? step : true;
  });
  return value;
}

/** Writes a small plan within a transaction of the caller. */
export function commitNow(run: RunContext): void {
  withoutYielding(steps(run));
}

/** Each step is atomic. */
function* steps(run: RunContext, more?: () => void): Steps<Plan['changes']> {
  const { snapshot, doNotContact, clock, id } = run;
  const { staging, journal, ranges, transaction } = snapshot;
  const counts: Plan['changes'] = { contact: {}, template: {} };
  const adopt = (stretch: Stretch): void => {
    for (const { kind, op } of journal.adopt({ ...stretch, run: id, at: clock.now() }))
      counts[kind][op] = (counts[kind][op] ?? 0) + 1;
  };
  for (let after: number | undefined = 0; after !== undefined;) {
    yield;
    const some = snapshot.listNews.next(after, remarksAtOnce);
    const remarks = some.map(({ remark }) => remark);
    doNotContact.write(remarks, clock.now());
    after = some.at(-1)?.nth;
  }
  let last: Stretch | undefined;
  for (const chunk of staging.chunks()) {
    const before = last;
    yield;
    if (before) transaction(() => adopt(before));
    last = chunk;
  }
  for (const kind of recordTypes) {
    for (const range of ranges.ofNoted(kind)) {
      // The last range is recorded below; it contains everything if there is little.
      if (typeof range.upTo !== 'string') continue;
      yield;
      transaction(() => staging.adoptAlone(range));
    }
  }
  yield;
  transaction(() => {
    more?.();
    staging.adoptForgotten();
    staging.adoptNoted();
    adopt(last ?? whole);
  });
  staging.clearDecisions();
  return counts;
}

export function withoutYielding<T>(taken: Steps<T>): T {
  for (;;) {
    const { done, value } = taken.next();
    if (done) return value;
  }
}

/** Drops decisions about people locked by other runs since. Call it before one is written. */
export function dropSuperseded(run: RunContext): void {
  const { staging, stage } = run.snapshot;
  const keys = supersededKeys(run);
  if (keys.length > 0) stage(() => staging.undecide('contact', keys));
}

/**
 * Stores what the records of this reading state about each person, for the guards of later runs,
 * except about the erased. It comes after what the run withholds is stored, and before anything is
 * sent, so that an interrupted run leaves both.
 */
export async function storeStated(
  run: RunContext,
  { manner: mapping = '' }: MirrorContacts,
  findings: Findings,
): Promise<void> {
  const { ranges, staging, stated, transaction } = run.snapshot;
  const isAny = run.doNotContact.erased() !== undefined;
  const certified = findings.certified && run.selection === undefined && !run.quarantined;
  const whole = findings.whole && onlyKey(run) === undefined;
  const isErased = (key: Key): boolean =>
    run.doNotContact.concerning(identityOf(run, key)).some(({ cause }) => cause === 'erasure');
  const ofRest = staging.unchanged.isCompared();
  const all = ofRest ? ranges.ofRest('contact') : ranges.ofStated('contact');
  for await (const range of inTurns(run, all)) {
    const erased = isAny ? stated.newKeys(range).filter(isErased) : [];
    const but = [...supersededKeys(run), ...erased];
    const reading = { but, certified, whole, ofRest, mapping, at: run.clock.now() };
    transaction(() => stated.store(range, reading));
  }
  if (!certified || !whole || !stated.isAnyTurned()) return;
  for await (const range of inTurns(run, ranges.ofStated('contact'))) {
    transaction(() => stated.settleTurned(range));
  }
}
