/**
 * One run of a mirror: recover → read → observe → decide → judge → commit → apply → finish. A plan
 * is the same run, stopped before anything is written. A run about one person looks up only that
 * person, finds out that person's open changes, and has no canaries. Records pass through staging;
 * facts about them are returned, and only this file keeps them, at once, so that a run that fails
 * later still reports them.
 *
 * If a run learns something while it applies changes, such as that a person has been removed from
 * the platform, it makes new decisions in a further round. Three rounds are applied at most;
 * another one only counts what is left.
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
import {
  Busy,
  failureOf,
  Interrupted,
  Invalid,
  isExpected,
  type Problem,
  Rejected,
} from '../domain/errors.ts';
import type { RecordTypeName } from '../domain/record.ts';
import { counted } from '../domain/values/counted.ts';
import { bindAccount, keepBinding } from './account/account-binding.ts';
import { apply, recover } from './apply/apply-changes.ts';
import { sendablePeople } from './apply/sendable-people.ts';
import { abandonLeftovers, inRun } from './begin-run.ts';
import {
  isRecord,
  type Mirror,
  type MirrorContacts,
  onlyKey,
  type RunOptions,
} from './context/mirror-context.ts';
import { learnTime } from './context/platform-knowledge.ts';
import { writeAuditLog } from './context/run-context.ts';
import {
  type Findings,
  findingsOf,
  kindsIn,
  noFindings,
  type RunResults,
} from './context/run-results.ts';
import { each, untilDone } from './context/work-in-parts.ts';
import { finishRun, sayStopped } from './finish/finish-run.ts';
import { invalidateCursorAfter } from './finish/source-cursor.ts';
import { openCanaries, openIn, readBackCanary } from './judge/canaries.ts';
import { approveThisPlan, holdWithheld, keepPlan } from './judge/holds.ts';
import { judgeApproved, judgeAtOnce, judgePlan } from './judge/judge.ts';
import { noteDecision } from './judge/plan-decisions.ts';
import {
  type FirstPass,
  observePerson,
  passOver,
  proveListing,
  readReset,
  sayUnproven,
  sortListed,
} from './observe/observe-platform.ts';
import { commitPlan, storeStated, yielding } from './decide/commit-plan.ts';
import {
  addCandidates,
  countAbsences,
  decideChanges,
  findLostChannels,
} from './decide/decide-changes.ts';
import { forecastRun, readPlan, viewPlan } from './decide/plan-summary.ts';
import { keepDuplicates, readContacts, readPerson } from './read/partial-read.ts';
import { readingOf } from './read/record-states.ts';
import { listInvalid, listUnread, readSource, sayMissing } from './read/source-read.ts';
import type { Summary } from './report/run-summary.ts';
import {
  decideTemplates,
  listTemplates,
  noticeInvalid,
  readTemplates,
  sendableTemplates,
} from './templates/mirror-templates.ts';

const mostRounds = 3;

/**
 * Performs one run. Throws Invalid for input that cannot be used at all, Busy for input that is not
 * ready, and unexpected errors; the summary reports all other problems.
 */
export async function run(mirror: Mirror, options: RunOptions): Promise<Summary> {
  return inRun(mirror, options, async (found) => {
    try {
      found.failure = await failureOf(async () => work(found));
      const summary = await finishRun(found);
      if (found.failure instanceof Invalid || found.failure instanceof Busy) throw found.failure;
      return summary;
    } catch (error) {
      invalidateCursorAfter(found);
      throw error;
    }
  });
}

async function work(found: RunResults): Promise<void> {
  const { options, breaker } = found;
  const { writes, stop } = options;
  await recoverEarlier(found);
  if (!isRecord(options.mode)) await readSources(found);
  await observe(found);
  for (let round = 1; await plan(found, round); round += 1) {
    await applyInSlices(found);
    // Has the run learned something that requires another decision?
    const { candidates } = found.run.snapshot;
    const isNew = (kind: RecordTypeName) => candidates.next(kind, '', 1).length > 0;
    if (stop.aborted || breaker.stopped() || !kindsIn(found.parts).some(isNew)) break;
  }
  const { run, parts, known } = found;
  if (writes && onlyKey(run) === undefined && !stop.aborted)
    await keepDuplicates(run, parts.contacts, findingsOf(known, 'contact'), 'done');
}

