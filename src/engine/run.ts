/**
 * One run of a mirror: read → observe → plan → guard → apply → finish. A plan is the same run,
 * stopped before anything is written. `work` holds the order of the steps. Below it are those that
 * a run takes for each record type: it locks and reads the CRM, observes the platform, counts
 * absences, selects, decides, shows and writes the plan, and applies it. Each step stores what it
 * returns immediately, so that a run that fails later still reports it.
 *
 * If a run learns something while it applies changes (a person is found on the platform, or has
 * been removed from it), it makes new decisions in a further round, with three rounds at most.
 *
 * A run counts in how many readings, and for how long, people have been missing from the CRM. A
 * certified reading of a full run counts once if the source is still unchanged after the platform
 * has been listed. A plan counts nothing, and uses the counts of earlier runs. The platform's time
 * is the `Date` header of the first response of its listing; without one, only our clock counts.
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
import { Busy, Invalid, isExpected, type Problem, Interrupted } from '../domain/errors.ts';
import { bindAccount, keepBinding } from './account/account-binding.ts';
import { abandonLeftovers, beginRun } from './begin-run.ts';
import {
  isRecord,
  type Mirror,
  type MirrorPart,
  modeName,
  onlyKey,
  type RunOptions,
  mappingOf,
} from './context/mirror-context.ts';
import {
  type RunState,
  stateOf,
  excludePart,
  findingsOf,
  noFindings,
} from './context/run-state.ts';
import { writeAuditLog, supersededKeys } from './context/run-context.ts';
import { finishRun } from './finish/finish-run.ts';
import { invalidateCursorsAfter } from './finish/source-cursor.ts';
import { judgeAtOnce, judgePlan } from './guard/judge.ts';
import { readBackCanaries } from './guard/canaries.ts';
import { storeHolds } from './guard/holds.ts';
import { keepDuplicates, readPart, readPerson } from './read/partial-read.ts';
import type { Summary, PlannedRecord, PlanView } from './report/run-summary.ts';
import { counted } from '../domain/values/counted.ts';
import type { RecordType } from '../records/record-type.ts';
import { each, inTurns, untilDone } from './context/work-in-parts.ts';
import { type FirstPass, passOver, proveListing, sortListed } from './observe/certified-listing.ts';
import { observePerson, readReset } from './observe/person-observation.ts';
import { readingOf } from './read/record-states.ts';
import { sayMissing, readSource, listInvalid, listUnread } from './read/source-read.ts';
import { aheadOf } from './context/platform-knowledge.ts';
import type { Key } from '../domain/record.ts';
import { identityOf } from './context/person-identity.ts';
import { apply, recover } from './apply/apply-changes.ts';
import type { ApplyContext } from './apply/apply-context.ts';
import { sayStopped } from './finish/summarize-run.ts';
import { noteDecision } from './guard/plan-decisions.ts';
import { commitPlan } from './plan/commit-plan.ts';
import {
  decideAgain,
  decideChanges,
  addCandidates,
  findLostChannels,
} from './plan/decide-changes.ts';
import { forecastPassed, forecastRun, readPlan } from './plan/run-forecast.ts';
import type { ChangeGroup } from '../store/staging/staging.ts';

const mostRounds = 3;

/**
 * Performs one run. The summary reports problems with people, the source or the platform. Throws
 * Invalid for input that cannot be used at all, Busy for input that is not ready, and unexpected
 * errors.
 */
export async function run(mirror: Mirror, options: RunOptions): Promise<Summary> {
  const state = stateOf(beginRun(mirror, options));
  try {
    try {
      await work(state);
    } catch (error) {
      if (!isExpected(error)) throw error;
      state.failure = error;
    }
    const summary = await finishRun(state);
    if (state.failure instanceof Invalid || state.failure instanceof Busy) throw state.failure;
    return summary;
  } catch (error) {
    invalidateCursorsAfter(state);
    throw error;
  } finally {
    state.lock?.release();
    mirror.requestLog?.setRun(undefined);
    mirror.locks.end(state.run.id);
  }
}

