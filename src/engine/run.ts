/**
 * One run of a mirror: belong → read → observe → decide → apply → record. A plan is the same run
 * that stops before anything is written.
 *
 * What is learnt on the way (somebody is found on the platform, or gone from it) is decided upon in
 * a further round of the same run, three rounds at most.
 */
import pLimit from 'p-limit';
import { Busy, Invalid, isExpected } from '../domain/errors.ts';
import { type Plan, planning } from './report/change-plan.ts';
import type { RecordType } from '../records/record-type.ts';
import { countAbsences } from './read/absence-count.ts';
import { announce } from './finish/announce-defaults.ts';
import { apply } from './apply/apply-changes.ts';
import type { Applying } from './apply/apply-context.ts';
import { belong, claim } from './account/snapshot-ownership.ts';
import { readPart } from './read/changed-records.ts';
import { type RunContext, knowledgeOf, leaveOut } from './context/run-context.ts';
import { commit } from './plan/commit-plan.ts';
import { decide } from './plan/decide-changes.ts';
import { type RecordTypeKnowledge, unknown } from './context/source-knowledge.ts';
import { readingOf } from './read/record-states.ts';
import {
  isRecord,
  type Mirror,
  type MirrorPart,
  onlyKey,
  type Run,
  type RunOptions,
} from './context/mirror-context.ts';
import { keepHeld } from './guard/plan-approval.ts';
import { foresee } from './plan/run-forecast.ts';
import { guard, guardNow } from './guard/apply-guards.ts';
import { noticeInvalid, noticeUnread } from './read/invalid-records.ts';
import { each } from './context/bounded-concurrency.ts';
import { spoilThrown } from './finish/source-cursor.ts';
import { lossOf, lostParts } from './observe/lost-parts.ts';
import { listAll } from './observe/platform-listing.ts';
import { sayStopped } from './finish/failure-reasons.ts';
import { recover } from './apply/outcome-recovery.ts';
import { abandonLeft, begin } from './begin-run.ts';
import { conclude } from './finish/finish-run.ts';
import { keepDuplicates, takeOne } from './read/person-read.ts';
import { keysOf } from './observe/person-observation.ts';
import { cutShort, readAgain, sliceMs } from './read/time-slice.ts';
import { forEachRange } from './context/for-each-range.ts';
import type { Summary } from './report/run-summary.ts';

const mostRounds = 3;

/**
 * Runs once. What can go wrong with people, the source or the platform is said by the summary;
 * throws Invalid for input that cannot be used at all, Busy for input that is not ready, and bugs.
 */
export async function run(mirror: Mirror, options: RunOptions): Promise<Summary> {
  const course = begin(mirror, options);
  try {
    return await lead(course, options);
  } catch (error) {
    spoilThrown(course);
    throw error;
  } finally {
    leave(course);
  }
}

async function lead(course: RunContext, options: RunOptions): Promise<Summary> {
  try {
    if (options.writes && onlyKey(course.run) === undefined) await abandonLeft(course);
    await belong(course);
    await take(course);
    if (options.writes) await eachPart(course, recover, options.mode === 'full');
    if (!isRecord(options.mode)) await readAll(course);
    await listAll(course);
    if (options.writes) claim(course);
    await countAbsences(course);
    await announce(course);
    for (const { kind } of course.parts) await narrow(course, kind);
    if (options.writes && onlyKey(course.run) === undefined) await keepDuplicates(course, 'read');
    for (let round = 1; ; round += 1) {
      await plan(course);
      await guard(course);
      if (!options.writes || isLeftOver(course, round)) break;
      await commit(course.run, await keepHeld(course, round));
      course.run.snapshot.candidates.clear();
      await applyAll(course);
      if (!again(course)) break;
    }
    const isWhole = onlyKey(course.run) === undefined && !options.stop.aborted;
    if (options.writes && isWhole) await keepDuplicates(course, 'done');
  } catch (error) {
    if (!isExpected(error)) throw error;
    course.failure = error;
  }
  const summary = await conclude(course);
  if (course.failure instanceof Invalid || course.failure instanceof Busy) throw course.failure;
  return summary;
}

/** A run about one person has her to itself. */
async function take(course: RunContext): Promise<void> {
  const { mode, locks: beside } = course.run;
  if (typeof mode === 'string') return;
  course.taken = isRecord(mode)
    ? await takeOne(course, mode.record)
    : await beside.take({ keys: [mode.single], ids: [] });
}

function leave({ run, taken }: RunContext): void {
  taken?.release();
  run.locks.end(run.id);
}

/**
 * Reads the sources, one after the other. One that cannot be read takes its own kind out of the run
 * and no other; throws what it threw when none is left.
 */
async function readAll(course: RunContext): Promise<void> {
  const { reasons, known } = course;
  for (const part of course.parts) {
    const certificate = await readPart(course, part).catch((error: unknown) =>
      leaveOut(course, part, error),
    );
    if (!certificate) continue;
    if (!certificate.complete && part.kind.needsCertificate) {
      reasons.push(`${certificate.why}, so only opt-outs are applied → ${certificate.fix}`);
    }
    known.set(part.kind, { ...unknown, ...readingOf(part.source, certificate) });
  }
}

