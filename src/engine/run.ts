/**
 * One run of a mirror: read → observe → plan → guard → apply → finish. A plan is the same run,
 * stopped before anything is written. `work` holds the order of the steps. Below it are those of
 * people: the run locks and reads the CRM, observes the platform, counts absences, selects,
 * decides, shows and writes the plan, and applies it. Templates have steps of their own, beside
 * these, in templates/. What a step finds is stored immediately, so that a run that fails later
 * still reports it.
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
import { Busy, Invalid, isExpected, type Problem, Interrupted } from '../domain/errors.ts';
import type { Change } from '../domain/change.ts';
import { bindAccount, keepBinding } from './account/account-binding.ts';
import { abandonLeftovers, beginRun } from './begin-run.ts';
import {
  isRecord,
  type Mirror,
  type MirrorContacts,
  modeName,
  onlyKey,
  type RunOptions,
} from './context/mirror-context.ts';
import {
  type RunState,
  stateOf,
  exclude,
  findingsOf,
  kindsIn,
  noFindings,
} from './context/run-state.ts';
import { writeAuditLog, supersededKeys } from './context/run-context.ts';
import { finishRun } from './finish/finish-run.ts';
import { invalidateCursorAfter } from './finish/source-cursor.ts';
import { judgeAtOnce, judgePlan } from './guard/judge.ts';
import { readBackCanaries } from './guard/canaries.ts';
import { storeHolds } from './guard/holds.ts';
import { keepDuplicates, readContacts, readPerson } from './read/partial-read.ts';
import type { Summary, PlannedRecord, PlanView } from './report/run-summary.ts';
import { counted } from '../domain/values/counted.ts';
import { ruleNamed } from '../records/contact/consent/gates.ts';
import { reasonFor } from '../records/template/template-decision.ts';
import { decodeTemplate } from '../records/template/template-state.ts';
import { each, inTurns, untilDone } from './context/work-in-parts.ts';
import { type FirstPass, passOver, proveListing, sortListed } from './observe/certified-listing.ts';
import { observePerson, readReset } from './observe/person-observation.ts';
import { readingOf } from './read/record-states.ts';
import { sayMissing, readSource, listInvalid, listUnread } from './read/source-read.ts';
import { aheadOf } from './context/platform-knowledge.ts';
import type { Key, RecordTypeName } from '../domain/record.ts';
import { identityOf } from './context/person-identity.ts';
import { apply, recover } from './apply/apply-changes.ts';
import type { Applying } from './apply/record-outcome.ts';
import { sayStopped } from './finish/summarize-run.ts';
import { noteDecision } from './guard/plan-decisions.ts';
import { commitPlan } from './plan/commit-plan.ts';
import {
  decideAgain,
  decideChanges,
  decidePerson,
  addCandidates,
  findLostChannels,
} from './plan/decide-changes.ts';
import { forecastPassed, forecastRun, readPlan } from './plan/run-forecast.ts';
import type { ChangeGroup } from '../store/staging/staging.ts';
import {
  applyTemplates,
  decideTemplates,
  listTemplates,
  noticeInvalid,
  readTemplates,
  recoverTemplates,
  replanTemplate,
  selectTemplates,
} from './templates/mirror-templates.ts';

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
    invalidateCursorAfter(state);
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
  if (keepsAll) await abandonLeftovers(state.run, state.begun);
  state.notes.push(...(await bindAccount(state.run, mirror.account)));

  await lockPerson(state);
  if (writes) await recoverAll(state, ['full', 'undo'].includes(modeName(options.mode)));
  if (!isRecord(options.mode)) await readSources(state);
  await observe(state);
  const listings = [...state.known.values()].flatMap(({ listing }) => listing ?? []);
  if (writes) keepBinding(snapshot, mirror.account, listings);
  await readBackCanaries(state);
  await findAbsences(state);
  if (state.contacts) await selectCandidates(state, state.contacts);
  if (state.templates) await selectTemplates(state.run, findingsOf(state, 'template'));
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
    const isNew = (kind: RecordTypeName) => snapshot.candidates.next(kind, '', 1).length > 0;
    if (!kindsIn(state).some(isNew)) break;
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
  if (!state.contacts?.source.one) state.contacts = undefined;
  if (!state.contacts) return;
  const { lock, key, findings } = await readPerson(state.run, state.contacts, mode.record);
  state.lock = lock;
  state.known.set('contact', findings);
  if (key === undefined) state.contacts = undefined;
  else state.run = { ...state.run, mode: { single: key } };
}

/** Finds out unknown outcomes. `toBeListed`: a newer listing of the platform follows. */
async function recoverAll(state: RunState, toBeListed: boolean): Promise<void> {
  return eachApplied(state, recover, recoverTemplates, { endsAt: 0, toBeListed });
}