/**
 * The number of a round, from 1; `reread` plans the rest of a round after the CRM has changed. That
 * approves nothing, and leaves templates as they are planned.
 */
type Round = number | 'reread';

/** Decides, judges, and writes to the journal what may be sent. Returns whether to send it. */
async function plan(found: RunResults, round: Round): Promise<boolean> {
  const { writes, agrees, shows } = found.options;
  await decide(found, round);
  if (round === 1) await summarizePlan(found);
  await judge(found, round);
  if (round !== 'reread') await shows?.(await viewPlan(found.run), round);
  if (!writes) return false;
  // What was agreed to is one plan, so there is no further one.
  if (round !== 'reread' && round > (agrees ? 1 : mostRounds)) {
    const left = found.run.snapshot.guarded.countPassing();
    const reason = `${counted(left, 'change')} could not be made in this run`;
    const { undo } = found.run;
    const fix = undo ? `run \`crm-mirror undo ${undo.run}\` again` : 'run again';
    if (left > 0) found.reasons.push({ code: 'changes-left', reason, fix });
    return false;
  }
  await commit(found, round);
  return true;
}

/** Handles what earlier runs have left. A run about one person locks the person first. */
async function recoverEarlier(found: RunResults): Promise<void> {
  const { mirror, begun, options } = found;
  const { writes, mode } = options;
  const isAboutAll = onlyKey(options) === undefined;
  if (isAboutAll && writes) {
    await writeAuditLog(found.run);
    await abandonLeftovers(found.run, begun);
  }
  if (isAboutAll) sayAsking(found);
  found.notes.push(...(await bindAccount(found.run, mirror.account)));
  if (found.parts.contacts?.countsLaterConsent) await learnTime(found.run);
  await lockPerson(found);
  if (writes) await recoverAll(found, { toBeListed: isAboutAll && mode !== 'fast' });
}

/** Observes the platform, and finds who needs a decision. */
async function observe(found: RunResults): Promise<void> {
  const { mirror, run, options, lock } = found;
  const { contacts } = found.parts;
  const { writes, onlyPeople } = options;
  const key = onlyKey(run);
  if (key === undefined) await observeAll(found);
  else if (contacts) {
    const single = { key, known: findingsOf(found.known, 'contact'), lock };
    await sideBySide(found, { contact: async () => observePerson(run, contacts, single) });
  }
  const listings = [...found.known.values()].flatMap(({ listing }) => listing ?? []);
  if (writes) keepBinding(run.snapshot, mirror.account, listings);
  if (run.canary && !run.undo && !onlyPeople && key === undefined) await readCanaries(found);
  if (found.parts.contacts) {
    const read = findingsOf(found.known, 'contact');
    const absenceCounts = await countAbsences(run, found.parts.contacts, read);
    keepFindings(found, 'contact', { ...read, absenceCounts });
    await selectPeople(found, found.parts.contacts);
  }
  if (found.parts.templates) {
    const findings = findingsOf(found.known, 'template');
    await addCandidates(run, 'template', { absent: true, findings });
  }
  if (writes && key === undefined)
    await keepDuplicates(run, found.parts.contacts, findingsOf(found.known, 'contact'), 'read');
}

/**
 * Locks the person that the run is about. If only the id of a CRM record is given, reads that
 * record to find the person; from then on the run is about that person.
 */
async function lockPerson(found: RunResults): Promise<void> {
  const { run, parts } = found;
  const { mode, locks } = run;
  if (typeof mode === 'string') return;
  if (!isRecord(mode)) {
    found.lock = await locks.take({ keys: [mode.single], ids: [] });
    return;
  }
  const { contacts } = parts;
  if (!contacts?.source.one) {
    found.parts = {};
    return;
  }
  const { lock, key, findings } = await readPerson(run, contacts, mode.record);
  found.lock = lock;
  keepFindings(found, 'contact', findings);
  if (key === undefined) found.parts = {};
  else found.run = { ...run, mode: { single: key } };
}

