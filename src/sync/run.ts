/**
 * One run of a mirror: read → observe → decide → apply → record. A plan is the same run that stops
 * before anything is written.
 *
 * What is learnt on the way (somebody is found on the platform, or gone from it) is decided upon in
 * a further round of the same run, three rounds at most.
 */
import { Busy, Invalid, isExpected } from '../model/errors.ts';
import { planOf } from '../plan/plan.ts';
import type { Kind } from '../kind/kind.ts';
import { apply, type Applying } from './apply.ts';
import type { Course } from './course.ts';
import { decide, type Knowledge } from './decide.ts';
import type { Mirror, MirrorPart, RunOptions } from './mirror.ts';
import { noticeInvalid } from './notice.ts';
import { each } from './each.ts';
import { observe } from './observe.ts';
import { read } from './read.ts';
import { recover } from './recover.ts';
import { begin, conclude } from './record.ts';
import type { Summary } from '../plan/summary.ts';

const rounds = 3;

/**
 * Runs once. What can go wrong with people, the source or the platform is said by the summary;
 * throws Invalid for input that cannot be used at all, Busy for input that is not ready, and bugs.
 */
export async function run(mirror: Mirror, options: RunOptions): Promise<Summary> {
  const course = begin(mirror, options);
  try {
    if (options.writes) await eachPart(course, (applying) => recover(applying));
    for (const part of course.parts) await learn(course, part);
    await list(course);
    for (const { kind } of course.parts) narrow(course, kind);
    for (let round = 1; ; round += 1) {
      plan(course);
      if (!options.writes || isLeftOver(course, round)) break;
      commit(course);
      await eachPart(course, apply);
      await eachPart(course, recover);
      if (!again(course)) break;
    }
  } catch (error) {
    if (!isExpected(error)) throw error;
    course.failure = error;
  }
  const summary = conclude(course);
  if (course.failure instanceof Invalid || course.failure instanceof Busy) throw course.failure;
  return summary;
}

/** Reads one kind's source; what it lacks is said, and limits what may be done. */
async function learn({ run, reasons, known }: Course, part: MirrorPart): Promise<void> {
  const certificate = await read(run, part);
  if (!certificate.complete && part.kind.needsCertificate) {
    reasons.push(`${certificate.why}, so only opt-outs are applied → ${certificate.fix}`);
  }
  known.set(part.kind, { certified: certificate.complete, listing: undefined });
}

/**
 * Lists all kinds side by side, when this is a full run; the first failure ends the others. A kind
 * that the key may not list is known only by what is recorded.
 */
async function list({ run, parts, known, brake }: Course): Promise<void> {
  if (run.mode === 'fast') return;
  const others = new AbortController();
  const stop = AbortSignal.any([run.stop, others.signal]);
  await each(parts, parts.length, async ({ kind }) => {
    try {
      const listing = await observe({ ...run, stop }, kind);
      run.snapshot.staging.resolveKeys(kind.name);
      known.set(kind, { certified: knowledgeOf({ known }, kind).certified, listing });
    } catch (error) {
      if (brake.refuses(error)) return;
      others.abort(error);
      throw error;
    }
  });
}

function narrow({ run, known }: Course, kind: Kind): void {
  const { narrowing } = run.snapshot;
  if (known.get(kind)?.listing) narrowing.full(kind.name, kind.decidesAbsent);
  else narrowing.fast(kind.name, kind.decidesAbsent);
}

function plan(course: Course): void {
  const { run, tally } = course;
  for (const { kind } of course.parts) {
    decide({ run, kind, tally, known: knowledgeOf(course, kind) });
    if (!course.plan) noticeInvalid(run, kind, tally);
  }
  course.plan ??= planOf(run.snapshot.staging.planned());
}

/** After the last round, what is still not in line is left to the next run, and said. */
function isLeftOver({ run, reasons }: Course, round: number): boolean {
  if (round <= rounds) return false;
  const left = run.snapshot.staging.countPlanned();
  if (left > 0) reasons.push(`${left} changes did not get through in this run → run again`);
  return true;
}

/** What was decided becomes the journal's plan, and what is known already is recorded. */
function commit({ run }: Course): void {
  const { snapshot, clock } = run;
  snapshot.transaction(() => {
    snapshot.staging.adoptForgotten();
    snapshot.staging.adoptNoted();
    snapshot.journal.adopt(run.id, clock.now());
  });
  snapshot.staging.clearDecisions();
  snapshot.narrowing.clear();
}

async function eachPart(
  course: Course,
  step: (applying: Applying) => Promise<void>,
): Promise<void> {
  const { run, brake, tally, parts } = course;
  await each(parts, parts.length, ({ kind }) => {
    const counts = Object.values(course.plan?.changes[kind.name] ?? {});
    const planned = counts.reduce((sum, n) => sum + n, 0);
    return step({ run, kind, brake, tally, planned, known: knowledgeOf(course, kind) });
  });
}

/** Whether something was learnt that calls for another decision. */
function again({ run, parts, brake }: Course): boolean {
  if (run.stop.aborted || brake.stopped()) return false;
  return parts.some(({ kind }) => run.snapshot.narrowing.next(kind.name, '', 1).length > 0);
}

function knowledgeOf({ known }: Pick<Course, 'known'>, kind: Kind): Knowledge {
  return known.get(kind) ?? { certified: false, listing: undefined };
}