async function work(state: RunState): Promise<void> {
  const { mirror, options } = state;
  const { writes, stop } = options;
  const { snapshot } = state.run;
  const keepsAll = writes && onlyKey(options) === undefined;
  if (writes) await writeAuditLog(state.run);
  if (keepsAll) await abandonLeftovers(state.run, state.parts);
  state.notes.push(...(await bindAccount(state.run, mirror.account)));

  await lockPerson(state);
  if (writes) await recoverAll(state, ['full', 'undo'].includes(modeName(options.mode)));
  if (!isRecord(options.mode)) await readSources(state);
  await observe(state);
  const listings = [...state.known.values()].flatMap(({ listing }) => listing ?? []);
  if (writes) keepBinding(snapshot, mirror.account, listings);
  await readBackCanaries(state);
  await findAbsences(state);
  for (const { type } of state.parts) await selectCandidates(state, type);
  if (keepsAll) await keepDuplicates(state, 'read');

  for (let round = 1; ; round += 1) {
    await decide(state);
    if (!state.plan) await showPlan(state);
    await judgePlan(state);
    if (options.shows) await options.shows(await viewPlan(state), round);
    if (!writes) break;
    if (round > (options.agrees ? 1 : mostRounds)) {
      const left = snapshot.guarded.countPassing();
      const reason = `${counted(left, 'change')} could not be made in this run`;
      const { undo } = state.run;
      const fix = undo ? `run \`crm-mirror undo ${undo.run}\` again` : 'run again';
      if (left > 0) state.reasons.push({ code: 'changes-left', reason, fix });
      break;
    }
    await writePlan(state, await storeHolds(state, round));
    if (round === 1) await storeStated(state);
    snapshot.candidates.clear();
    await applyInSlices(state);
    if (stop.aborted || state.breaker.stopped()) break;
    // Has the run learned something that requires another decision?
    const isNew = ({ type }: MirrorPart) => snapshot.candidates.next(type.name, '', 1).length > 0;
    if (!state.parts.some(isNew)) break;
  }
  if (keepsAll && !stop.aborted) await keepDuplicates(state, 'done');
}

/**
 * Locks the person that the run is about. If only the id of a CRM record is given, reads that
 * record to find the person; from then on the run is about that person.
 */
async function lockPerson(state: RunState): Promise<void> {
  const { mode, locks } = state.run;
  if (typeof mode === 'string') return;
  if (!isRecord(mode)) {
    state.lock = await locks.take({ keys: [mode.single], ids: [] });
    return;
  }
  const part = state.parts.find(({ source }) => source.one);
  state.parts = part ? [part] : [];
  if (!part) return;
  const { lock, key, findings } = await readPerson(state.run, part, mode.record);
  state.lock = lock;
  state.known.set(part.type, findings);
  if (key === undefined) state.parts = [];
  else state.run = { ...state.run, mode: { single: key } };
}

/** Finds out unknown outcomes. `toBeListed`: a newer listing of the platform follows. */
async function recoverAll(state: RunState, toBeListed: boolean): Promise<void> {
  return eachApplied(state, recover, { endsAt: 0, toBeListed });
}

/** Reads the sources. One that fails leaves out its record type; the last one throws. */
async function readSources(state: RunState): Promise<void> {
  const { run, mirror, reasons, notes, because, known, cursors, cursorless } = state;
  for (const part of state.parts) {
    const { type, source } = part;
    try {
      const found = { cursor: cursors.get(type), without: cursorless.get(type) };
      const read = await readPart(run, part, found);
      mirror.outages?.works(`${type.name}s`);
      if (read.because) because.push(read.because);
      known.set(type, { ...noFindings, ...readingOf(source, read) });
      notes.push(...sayMissing(run.snapshot, type.name, read.sizes.missing));
      if (type.capabilities.personRead && run.selection && read.whole) {
        run.selection.choose(type.name);
        notes.push(...run.selection.say(read.sizes.valid));
      }
      if (read.complete || !type.needsCertificate) continue;
      const reason = `${read.why}, so only opt-outs are applied`;
      reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    } catch (error) {
      // A run that was stopped, or a file in use, is no outage.
      if (isExpected(error) && !(error instanceof Busy) && !run.stop.aborted)
        mirror.outages?.failed(`${type.name}s`, error.problems[0], 'surely');
      excludePart(state, part, error);
    }
  }
}

/**
 * Observes the platform: all of it in a full run, one person in a run about that person, and only
 * people who were reset in a fast run. If the key may not list a record type, only the recorded
 * state of that type is known. A record type that cannot be listed for other reasons is left out of
 * the run.
 */
async function observe(state: RunState): Promise<void> {
  const { run, mirror, breaker, lock, known } = state;
  if (run.mode === 'fast') {
    // Only a reading of the whole source tells what the CRM wants for people who were reset.
    for (const { type } of state.parts) {
      const read = findingsOf(state, type);
      if (read.whole) state.notes.push(...(await readReset(run, type, read)));
    }
    return undefined;
  }
  const key = onlyKey(run);
  if (key !== undefined) {
    return eachObserved(state, (type) =>
      observePerson(run, type, { key, known: findingsOf(state, type), lock }),
    );
  }
  const passes = new Map<RecordType, FirstPass>();
  try {
    await eachObserved(state, async (type) => {
      passes.set(type, await passOver(run, type, mirror));
    });
  } finally {
    // The first passes of all record types are indexed together.
    await sortListed(run, state.parts);
  }
  await eachObserved(state, async (type) => {
    const first = passes.get(type);
    if (!first) return;
    const listing = await proveListing(run, type, { first, breaker, mirror });
    known.set(type, { ...findingsOf(state, type), listing });
  });
}

