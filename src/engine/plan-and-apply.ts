/**
 * Plans and applies the changes of a run for each record type. Stores what each step returns
 * immediately, so that a run that fails later still reports it.
 *
 * A long run applies in slices and checks between them whether the source is unchanged, so that in
 * hour 50 of a first load it does not send what was true only in hour 0.
 *
 *   the source is unchanged                 the run continues with the plan
 *   it changed, and was read completely     the rest is planned again, based on its new content
 *   it changed, and is not certified now    only opt-outs are planned, and the run reports it
 *   it cannot be read now                   nothing more is sent, and the run reports it
 *   it changed, and the user agreed to      nothing more is sent, because it would be another plan
 *   the plan
 *
 * Such a reading does not count absences.
 */
import pLimit from 'p-limit';
import type { RecordType } from '../records/record-type.ts';
import { apply, recover } from './apply/apply-changes.ts';
import type { ApplyContext } from './apply/apply-context.ts';
import { each, untilDone, inTurns } from './context/work-in-parts.ts';
import { type MirrorPart, onlyKey } from './context/mirror-context.ts';
import { findingsOf, type RunState } from './context/run-state.ts';
import { sayStopped } from './finish/summarize-run.ts';
import { applyGuards, applyGuardsAtOnce } from './guard/apply-guards.ts';
import { type Problem, Interrupted, isExpected } from '../domain/errors.ts';
import { noteDecision } from './guard/plan-decisions.ts';
import { commitPlan } from './plan/commit-plan.ts';
import { decideAgain, decideChanges } from './plan/decide-changes.ts';
import { forecastPassed, forecastRun, readPlan } from './plan/run-forecast.ts';
import { addCandidates, findLostChannels } from './plan/select-candidates.ts';
import { listInvalid, listUnread } from './read/invalid-records.ts';
import { readSource } from './read/source-read.ts';
import { readingOf, statesOf } from './read/record-states.ts';
import type { ChangeGroup } from '../store/staging/staging.ts';
import type { PlannedRecord, PlanView } from './report/run-summary.ts';

/** Finds the records that need a decision, and the channels that are lost on the platform. */
export async function selectCandidates(state: RunState, type: RecordType): Promise<void> {
  const { run, known, tally, reasons, notes } = state;
  const findings = findingsOf(state, type);
  await addCandidates(run, type, findings);
  const losses = await findLostChannels(run, type, findings.listing);
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
  const decision = options.undo?.decision;
  if (!run.undo || !decision) return;
  // The audit log states who undoes a run, and why.
  const about = { plan: run.undo.run, at: run.clock.now(), ...decision };
  run.snapshot.transaction(() => noteDecision(run.snapshot, 'undo', about));
}

/**
 * Writes the plan to the journal, and forecasts what the guards have let pass. `more` is called in
 * the same transaction.
 */
export async function writePlan(state: RunState, more?: () => void): Promise<void> {
  const { run, options, mirror, passed, forecast } = state;
  const changes = await commitPlan(run, more);
  for (const { type } of state.parts) {
    for (const n of Object.values(changes[type.name])) passed[type.name] += n;
  }
  if (!forecast || state.isForeseen) return;
  const types = state.parts.map(({ type }) => type);
  state.forecast = forecastPassed(run, forecast, { types, plan: { changes }, mirror });
  state.isForeseen = true;
  options.foresees?.(state.forecast);
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
    for (const part of remaining) await planAgain(state, part);
  }
}

/**
 * Withdraws the rest of the plan for a record type if its source has changed since it was read, and
 * plans it again based on the current source. Throws Interrupted, and unexpected errors.
 */
