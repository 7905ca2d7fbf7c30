/** Who is held from one run to the next, and what of them: span by span, since it may be many. */
import type { Kind } from '../../records/record-type.ts';
import { guardNames, guardRows, type GuardClass } from '../../domain/guard-classes.ts';
import { planning } from '../report/change-plan.ts';
import type { Guarded } from '../../snapshot/database/key-range.ts';
import type { Since } from '../../snapshot/tables/approval-holds.ts';
import { knowledgeOf, type Course } from '../context/run-context.ts';
import { onlyKey, type Run } from '../context/mirror-context.ts';
import { overtakenIn } from '../context/superseded-records.ts';
import { eachOf, throughout } from '../context/for-each-range.ts';

/** Has whom a run withholds held in later runs too; what is new stands since then. */
export function* standWithheld({ snapshot }: Run, since: Since): Generator<undefined, void> {
  const { held, transaction } = snapshot;
  yield* eachWithheld(snapshot, (guarded) => {
    const byPart = guardRows[guarded.guard].isStated;
    transaction(() => held.stand(guarded, { ...since, byPart }));
  });
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
  for (const guard of guardNames) {
    yield* eachOf(guarding.withheldSpans(guard), (span) => work({ ...span, guard }));
  }
}

/**
 * Who is held no longer after this run. Of stated opt-outs a whole reading is enough to tell, for
 * they are planned in every run; and what was acknowledged is over.
 */
export async function settleHeld(course: Course, settled: readonly Kind[]): Promise<void> {
  const { run, parts, known, failure } = course;
  for (const guard of guardNames) {
    const { isStated, kind: name } = guardRows[guard];
    const kind = parts.find((part) => part.kind.name === name)?.kind;
    if (!kind) continue;
    const { whole, certified } = knowledgeOf(course, kind);
    const isRead = known.has(kind) && onlyKey(run) === undefined && whole && certified;
    const tells = isStated && isRead && !failure && !run.stop.aborted && course.plan !== undefined;
    if (tells || settled.includes(kind)) await settleStanding(course, { guard, kind });
    if (isStated) run.snapshot.transaction(() => run.snapshot.held.dropDone(guard, run.id));
  }
}

/**
 * Of whom a run wants nothing that could tell, or whose approval it ended (a full one), is held no
 * longer. After the run itself: with a process that ends in the middle, some are held until the
 * next such run wants nothing of them, or they are approved once more.
 */
async function settleStanding(
  { run, approvals }: Course,
  { guard, kind }: { guard: GuardClass; kind: Kind },
): Promise<void> {
  const { held, transaction } = run.snapshot;
  const ended = run.mode === 'full' ? approvals : [];
  await throughout(run, held.spans(guard, kind.name), (span) => {
    const standing = { ...span, guard, kind: kind.name };
    const but = overtakenIn(run, kind);
    transaction(() => {
      held.dropUnwanted(standing, but);
      for (const { plan } of ended) held.dropApproved(standing, { plan, but });
    });
  });
}