/** Reads the sources. What cannot be read is left out; the last of both throws. */
async function readSources(state: RunState): Promise<void> {
  const { run, reasons, notes, because, known, contacts, templates } = state;
  if (contacts) {
    await readOrExclude(state, 'contact', async () => {
      const read = await readContacts(run, contacts, state.cursor);
      if (read.because) because.push(read.because);
      known.set('contact', { ...noFindings, ...readingOf(contacts.source, read) });
      notes.push(...sayMissing(run.snapshot, read.sizes.missing));
      if (run.selection && read.whole) {
        run.selection.choose('contact');
        notes.push(...run.selection.say(read.sizes.valid));
      }
      if (read.complete) return;
      const reason = `${read.why}, so only opt-outs are applied`;
      reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    });
  }
  if (templates) {
    await readOrExclude(state, 'template', async () => {
      known.set('template', (await readTemplates(run, templates)).findings);
    });
  }
}

/** Reads a source, records whether it can be read, and leaves out what cannot. */
async function readOrExclude(
  state: RunState,
  kind: RecordTypeName,
  read: () => Promise<void>,
): Promise<void> {
  const { outages } = state.mirror;
  try {
    await read();
    outages?.works(`${kind}s`);
  } catch (error) {
    // A run that was stopped, or a file in use, is no outage.
    if (isExpected(error) && !(error instanceof Busy) && !state.run.stop.aborted)
      outages?.failed(`${kind}s`, error.problems[0], 'surely');
    exclude(state, kind, error);
  }
}

/**
 * Observes the platform: all of it in a full run, one person in a run about that person, and only
 * people who were reset in a fast run. If the key may not list contacts or templates, only their
 * recorded state is known. What cannot be listed for other reasons is left out of the run.
 */
async function observe(state: RunState): Promise<void> {
  const { run, mirror, breaker, lock, known, contacts, templates } = state;
  if (run.mode === 'fast') {
    // Only a reading of the whole source tells what the CRM wants for people who were reset.
    const read = findingsOf(state, 'contact');
    if (contacts && read.whole) state.notes.push(...(await readReset(run, contacts, read)));
    return;
  }
  const key = onlyKey(run);
  if (key !== undefined) {
    if (!contacts) return;
    const single = { key, known: findingsOf(state, 'contact'), lock };
    await sideBySide(state, { contact: async () => observePerson(run, contacts, single) });
    return;
  }
  let first: FirstPass | undefined;
  try {
    await sideBySide(state, {
      contact: contacts && (async () => void (first = await passOver(run, contacts, mirror))),
      template:
        templates &&
        (async () => {
          const listing = await listTemplates(run, templates, mirror);
          known.set('template', { ...findingsOf(state, 'template'), listing });
        }),
    });
  } finally {
    await sortListed(run);
  }
  await sideBySide(state, {
    async contact() {
      if (!contacts || !first) return;
      const listing = await proveListing(run, contacts, { first, breaker, mirror });
      known.set('contact', { ...findingsOf(state, 'contact'), listing });
    },
  });
}

/** Does the work for people and for templates in parallel, and leaves out what fails. */
async function sideBySide(
  state: RunState,
  work: { [Kind in RecordTypeName]?: (() => Promise<void>) | undefined },
): Promise<void> {
  const kinds = kindsIn(state);
  await each(kinds, kinds.length, async (kind) => {
    try {
      await work[kind]?.();
    } catch (error) {
      if (!state.breaker.refuses(error)) exclude(state, kind, error);
    }
  });
}

