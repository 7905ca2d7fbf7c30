/** Who is held from one run to the next, and what of them: span by span, since it may be many. */
import { planning } from '../plan/plan.ts';
import type { Guarded } from '../snapshot/guarding.ts';
import type { Course } from './course.ts';
import type { Run } from './mirror.ts';
import { overtakenIn } from './overtaken.ts';
import { eachOf, throughout } from './throughout.ts';
import { guardClasses } from './withheld.ts';

/** Has whom a run withholds held in later runs too. */
export function* standWithheld({ snapshot }: Run): Generator<undefined, void> {
  const { held, transaction } = snapshot;
  yield* eachWithheld(snapshot, (guarded) => transaction(() => held.stand(guarded)));
}

/** Keeps what a run withholds: answers in which batch. */
export function* keepWithheld({ snapshot }: Run): Generator<undefined, string> {
  const { held, guarding, transaction } = snapshot;
  const content = planning();
  yield* eachWithheld(snapshot, (guarded) => content.add(guarding.withheld(guarded)));
  const batch = content.done().hash;
  yield* eachWithheld(snapshot, (guarded) => transaction(() => held.keepIn(batch, guarded)));
  return batch;
}

function* eachWithheld(
  { guarding }: Run['snapshot'],
  work: (guarded: Guarded) => void,
): Generator<undefined> {
  for (const guard of guardClasses) {
    yield* eachOf(guarding.withheldSpans(guard), (span) => work({ ...span, guard }));
  }
}

/**
 * Of whom a run wants nothing that could tell, or whose approval it ended, is held no longer. After
 * it has ended: with a process that ends in the middle, the next such run does the rest.
 */
export async function dropStanding({ run, approvals }: Course): Promise<void> {
  const { held, transaction } = run.snapshot;
  for (const { kind } of run.parts) {
    for (const guard of guardClasses) {
      await throughout(run, held.spans(guard, kind.name), (span) => {
        const standing = { ...span, guard, kind: kind.name };
        transaction(() => {
          held.dropUnwanted(standing, overtakenIn(run, kind));
          for (const { plan } of approvals) held.dropEnded(standing, plan);
        });
      });
    }
  }
}
