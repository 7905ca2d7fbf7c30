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
import { announceDefaults } from './finish/announce-defaults.ts';
import { apply } from './apply/apply-changes.ts';
import type { Applying } from './apply/apply-context.ts';
import { checkOwnership, claimSnapshot } from './account/snapshot-ownership.ts';
import { readPart } from './read/changed-records.ts';
import { excludePart, knowledgeOf, type RunState } from './context/run-state.ts';
import { commitPlan } from './plan/commit-plan.ts';
import { decideChanges } from './plan/decide-changes.ts';
import { type RecordTypeKnowledge, unknown } from './context/source-knowledge.ts';
import { readingOf } from './read/record-states.ts';
import type { RunContext } from './context/run-context.ts';
import {
  isRecord,
  type Mirror,
  type MirrorPart,
  onlyKey,
  type RunOptions,
} from './context/mirror-context.ts';
import { storeAwaitingApproval } from './guard/plan-approval.ts';
import { forecastRun } from './plan/run-forecast.ts';
import { applyGuards, applyGuardsAtOnce } from './guard/apply-guards.ts';
import { listInvalid, listUnread } from './read/invalid-records.ts';
import { each } from './context/bounded-concurrency.ts';
import { invalidateCursorsAfter } from './finish/source-cursor.ts';
import { lossOf, lostParts } from './observe/lost-parts.ts';
import { listAll } from './observe/platform-listing.ts';
import { sayStopped } from './finish/failure-reasons.ts';
import { recover } from './apply/outcome-recovery.ts';
import { abandonUnsent, beginRun } from './begin-run.ts';
import { finishRun } from './finish/finish-run.ts';
import { keepDuplicates, readOnePerson } from './read/person-read.ts';
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
  const context = beginRun(mirror, options);
  try {
    return await lead(context, options);
  } catch (error) {
    invalidateCursorsAfter(context);
    throw error;
  } finally {
    leave(context);
  }
}

async function lead(context: RunState, options: RunOptions): Promise<Summary> {
  try {
    if (options.writes && onlyKey(context.run) === undefined) await abandonUnsent(context);
    await checkOwnership(context);
    await take(context);
    if (options.writes) await eachPart(context, recover, options.mode === 'full');
    if (!isRecord(options.mode)) await readAll(context);
    await listAll(context);
    if (options.writes) claimSnapshot(context);
    await countAbsences(context);
    await announceDefaults(context);
    for (const { type } of context.parts) await narrow(context, type);
    if (options.writes && onlyKey(context.run) === undefined) await keepDuplicates(context, 'read');
    for (let round = 1; ; round += 1) {
      await plan(context);
      await applyGuards(context);
      if (!options.writes || isLeftOver(context, round)) break;
      await commitPlan(context.run, await storeAwaitingApproval(context, round));
      context.run.snapshot.candidates.clear();
      await applyAll(context);
      if (!again(context)) break;
    }
    const isWhole = onlyKey(context.run) === undefined && !options.stop.aborted;
    if (options.writes && isWhole) await keepDuplicates(context, 'done');
  } catch (error) {
    if (!isExpected(error)) throw error;
    context.failure = error;
  }
  const summary = await finishRun(context);
  if (context.failure instanceof Invalid || context.failure instanceof Busy) throw context.failure;
  return summary;
}

/** A run about one person has her to itself. */
async function take(context: RunState): Promise<void> {
  const { mode, locks } = context.run;
  if (typeof mode === 'string') return;
  context.taken = isRecord(mode)
    ? await readOnePerson(context, mode.record)
    : await locks.take({ keys: [mode.single], ids: [] });
}

function leave({ run, taken }: RunState): void {
  taken?.release();
  run.locks.end(run.id);
}

/**
 * Reads the sources, one after the other. One that cannot be read takes its own kind out of the run
 * and no other; throws what it threw when none is left.
 */
async function readAll(context: RunState): Promise<void> {
  const { reasons, known } = context;
  for (const part of context.parts) {
    const certificate = await readPart(context, part).catch((error: unknown) =>
      excludePart(context, part, error),
    );
    if (!certificate) continue;
    if (!certificate.complete && part.type.needsCertificate) {
      reasons.push(`${certificate.why}, so only opt-outs are applied → ${certificate.fix}`);
    }
    known.set(part.type, { ...unknown, ...readingOf(part.source, certificate) });
  }
}

