/**
 * Plans and applies the changes of a run for each record type. Stores what each step returns
 * immediately, so that a run that fails later still reports it.
 */
import pLimit from 'p-limit';
import type { RecordType } from '../records/record-type.ts';
import { apply } from './apply/apply-changes.ts';
import type { ApplyContext } from './apply/apply-context.ts';
import { recover } from './apply/outcome-recovery.ts';
import { each } from './context/work-in-parts.ts';
import { type MirrorPart, onlyKey, type ToUndo } from './context/mirror-context.ts';
import type { RunContext } from './context/run-context.ts';
import { findingsOf, type RunState } from './context/run-state.ts';
import { sayStopped } from './finish/summarize-run.ts';
import { applyGuards, applyGuardsAtOnce } from './guard/apply-guards.ts';
import type { Problem } from '../domain/errors.ts';
import { noteDecision } from './guard/plan-decisions.ts';
import { commitPlan } from './plan/commit-plan.ts';
import { decideAgain, decideChanges } from './plan/decide-changes.ts';
import { forecastPassed, forecastRun, readPlan } from './plan/run-forecast.ts';
import { candidatesOf } from './plan/select-candidates.ts';
import { listInvalid, listUnread } from './read/invalid-records.ts';
import { readAgain, sliceMs, withdrawOutdated } from './read/time-slice.ts';

/** Finds the records that need a decision, and the channels that are lost on the platform. */
export async function selectCandidates(state: RunState, type: RecordType): Promise<void> {
  const { run, known, tally, reasons, notes } = state;
  const findings = findingsOf(state, type);
  const losses = await candidatesOf(run, type, findings);
  known.set(type, { ...findings, lost: new Set(losses.map(({ part }) => part)) });
  run.snapshot.stage(() => {
    for (const loss of losses) tally.notice(loss);
  });
  // A lost channel makes every run fail; a plan only mentions it.
  const said = run.writes ? reasons : notes;
  for (const { part, reason, fix } of losses) {
    const lost: Problem = { code: 'part-lost', reason: `${part}: ${reason}`, fix };
    if (!said.some((one) => one.reason === lost.reason)) said.push(lost);
  }
}

/**
 * Makes the decisions for the candidates. The first round also lists the invalid records of the
 * CRM.
 */
export async function decide(state: RunState): Promise<void> {
  const { run, tally } = state;
  for (const { type } of state.parts) {
    const known = findingsOf(state, type);
    await decideChanges({ run, type, tally, known });
    if (state.plan || run.undo) continue;
    if (onlyKey(run) === undefined) {
      run.snapshot.stage(() => run.snapshot.unmanaged.carry(type.name));
    }
    await listInvalid(run, type, { tally, findings: known });
    const unread = await listUnread(run, type, { tally, findings: known });
    if (unread) state.unread.set(type.name, unread);
  }
}

/** Summarizes the first round's plan, and passes it to the caller, who may refuse it. */
export async function showPlan(state: RunState): Promise<void> {
  const { run, options, mirror, tally } = state;
  state.notes.push(...sayStopped(tally.counts().stopped));
  const plan = await readPlan(run);
  const types = state.parts.map(({ type }) => type);
  state.plan = plan;
  state.forecast = forecastRun(run, { types, plan, mirror });
  if (!run.writes) {
    options.foresees?.(state.forecast);
    return;
  }
  options.agrees?.(plan);
  noteUndo(run, options.undo?.decision);
}

/**
 * Writes the plan to the journal, and forecasts what the guards have let pass. `more` is called in
 * the same transaction.
 */
export async function writePlan(state: RunState, more?: () => void): Promise<void> {
  const { run, options, mirror, passed, forecast } = state;
  const changes = await commitPlan(run, more);
  for (const { type } of state.parts) passed[type.name] += sumOf(changes[type.name]);
  if (!forecast || state.isForeseen) return;
  const types = state.parts.map(({ type }) => type);
  state.forecast = forecastPassed(run, forecast, { types, plan: { changes }, mirror });
  state.isForeseen = true;
  options.foresees?.(state.forecast);
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, n) => sum + n, 0);
}

