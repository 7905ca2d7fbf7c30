/** Who is held from one run to the next, and what of them: span by span, since it may be many. */
import { planning } from '../plan/plan.ts';
import type { Guarded } from '../snapshot/guarding.ts';
import type { Course } from './course.ts';
import type { Run } from './mirror.ts';
import { overtakenIn } from './overtaken.ts';
import { eachOf, throughout } from './throughout.ts';
import { guardClasses, guardedKind } from './withheld.ts';

/** Has whom a run withholds held in later runs too. */
export function* standWithheld({ snapshot }: Run): Generator<undefined, void> {
  const { held, transaction } = snapshot;
  yield* eachWithheld(snapshot, (guarded) => transaction(() => held.stand(guarded)));
}

/** What a run withholds, named by its content. */
export interface Batch {
  name: string;
  /** How many changes that is. */
  size: number;
}

export function* batchOf({ snapshot }: Run): Generator<undefined, Batch> {
  const content = planning();
  let size = 0;
  yield* eachWithheld(snapshot, (guarded) => {
    const changes = snapshot.guarding.withheld(guarded);
    content.add(changes);
    size += changes.length;
  });
  return { name: content.done().hash, size };
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
 * the run itself: with a process that ends in the middle, some are held until the next such run
 * wants nothing of them, or they are approved once more.
 */
export async function settleStanding({ run, approvals }: Course): Promise<void> {
  const { held, transaction } = run.snapshot;
  const kind = run.parts.find((part) => part.kind.name === guardedKind)?.kind;
  if (!kind) return;
  for (const guard of guardClasses) {
    await throughout(run, held.spans(guard, kind.name), (span) => {
      const standing = { ...span, guard, kind: kind.name };
      const but = overtakenIn(run, kind);
      transaction(() => {
        held.dropUnwanted(standing, but);
        for (const { plan } of approvals) held.dropApproved(standing, { plan, but });
      });
    });
  }
}