/** Finds out which records need a decision, and which parts of the platform they have lost. */
async function narrow(context: RunState, type: RecordType): Promise<void> {
  const { run, known, tally } = context;
  const knowledge = knowledgeOf(context, type);
  await addCandidates(run, type, knowledge);
  const lost = await lostParts(run, type, knowledge.listing);
  known.set(type, { ...knowledge, lost });
  const losses = [...lost].map((part) => lossOf(type, part));
  run.snapshot.stage(() => {
    for (const loss of losses) tally.notice(loss);
  });
  // A run that holds something back has failed, each time; a plan only says so.
  const said = run.writes ? context.reasons : context.notes;
  for (const { part, reason, fix } of losses) {
    const line = `${part}: ${reason} → ${fix}`;
    if (!said.includes(line)) said.push(line);
  }
}

async function addCandidates(
  run: RunContext,
  type: RecordType,
  known: RecordTypeKnowledge,
): Promise<void> {
  const { candidates, ranges, stage } = run.snapshot;
  const { name, decidesAbsent } = type;
  const key = onlyKey(run);
  if (key !== undefined) {
    for (const one of keysOf(run, type, { key, known })) candidates.add(name, one);
    return;
  }
  if (!known.listing && !known.whole) {
    stage(() => candidates.named(name));
    return;
  }
  await forEachRange(run, ranges.ofKeys(name), (range) => {
    stage(() => {
      if (known.listing) candidates.full(name, range, decidesAbsent.full);
      else candidates.fast(name, range, decidesAbsent.fast);
    });
  });
  candidates.parked(name);
}

async function plan(context: RunState): Promise<void> {
  const { run, tally } = context;
  for (const { type } of context.parts) {
    await decideChanges({ run, type, tally, known: knowledgeOf(context, type) });
    if (context.plan) continue;
    await listInvalid(run, type, context);
    await listUnread(context, type);
  }
  if (context.plan) return;
  context.notes.push(...sayStopped(tally.counts().stopped));
  context.plan = await readPlan(run);
  context.forecast = forecastRun(context);
  run.foresees?.(context.forecast);
  if (run.writes) run.agrees?.(context.plan);
}

/** What the decisions come to, read part by part. */
async function readPlan({ snapshot: { staging }, clock }: RunContext): Promise<Plan> {
  const plan = planning();
  for (const stretch of staging.chunks()) {
    plan.add(staging.plannedIn(stretch));
    await clock.sleep(0);
  }
  return plan.done();
}

/** After the last round, what is still not in line is left to the next run, and said. */
function isLeftOver({ run, reasons }: RunState, round: number): boolean {
  if (round <= (run.agrees ? 1 : mostRounds)) return false;
  const left = run.snapshot.guarded.countPassing();
  if (left > 0) reasons.push(`${left} changes did not get through in this run → run again`);
  return true;
}

async function eachPart(
  context: RunState,
  step: (applying: Applying) => Promise<void>,
  toBeListed = false,
): Promise<void> {
  const { run, breaker, tally, parts } = context;
  await each(parts, parts.length, ({ type }) => {
    const counts = Object.values(context.plan?.changes[type.name] ?? {});
    const planned = counts.reduce((sum, n) => sum + n, 0);
    const known = knowledgeOf(context, type);
    return step({
      run,
      type,
      toBeListed,
      breaker,
      tally,
      planned,
      known,
      again: pLimit(1),
      entered: new Map(),
      endsAt: context.sliceEndsAt,
      sift: () => applyGuardsAtOnce(context),
    });
  });
}

/** In slices, as long as it takes. */
async function applyAll(context: RunState): Promise<void> {
  const { run } = context;
  for (;;) {
    context.sliceEndsAt = run.clock.now() + sliceMs;
    await eachPart(context, apply);
    await eachPart(context, recover);
    const parts = cutShort(context);
    if (parts.length === 0) return;
    for (const part of parts) if (await readAgain(context, part)) await planAgain(context, part);
  }
}

/** What is left of a part, by what its source says now. */
async function planAgain(context: RunState, { type }: MirrorPart): Promise<void> {
  const { run, tally } = context;
  await narrow(context, type);
  await decideChanges({ run, type, tally, known: knowledgeOf(context, type) });
  await listInvalid(run, type, context);
  await applyGuards(context);
  await commitPlan(run);
  run.snapshot.candidates.clear(type.name);
}

/** Whether something was learnt that calls for another decision. */
function again({ run, parts, breaker }: RunState): boolean {
  if (run.stop.aborted || breaker.stopped()) return false;
  return parts.some(({ type }) => run.snapshot.candidates.next(type.name, '', 1).length > 0);
}