/** Remembers for the audit log who undoes a run, and why. */
function noteUndo({ snapshot, clock, undo }: RunContext, decision: ToUndo['decision']): void {
  if (!undo || !decision) return;
  const about = { plan: undo.run, at: clock.now(), ...decision };
  snapshot.transaction(() => noteDecision(snapshot, 'undo', about));
}

/**
 * Applies in slices of ten minutes. Between slices, a source that has changed is read again, and
 * the remaining changes are planned again.
 */
export async function applyInSlices(state: RunState): Promise<void> {
  const { run, breaker } = state;
  for (;;) {
    const endsAt = run.clock.now() + sliceMs;
    await eachApplied(state, apply, { endsAt, toBeListed: false });
    await recoverAll(state, false);
    if (run.stop.aborted || breaker.stopped() || run.clock.now() < endsAt) return;
    const { slicing } = run.snapshot;
    const remaining = state.parts.filter(({ type }) => slicing.hasPlanned(run.id, type.name));
    if (remaining.length === 0) return;
    for (const part of remaining) {
      if (await readChanged(state, part)) await planAgain(state, part.type);
    }
  }
}

/**
 * Checks, between two slices, whether a source is unchanged since it was read, and reads it again
 * if not. Returns whether the remaining changes of the part have to be planned again.
 */
async function readChanged(state: RunState, part: MirrorPart): Promise<boolean> {
  const { run, known, reasons, options } = state;
  const { type } = part;
  const outdated = await withdrawOutdated(run, type, findingsOf(state, type));
  if (!outdated) return false;
  known.set(type, outdated);
  if (options.agrees) {
    reasons.push({
      code: 'source-changed',
      reason: `the ${type.name}s of the CRM have changed since the plan was agreed to`,
      fix: 'plan again',
    });
    return false;
  }
  const { findings, reason } = await readAgain(run, part, outdated);
  if (findings) known.set(type, findings);
  if (reason !== undefined) reasons.push(reason);
  return findings !== undefined;
}

/** Plans the remaining changes of a record type again, based on the current source. */
async function planAgain(state: RunState, type: RecordType): Promise<void> {
  const { run, tally } = state;
  await selectCandidates(state, type);
  const findings = findingsOf(state, type);
  await decideChanges({ run, type, tally, known: findings });
  await listInvalid(run, type, { tally, findings });
  await applyGuards(state);
  // What was withdrawn and is not planned again is not sent.
  state.passed[type.name] = tally.outcomeCount(type.name);
  await writePlan(state);
  run.snapshot.candidates.clear(type.name);
}

/**
 * Finds out the outcome of changes without a response. `toBeListed`: the platform is listed
 * afterwards, and that listing will be newer than what this reads.
 */
export async function recoverAll(state: RunState, toBeListed: boolean): Promise<void> {
  return eachApplied(state, recover, { endsAt: 0, toBeListed });
}

/** Runs a step of applying for all record types in parallel. */
async function eachApplied(
  state: RunState,
  step: (applying: ApplyContext) => Promise<void>,
  own: Pick<ApplyContext, 'endsAt' | 'toBeListed'>,
): Promise<void> {
  const { parts } = state;
  await each(parts, parts.length, ({ type }) => step(applyingOf(state, type, own)));
}

function applyingOf(
  state: RunState,
  type: RecordType,
  own: Pick<ApplyContext, 'endsAt' | 'toBeListed'>,
): ApplyContext {
  const { run, breaker, tally, mirror } = state;
  const known = findingsOf(state, type);
  const shared = { run, type, breaker, tally, known };
  return {
    ...shared,
    ...own,
    passed: state.passed[type.name],
    timeoutMs: mirror.timeoutMs,
    oneByOne: pLimit(1),
    inFlight: new Map(),
    replan(key, isSettled) {
      const review = (): void => applyGuardsAtOnce(state);
      return decideAgain({ run, type, known, tally }, { key, isSettled, review });
    },
  };
}