/** Decides whether absences count, drops those of people who are back, and counts the others. */
async function findAbsences({ run, known, contacts }: RunState): Promise<void> {
  const { absences, ranges, transaction } = run.snapshot;
  const read = known.get('contact');
  if (!read || !contacts) return;
  const only = onlyKey(run);
  const isFull = run.mode === 'full' && !run.selection;
  const absenceCounts = isFull && read.certified && read.still();
  known.set('contact', { ...read, absenceCounts });
  if (!run.writes) return;
  transaction(() => {
    if (only === undefined) absences.dropNamed({ kind: 'contact' });
    else absences.dropIfNamed({ kind: 'contact', key: only });
  });
  if (!absenceCounts) return;
  const platformAt = read.listing?.platformStartedAt;
  const times = { at: run.startedAt, platformAt, aheadMs: aheadOf(run) };
  // If the process dies halfway, no person is counted twice for one reading.
  for await (const range of inTurns(run, ranges.ofKeys('contact'))) {
    const but = supersededKeys(run);
    const reading = { reading: read.reading, ...times, ...contacts.absence, but };
    transaction(() => absences.count({ ...range, ...reading }));
  }
}

/** Finds the people who need a decision, and the channels that are lost on the platform. */
async function selectCandidates(state: RunState, contacts: MirrorContacts): Promise<void> {
  const { run, known, tally, reasons, notes } = state;
  const findings = findingsOf(state, 'contact');
  await addCandidates(run, contacts, findings);
  const losses = await findLostChannels(run, contacts.channels, findings.listing);
  known.set('contact', { ...findings, lost: new Set(losses.map(({ part }) => part)) });
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
  const { run, tally, contacts, templates } = state;
  const isFirst = !state.plan && !run.undo;
  if (contacts) {
    const known = findingsOf(state, 'contact');
    await decideChanges({ run, contacts, tally, known });
    if (isFirst) {
      if (onlyKey(run) === undefined)
        run.snapshot.stage(() => run.snapshot.unmanaged.carry('contact'));
      await listInvalid(run, { tally, findings: known });
      state.unread = await listUnread(run, { tally, findings: known });
    }
  }
  if (!templates) return;
  decideTemplates({ run, templates, tally, known: findingsOf(state, 'template') });
  if (isFirst) noticeInvalid(run, tally);
}

/** Summarizes the first round's plan, and passes it to the caller, who may refuse it. */
async function showPlan(state: RunState): Promise<void> {
  const { run, options, mirror, tally } = state;
  state.notes.push(...sayStopped(tally.counts().stopped));
  const plan = await readPlan(run);
  state.plan = plan;
  state.forecast = forecastRun(run, { kinds: kindsIn(state), plan, mirror });
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
  const { run } = state;
  const { staging } = run.snapshot;
  const { kind, op, held } = group;
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
        : reasonOf(change, rule ?? null);
      last = { kind, op, held, key, parts: part === '' ? [] : [part], reason };
    }
  }
  if (last) yield last;
}

/** Returns why a change is planned, in the words of the rule that decided it; '' without one. */
function reasonOf(change: Change, rule: string | null): string {
  if (change.kind === 'template') return reasonFor(decodeTemplate.change(change));
  return ruleNamed(rule)?.asks ?? '';
}

/** Writes the plan, with `more` in the same transaction, and forecasts what may be sent. */
async function writePlan(state: RunState, more?: () => void): Promise<void> {
  const { run, options, mirror, passed, forecast } = state;
  const changes = await commitPlan(run, more);
  const kinds = kindsIn(state);
  for (const kind of kinds) {
    for (const n of Object.values(changes[kind])) passed[kind] += n;
  }
  if (!forecast || state.isForeseen) return;
  state.forecast = forecastPassed(run, forecast, { kinds, plan: { changes }, mirror });
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
  const { run, contacts } = state;
  if (run.undo || !contacts) return;
  const { ranges, stated, transaction } = run.snapshot;
  const isAny = run.doNotContact.erased() !== undefined;
  const mapping = contacts.manner ?? '';
  const { certified: isCertified, whole: isWhole } = findingsOf(state, 'contact');
  const certified = isCertified && run.selection === undefined;
  const whole = isWhole && onlyKey(run) === undefined;
  const isErased = (key: Key): boolean =>
    run.doNotContact.concerning(identityOf(run, key)).some(({ cause }) => cause === 'erasure');
  for await (const range of inTurns(run, ranges.ofStated('contact'))) {
    const erased = isAny ? stated.newKeys(range).filter(isErased) : [];
    const but = [...supersededKeys(run), ...erased];
    const reading = { but, certified, whole, mapping, at: run.clock.now() };
    transaction(() => stated.store(range, reading));
  }
}