/** Does the work for all record types in parallel, and leaves out a type that fails. */
async function eachObserved(state: RunState, work: (type: RecordType) => Promise<void>) {
  const { parts, breaker } = state;
  await each(parts, parts.length, async (part) => {
    try {
      await work(part.type);
    } catch (error) {
      if (!breaker.refuses(error)) excludePart(state, part, error);
    }
  });
}

/** Decides whether absences count, drops those of people who are back, and counts the others. */
async function findAbsences(state: RunState): Promise<void> {
  const { run, known } = state;
  const { absences, ranges, transaction } = run.snapshot;
  const only = onlyKey(run);
  for (const { type } of state.parts) {
    const { name, capabilities } = type;
    const { absence } = capabilities;
    const read = known.get(type);
    if (!read || !absence) continue;
    const isFull = run.mode === 'full' && !run.selection;
    const absenceCounts = isFull && read.certified && read.still();
    known.set(type, { ...read, absenceCounts });
    if (!run.writes) continue;
    transaction(() => {
      if (only === undefined) absences.dropNamed({ kind: name });
      else absences.dropIfNamed({ kind: name, key: only });
    });
    if (!absenceCounts) continue;
    const platformAt = read.listing?.platformStartedAt;
    const times = { at: run.startedAt, platformAt, aheadMs: aheadOf(run) };
    // If the process dies halfway, no person is counted twice for one reading.
    for await (const range of inTurns(run, ranges.ofKeys(name))) {
      const but = supersededKeys(run, type);
      const reading = { reading: read.reading, ...times, ...absence, but };
      transaction(() => absences.count({ ...range, ...reading }));
    }
  }
}

/** Finds the records that need a decision, and the channels that are lost on the platform. */
async function selectCandidates(state: RunState, type: RecordType): Promise<void> {
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

/** Makes the decisions for the candidates. The first round also lists invalid records. */
async function decide(state: RunState): Promise<void> {
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
async function showPlan(state: RunState): Promise<void> {
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

async function viewPlan(state: RunState): Promise<PlanView> {
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
    const these = { ...chunk, of: kind, shown: op, held };
    for (const { rule, ...change } of staging.groupedIn(these)) {
      const { key, part } = change;
      if (last?.key === key && !last.parts.includes(part)) last.parts.push(part);
      if (last?.key === key) continue;
      if (last) yield last;
      if (count === most) return;
      count += 1;
      const reason = run.undo
        ? `undoes what run ${run.undo.run} did`
        : type.reason(change, rule ?? null);
      last = { kind, op, held, key, parts: part === '' ? [] : [part], reason };
    }
  }
  if (last) yield last;
}

/** Writes the plan, with `more` in the same transaction, and forecasts what may be sent. */
async function writePlan(state: RunState, more?: () => void): Promise<void> {
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
 * Stores what the records of this reading state about each person, for the guards of later runs. It
 * comes after what the run withholds is stored, and before anything is sent: if the run is
 * interrupted, the next one knows what this one has read, and still knows what awaits approval.
 * People who were erased, under this address or as a record with these ids, are left out.
 */
async function storeStated(state: RunState): Promise<void> {
  const { run, parts } = state;
  if (run.undo) return;
  const { ranges, stated, transaction } = run.snapshot;
  const isAny = run.doNotContact.erased() !== undefined;
  const mapping = mappingOf(run) ?? '';
  for (const { type } of parts) {
    if (!type.capabilities.channels) continue;
    const { certified: isCertified, whole: isWhole } = findingsOf(state, type);
    const certified = isCertified && run.selection === undefined;
    const whole = isWhole && onlyKey(run) === undefined;
    const isErased = (key: Key): boolean =>
      run.doNotContact
        .concerning(identityOf(run, type, key))
        .some(({ cause }) => cause === 'erasure');
    for await (const range of inTurns(run, ranges.ofStated(type.name))) {
      const erased = isAny ? stated.newKeys(range).filter(isErased) : [];
      const but = [...supersededKeys(run, type), ...erased];
      const reading = { but, certified, whole, mapping, at: run.clock.now() };
      transaction(() => stated.store(range, reading));
    }
  }
}

/** The length of a slice, in milliseconds. */
const sliceMs = 10 * 60_000;

/** Applies in slices. Between them, the rest is planned again if its source has changed. */
async function applyInSlices(state: RunState): Promise<void> {
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

/** Plans the rest again if its source has changed since. Throws Interrupted, unexpected errors. */
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
  await judgePlan(state);
  // What was withdrawn and is not planned again is not sent.
  state.passed[name] = tally.outcomeCount(name);
  await writePlan(state);
  run.snapshot.candidates.clear(name);
}

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
        const review = (): void => judgeAtOnce(state);
        return decideAgain({ run, type, known, tally }, { key, isSettled, review });
      },
    });
  });
}