async function planAgain(state: RunState, part: MirrorPart): Promise<void> {
  const { run, known, reasons, tally } = state;
  const { type, source } = part;
  const { name } = type;
  const before = findingsOf(state, type);
  if (!type.needsCertificate || before.still()) return;
  const { slicing, staging, stage, transaction } = run.snapshot;
  await untilDone(run, () => transaction(() => slicing.withdraw(run.id, name)));
  stage(() => {
    staging.forgetDesired(name);
    slicing.assumeDone(run.id, name);
  });
  const outdated = { ...before, certified: false, still: () => false };
  known.set(type, outdated);
  if (state.options.agrees) {
    const reason = `the ${name}s of the CRM have changed since the plan was agreed to`;
    reasons.push({ code: 'source-changed', reason, fix: 'plan again' });
    return;
  }
  try {
    const read = await readSource(run, part);
    known.set(type, { ...outdated, ...readingOf(source, read) });
    if (!read.complete) {
      const reason = `${read.why}, so only opt-outs are applied from now on`;
      reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    }
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    const reason = `the ${name}s could not be read again, so the rest waits: ${error.message}`;
    reasons.push({ code: 'source-left-out', reason });
    return;
  }
  await selectCandidates(state, type);
  const findings = findingsOf(state, type);
  await decideChanges({ run, type, tally, known: findings });
  await listInvalid(run, type, { tally, findings });
  await applyGuards(state);
  // What was withdrawn and is not planned again is not sent.
  state.passed[name] = tally.outcomeCount(name);
  await writePlan(state);
  run.snapshot.candidates.clear(name);
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
  when: { endsAt: number; toBeListed: boolean },
): Promise<void> {
  const { run, breaker, tally, mirror, parts } = state;
  await each(parts, parts.length, async ({ type }) => {
    const known = findingsOf(state, type);
    await step({
      run,
      type,
      breaker,
      tally,
      known,
      ...when,
      passed: state.passed[type.name],
      timeoutMs: mirror.timeoutMs,
      oneByOne: pLimit(1),
      inFlight: new Map(),
      replan(key, isSettled) {
        const review = (): void => applyGuardsAtOnce(state);
        return decideAgain({ run, type, known, tally }, { key, isSettled, review });
      },
    });
  });
}

/** The length of a slice, in milliseconds. */
const sliceMs = 10 * 60_000;

/**
 * Counts the groups of the staged plan, and returns access to their records. The reason for a
 * change takes a decision of its own, so a large plan costs no more than its samples.
 */
export async function viewPlan(state: RunState): Promise<PlanView> {
  const { staging } = state.run.snapshot;
  const groups = new Map<string, ChangeGroup>();
  for await (const chunk of inTurns(state.run, staging.chunks())) {
    for (const group of staging.groupsIn(chunk)) {
      const name = `${group.kind} ${group.op} ${group.held}`;
      const { n, own } = groups.get(name) ?? { n: 0, own: 0 };
      groups.set(name, { ...group, n: n + group.n, own: own + group.own });
    }
  }
  return {
    groups: [...groups.values()],
    records: (group, most) => recordsOf(state, group, most),
    cannot: state.run.undo?.cannot(),
  };
}

async function* recordsOf(
  state: RunState,
  group: ChangeGroup,
  most: number,
): AsyncGenerator<PlannedRecord> {
  const { run, parts } = state;
  const { staging } = run.snapshot;
  const { kind, op, held } = group;
  const type = parts.find((part) => part.type.name === kind)?.type;
  if (!type) return;
  let last: PlannedRecord | undefined;
  let count = 0;
  // The changes of a record follow each other, possibly across the border of two chunks.
  for await (const chunk of inTurns(run, staging.chunks())) {
    for (const change of staging.groupedIn(chunk, group)) {
      const { key, part } = change;
      if (last?.key === key && !last.parts.includes(part)) last.parts.push(part);
      if (last?.key === key) continue;
      if (last) yield last;
      if (count === most) return;
      count += 1;
      const reason = run.undo
        ? `undoes what run ${run.undo.run} did`
        : type.reason(change, statesOf(run, type, { key, known: findingsOf(state, type) }));
      last = { kind, op, held, key, parts: part === '' ? [] : [part], reason };
    }
  }
  if (last) yield last;
}