/** Finds out which records need a decision, and which parts of the platform they have lost. */
async function narrow(course: RunContext, kind: RecordType): Promise<void> {
  const { run, known, tally } = course;
  const knowledge = knowledgeOf(course, kind);
  await addCandidates(run, kind, knowledge);
  const lost = await lostParts(run, kind, knowledge.listing);
  known.set(kind, { ...knowledge, lost });
  const losses = [...lost].map((part) => lossOf(kind, part));
  run.snapshot.stage(() => {
    for (const loss of losses) tally.notice(loss);
  });
  // A run that holds something back has failed, each time; a plan only says so.
  const said = run.writes ? course.reasons : course.notes;
  for (const { part, reason, fix } of losses) {
    const line = `${part}: ${reason} → ${fix}`;
    if (!said.includes(line)) said.push(line);
  }
}

async function addCandidates(
  run: Run,
  kind: RecordType,
  known: RecordTypeKnowledge,
): Promise<void> {
  const { candidates: narrowing, ranges: spans, stage } = run.snapshot;
  const { name, decidesAbsent } = kind;
  const key = onlyKey(run);
  if (key !== undefined) {
    for (const one of keysOf(run, kind, { key, known })) narrowing.add(name, one);
    return;
  }
  if (!known.listing && !known.whole) {
    stage(() => narrowing.named(name));
    return;
  }
  await forEachRange(run, spans.ofKeys(name), (span) => {
    stage(() => {
      if (known.listing) narrowing.full(name, span, decidesAbsent.full);
      else narrowing.fast(name, span, decidesAbsent.fast);
    });
  });
  narrowing.parked(name);
}

async function plan(course: RunContext): Promise<void> {
  const { run, tally } = course;
  for (const { kind } of course.parts) {
    await decide({ run, kind, tally, known: knowledgeOf(course, kind) });
    if (course.plan) continue;
    await noticeInvalid(run, kind, course);
    await noticeUnread(course, kind);
  }
  if (course.plan) return;
  course.notes.push(...sayStopped(tally.counts().stopped));
  course.plan = await readPlan(run);
  course.forecast = foresee(course);
  run.foresees?.(course.forecast);
  if (run.writes) run.agrees?.(course.plan);
}

/** What the decisions come to, read part by part. */
async function readPlan({ snapshot: { staging }, clock }: Run): Promise<Plan> {
  const plan = planning();
  for (const stretch of staging.stretches()) {
    plan.add(staging.plannedIn(stretch));
    await clock.sleep(0);
  }
  return plan.done();
}

/** After the last round, what is still not in line is left to the next run, and said. */
function isLeftOver({ run, reasons }: RunContext, round: number): boolean {
  if (round <= (run.agrees ? 1 : mostRounds)) return false;
  const left = run.snapshot.guarded.countPassing();
  if (left > 0) reasons.push(`${left} changes did not get through in this run → run again`);
  return true;
}

async function eachPart(
  course: RunContext,
  step: (applying: Applying) => Promise<void>,
  toBeListed = false,
): Promise<void> {
  const { run, brake, tally, parts } = course;
  await each(parts, parts.length, ({ kind }) => {
    const counts = Object.values(course.plan?.changes[kind.name] ?? {});
    const planned = counts.reduce((sum, n) => sum + n, 0);
    const known = knowledgeOf(course, kind);
    return step({
      run,
      kind,
      toBeListed,
      brake,
      tally,
      planned,
      known,
      again: pLimit(1),
      entered: new Map(),
      endsAt: course.sliceEndsAt,
      sift: () => guardNow(course),
    });
  });
}

/** In slices, as long as it takes. */
async function applyAll(course: RunContext): Promise<void> {
  const { run } = course;
  for (;;) {
    course.sliceEndsAt = run.clock.now() + sliceMs;
    await eachPart(course, apply);
    await eachPart(course, recover);
    const parts = cutShort(course);
    if (parts.length === 0) return;
    for (const part of parts) if (await readAgain(course, part)) await planAgain(course, part);
  }
}

/** What is left of a part, by what its source says now. */
async function planAgain(course: RunContext, { kind }: MirrorPart): Promise<void> {
  const { run, tally } = course;
  await narrow(course, kind);
  await decide({ run, kind, tally, known: knowledgeOf(course, kind) });
  await noticeInvalid(run, kind, course);
  await guard(course);
  await commit(run);
  run.snapshot.candidates.clear(kind.name);
}

/** Whether something was learnt that calls for another decision. */
function again({ run, parts, brake }: RunContext): boolean {
  if (run.stop.aborted || brake.stopped()) return false;
  return parts.some(({ kind }) => run.snapshot.candidates.next(kind.name, '', 1).length > 0);
}