function keepFindings(found: RunResults, kind: RecordTypeName, findings: Findings): void {
  found.known = new Map(found.known).set(kind, findings);
}

/** Reads the sources. What cannot be read is left out; the last of both throws. */
async function readSources(found: RunResults): Promise<void> {
  const { run, cursor } = found;
  const { contacts, templates } = found.parts;
  if (contacts) {
    await readOrExclude(found, 'contact', async () => {
      const read = await readContacts(run, contacts, cursor);
      if (read.because) found.because.push(read.because);
      keepFindings(found, 'contact', { ...noFindings, ...readingOf(contacts.source, read) });
      found.notes.push(...sayMissing(run.snapshot, read.sizes.missing));
      if (run.selection && read.whole) {
        run.selection.choose('contact');
        found.notes.push(...run.selection.say(read.sizes.valid));
      }
      if (read.complete) return;
      const reason = `${read.why}, so only opt-outs are applied`;
      found.reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    });
  }
  if (templates) {
    await readOrExclude(found, 'template', async () =>
      keepFindings(found, 'template', (await readTemplates(run, templates)).findings),
    );
  }
}

async function readOrExclude(
  found: RunResults,
  kind: RecordTypeName,
  read: () => Promise<void>,
): Promise<void> {
  const { outages, stop } = found.run;
  try {
    await read();
    outages?.works(`${kind}s`);
  } catch (error) {
    // A run that was stopped, or a file in use, is no outage.
    if (isExpected(error) && !(error instanceof Busy) && !stop.aborted)
      outages?.failed(`${kind}s`, error.problems[0], 'surely');
    leaveOut(found, kind, error);
  }
}

/** Leaves people or templates out of the run, and says why. Throws if that ends the run. */
function leaveOut(found: RunResults, kind: RecordTypeName, error: unknown): void {
  const isLast = kindsIn(found.parts).length === 1;
  const isRefusedKey = error instanceof Rejected && error.status === 401;
  const endsAll = error instanceof Interrupted || error instanceof Busy || isRefusedKey;
  if (isLast || endsAll || !isExpected(error)) throw error;
  const reason = `${kind}s are left out: ${error.message}`;
  found.reasons.push({ code: 'source-left-out', reason });
  found.parts = { ...found.parts, [`${kind}s`]: undefined };
}

/**
 * Observes the whole platform or, in a fast run, only people who were reset. What the key may not
 * list is known as it is recorded; what cannot be listed for other reasons is left out.
 */
async function observeAll(found: RunResults): Promise<void> {
  const { run, breaker } = found;
  const { contacts, templates } = found.parts;
  if (run.mode === 'fast') {
    sayAsking(found);
    // Only a reading of the whole source tells what the CRM wants for people who were reset.
    const read = findingsOf(found.known, 'contact');
    if (contacts && read.whole) found.notes.push(...(await readReset(run, contacts, read)));
    return;
  }
  const keepListing = (kind: RecordTypeName, listing: Findings['listing']): void =>
    keepFindings(found, kind, { ...findingsOf(found.known, kind), listing });
  let first: FirstPass | undefined;
  try {
    await sideBySide(found, {
      contact: contacts && (async () => void (first = await passOver(run, contacts))),
      template:
        templates && (async () => keepListing('template', await listTemplates(run, templates))),
    });
  } finally {
    // While the platform is listed there are no indexes, so they are made even if that fails.
    await sortListed(run);
  }
  await sideBySide(found, {
    async contact() {
      if (!contacts || !first) return;
      const listing = await proveListing(run, contacts, { first, breaker });
      keepListing('contact', listing);
      if (!listing.complete) found.notes.push(sayUnproven(first));
    },
  });
}

function sayAsking({ run, parts }: RunResults): void {
  run.progress({
    stage: 'asking',
    kind: parts.contacts ? 'contact' : 'template',
    done: 0,
    of: undefined,
  });
}