/** The length of a slice, in milliseconds. */
const sliceMs = 10 * 60_000;

/** Applies in slices. Between them, the rest is planned again if its source has changed. */
async function applyInSlices(state: RunState): Promise<void> {
  const { run, breaker } = state;
  for (;;) {
    const endsAt = run.clock.now() + sliceMs;
    await eachApplied(state, apply, applyTemplates, { endsAt, toBeListed: false });
    await recoverAll(state, false);
    if (run.stop.aborted || breaker.stopped() || run.clock.now() < endsAt) return;
    const { slicing } = run.snapshot;
    const remaining = kindsIn(state).filter((kind) => slicing.hasPlanned(run.id, kind));
    if (remaining.length === 0) return;
    if (state.contacts && remaining.includes('contact')) await planAgain(state, state.contacts);
  }
}

/** Plans the rest again if the CRM has changed since. Throws Interrupted, unexpected errors. */
async function planAgain(state: RunState, contacts: MirrorContacts): Promise<void> {
  const { run, known, reasons, tally } = state;
  const name = 'contact';
  const before = findingsOf(state, name);
  if (before.still()) return;
  const { slicing, staging, stage, transaction } = run.snapshot;
  await untilDone(run, () => transaction(() => slicing.withdraw(run.id, name)));
  stage(() => {
    staging.forgetDesired(name);
    slicing.assumeDone(run.id, name);
  });
  const outdated = { ...before, certified: false, still: () => false };
  known.set(name, outdated);
  if (state.options.agrees) {
    const reason = 'the contacts of the CRM have changed since the plan was agreed to';
    reasons.push({ code: 'source-changed', reason, fix: 'plan again' });
    return;
  }
  try {
    const read = await readSource(run, contacts);
    known.set(name, { ...outdated, ...readingOf(contacts.source, read) });
    if (!read.complete) {
      const reason = `${read.why}, so only opt-outs are applied from now on`;
      reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    }
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    const reason = `the contacts could not be read again, so the rest waits: ${error.message}`;
    reasons.push({ code: 'source-left-out', reason });
    return;
  }
  await selectCandidates(state, contacts);
  const findings = findingsOf(state, name);
  await decideChanges({ run, contacts, tally, known: findings });
  await listInvalid(run, { tally, findings });
  await judgePlan(state);
  // What was withdrawn and is not planned again is not sent.
  state.passed[name] = tally.outcomeCount(name);
  await writePlan(state);
  run.snapshot.candidates.clear(name);
}

/** Takes a step for people and one for templates side by side. */
async function eachApplied(
  state: RunState,
  ofPeople: typeof apply,
  ofTemplates: typeof applyTemplates,
  when: { endsAt: number; toBeListed: boolean },
): Promise<void> {
  const { run, breaker, tally, mirror, contacts, templates } = state;
  const review = (): void => judgeAtOnce(state);
  const kinds = kindsIn(state);
  await each(kinds, kinds.length, async (kind) => {
    const known = findingsOf(state, kind);
    const passed = state.passed[kind];
    const applying = { run, breaker, tally, known, ...when, passed, timeoutMs: mirror.timeoutMs };
    if (kind === 'contact' && contacts) {
      const deciding = { run, contacts, tally, known };
      const replan: Applying['replan'] = (key, isSettled) => {
        const decide = () => decidePerson(deciding, key);
        return decideAgain(run, { kind, key }, { isSettled, decide, review });
      };
      await ofPeople({ ...applying, contacts, replan });
    }
    if (kind === 'template' && templates) {
      const deciding = { run, templates, tally, known };
      const replan: Applying['replan'] = (key, isSettled) =>
        replanTemplate(deciding, { key, isSettled, review });
      await ofTemplates({ ...applying, templates, replan });
    }
  });
}