/** Does the work for people and for templates in parallel, and leaves out what fails. */
async function sideBySide(
  found: RunResults,
  work: { [Kind in RecordTypeName]?: (() => Promise<void>) | undefined },
): Promise<void> {
  const kinds = kindsIn(found.parts);
  await each(kinds, kinds.length, async (kind) => {
    try {
      await work[kind]?.();
    } catch (error) {
      if (!found.breaker.refuses(error)) leaveOut(found, kind, error);
    }
  });
}

/** Opens the canaries, and reads back the slices whose wait is over. */
async function readCanaries(found: RunResults): Promise<void> {
  const { run, parts, known } = found;
  let book = openCanaries(run);
  found.verdict = { ...found.verdict, canaries: book };
  for (const [guard] of openIn(book)) {
    const read = await readBackCanary(run, book, guard, { parts, known });
    found.notes.push(...read.notes);
    ({ book } = read);
    found.verdict = { ...found.verdict, canaries: book };
  }
}

async function selectPeople(found: RunResults, contacts: MirrorContacts): Promise<void> {
  const { run, tally, reasons, notes } = found;
  const findings = findingsOf(found.known, 'contact');
  await addCandidates(run, 'contact', { absent: contacts.decidesAbsent, findings });
  const losses = await findLostChannels(run, contacts.channels, findings.listing);
  keepFindings(found, 'contact', { ...findings, lost: new Set(losses.map(({ part }) => part)) });
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

/** Decides about the candidates. The first round after a reading lists invalid records. */
async function decide(found: RunResults, round: Round): Promise<void> {
  const { run, tally, known } = found;
  const { contacts, templates } = found.parts;
  const lists = (round === 1 || round === 'reread') && !run.undo;
  if (contacts) {
    const findings = findingsOf(known, 'contact');
    await decideChanges({ run, contacts, tally, known: findings });
    if (lists) {
      if (onlyKey(run) === undefined)
        run.snapshot.stage(() => run.snapshot.unmanaged.carry('contact'));
      await listInvalid(run, { tally, findings });
      found.unread = await listUnread(run, { tally, findings });
    }
  }
  if (!templates || round === 'reread') return;
  await decideTemplates({ run, templates, tally, known: findingsOf(known, 'template') });
  if (lists) noticeInvalid(run, tally);
}

/**
 * Summarizes the first round's plan, and forecasts how long it takes. Passes the plan of a run that
 * writes to the caller, who may refuse it; the audit log keeps who undoes a run.
 */
async function summarizePlan(found: RunResults): Promise<void> {
  const { run, options, tally, parts } = found;
  found.notes.push(...sayStopped(tally.counts().stopped));
  found.plan = await readPlan(run);
  const readMs = run.clock.now() - run.startedAt;
  const kinds = kindsIn(parts);
  found.forecast = forecastRun(run, { kinds, changes: found.plan.changes, readMs });
  if (!run.writes) {
    options.foresees?.(found.forecast);
    return;
  }
  options.agrees?.(found.plan);
  const decision = options.undo?.decision;
  if (!run.undo || !decision) return;
  const about = { plan: run.undo.run, at: run.clock.now(), ...decision };
  run.snapshot.transaction(() => noteDecision(run.snapshot, 'undo', about));
}

/** Judges the plan. In the first round, it also approves it if the run was asked to. */
async function judge(found: RunResults, round: Round): Promise<void> {
  found.verdict = await judgePlan(found, round === 1 || round === 'reread');
  const { run, approvals, verdict } = found;
  const { approve } = found.options;
  if (round !== 1 || !approve || found.hasApproved) return;
  const { heldAs } = verdict;
  const approved = await yielding(run, approveThisPlan(run, approve, { heldAs, approvals }));
  if (approved === undefined) return;
  if (!Array.isArray(approved)) {
    found.notes.push(approved);
    return;
  }
  found.approvals = approved;
  found.verdict = await judgeApproved(found);
}

/** Writes the plan to the journal, and what it withholds; forecasts what may be sent. */
async function commit(found: RunResults, round: Round): Promise<void> {
  const { run, parts, options, forecast } = found;
  await holdWithheld(run);
  const { heldAs } = found.verdict;
  const changes = await commitPlan(run, round === 1 ? () => keepPlan(run, heldAs) : undefined);
  const kinds = kindsIn(parts);
  const passed = { ...found.passed };
  for (const kind of kinds) for (const n of Object.values(changes[kind])) passed[kind] += n;
  found.passed = passed;
  if (round !== 1) return;
  if (forecast) {
    found.forecast = forecastRun(run, { kinds, changes, readMs: forecast.readMs });
    options.foresees?.(found.forecast);
  }
  if (parts.contacts && !run.undo)
    await storeStated(run, parts.contacts, findingsOf(found.known, 'contact'));
}

const sliceMs = 10 * 60_000;

/** Applies in slices. Between them, the rest is planned again if its source has changed. */
async function applyInSlices(found: RunResults): Promise<void> {
  const { run, breaker } = found;
  for (;;) {
    const endsAt = run.clock.now() + sliceMs;
    await onEach(found, { endsAt, toBeListed: false }, apply);
    await recoverAll(found, { toBeListed: false });
    if (run.stop.aborted || breaker.stopped() || run.clock.now() < endsAt) return;
    const { slicing } = run.snapshot;
    const remaining = kindsIn(found.parts).filter((kind) => slicing.hasPlanned(run.id, kind));
    if (remaining.length === 0) return;
    const { contacts } = found.parts;
    if (!contacts || !remaining.includes('contact')) continue;
    if (await readAgain(found, contacts)) await plan(found, 'reread');
  }
}

/**
 * Reads the CRM again if it has changed since. Returns whether the rest has to be planned. Throws
 * Interrupted, unexpected errors.
 */
async function readAgain(found: RunResults, contacts: MirrorContacts): Promise<boolean> {
  const { run, reasons, tally } = found;
  const kind = 'contact';
  const before = findingsOf(found.known, kind);
  if (before.still()) return false;
  const { slicing, staging, stage, transaction } = run.snapshot;
  await untilDone(run, () => transaction(() => slicing.withdraw(run.id, kind)));
  // What was withdrawn and is not planned again is not sent.
  found.passed = { ...found.passed, [kind]: tally.outcomeCount(kind) };
  stage(() => {
    staging.forgetDesired(kind);
    slicing.assumeDone(run.id, kind);
  });
  const outdated = { ...before, certified: false, still: () => false };
  keepFindings(found, kind, outdated);
  if (found.options.agrees) {
    const reason = 'the contacts of the CRM have changed since the plan was agreed to';
    reasons.push({ code: 'source-changed', reason, fix: 'plan again' });
    return false;
  }
  try {
    const read = await readSource(run, contacts);
    keepFindings(found, kind, { ...outdated, ...readingOf(contacts.source, read) });
    if (!read.complete) {
      const reason = `${read.why}, so only opt-outs are applied from now on`;
      reasons.push({ code: 'source-incomplete', reason, fix: read.fix });
    }
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    const reason = `the contacts could not be read again, so the rest waits: ${error.message}`;
    reasons.push({ code: 'source-left-out', reason });
    return false;
  }
  await selectPeople(found, contacts);
  return true;
}

/** Finds out unknown outcomes. `toBeListed`: a newer listing of the platform follows. */
async function recoverAll(found: RunResults, when: { toBeListed: boolean }): Promise<void> {
  return onEach(found, { ...when, endsAt: Number.POSITIVE_INFINITY }, recover);
}

/** Sends to people and templates side by side, or finds out what became of what was sent. */
async function onEach(
  found: RunResults,
  when: { endsAt: number; toBeListed: boolean },
  work: typeof apply,
): Promise<void> {
  const { run, breaker, tally, parts, known, passed } = found;
  const review = () => void (found.verdict = judgeAtOnce(found));
  const kinds = kindsIn(parts);
  await each(kinds, kinds.length, async (kind) => {
    const about = { known: findingsOf(known, kind), passed: passed[kind] };
    const applying = { run, breaker, tally, ...when, ...about, review };
    const { contacts, templates } = parts;
    if (kind === 'contact' && contacts) await work(applying, sendablePeople(applying, contacts));
    if (kind === 'template' && templates)
      await work(applying, sendableTemplates(applying, templates));
  });
}
