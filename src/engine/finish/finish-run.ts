/**
 * Ends a run: reports opt-outs to the CRM, stores the end, the figures that plots are drawn from
 * and the problems that the run noticed, deletes what is too old, and returns the summary: the
 * status of the run, its counts, and the reasons if it failed.
 */
import { Interrupted, type Problem, Rejected, renderProblem } from '../../domain/errors.ts';
import { type GuardClass, guardNames, guardRows } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { countUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Stop } from '../../records/decision.ts';
import type { JournalTally } from '../../store/tables/journal.ts';
import type { OptOutDay } from '../../store/tables/run-figures.ts';
import { storeQuarantine } from '../context/circuit-breaker.ts';
import { isRecord, modeName, onlyKey } from '../context/mirror-context.ts';
import { keepRestored, noteDifference, storeDifference } from '../context/platform-knowledge.ts';
import {
  type RunContext,
  closeAuditLog,
  openChanges,
  supersededKeys,
} from '../context/run-context.ts';
import { type RunResults, findingsOf, kindsIn } from '../context/run-results.ts';
import { type Steps, eachPart, inTurns, untilDone } from '../context/work-in-parts.ts';
import {
  findErased,
  noteUnfinished,
  sayUnfinished,
  unfinishedIn,
} from '../erasure/pending/unfinished-erasures.ts';
import { canariesOf, closeCanaries, sayCanaries } from '../judge/canaries.ts';
import { closeApprovals, closeHolds, countAwaitingApproval, holdWithheld } from '../judge/holds.ts';
import { isAnyLeft } from '../judge/plan-decisions.ts';
import { countDeferred, sayDeferred } from '../judge/plan-rules.ts';
import { dropSuperseded, yielding } from '../decide/commit-plan.ts';
import { storeLimits } from '../decide/plan-summary.ts';
import { storeReadingFacts } from '../read/partial-read.ts';
import { weekMs } from '../../domain/guards/guard-limits.ts';
import { type ProblemGroups, groupProblems } from '../report/problem-groups.ts';
import {
  type ChangeCounts,
  type ListedProblem,
  type Status,
  type Summary,
  fullReasons,
  shownCounts,
  splitHeld,
} from '../report/run-summary.ts';
import { type Reported, reportOptOuts } from '../write-back/report-opt-outs.ts';
import { storeCursor } from './source-cursor.ts';

/** Ends a run, whatever the outcome of its work. */
export async function finishRun(found: RunResults): Promise<Summary> {
  const { run, parts, breaker } = found;
  const { writes, mode } = run;
  const { reason, note } = storeQuarantine(run, breaker);
  const unwritten = writes ? await closeAuditLog(run, mode === 'full') : undefined;
  const canaries = closeCanaries(found);
  const results: RunResults = {
    ...found,
    verdict: { ...found.verdict, canaries },
    reasons: [...found.reasons, ...(reason ? [reason] : [])],
    notes: [
      ...found.notes,
      ...noteDifference(found.mirror),
      ...sayDeferred(run),
      ...sayCanaries(run, canaries),
      ...[note, unwritten].filter((one) => one !== undefined),
    ],
  };
  if (writes) {
    // The ids that certified readings found are stored, whatever the outcome of the run.
    const { recorded, ranges, transaction } = run.snapshot;
    const isCertified = parts.contacts && findingsOf(found.known, 'contact').certified;
    for await (const range of isCertified ? inTurns(run, ranges.ofStrangeIds('contact')) : []) {
      transaction(() => recorded.adoptOrigins({ ...range, since: run.startedAt }));
    }
    await holdWithheld(run);
  }
  const reported = await reportOptOuts(results);
  const done: JournalTally[] = [];
  for await (const some of inTurns(run, run.snapshot.journal.tally(run.id))) done.push(...some);
  const looked = run.writes && run.mode === 'full' && parts.contacts !== undefined;
  const erased = looked ? await findErased(run) : [];
  const isChanged = done.some(({ kind, state }) => kind === 'contact' && state === 'acked');
  const isCounted = looked || (run.writes && isChanged && onlyKey(run) === undefined);
  const counts = isCounted ? await countPeople(run) : undefined;
  dropSuperseded(run);
  const problems = await groupFound(results);
  // There is no await from here until the end is stored, so that the summary agrees with the
  // snapshot.
  dropSuperseded(run);
  // A new decision may have been made for the last record that awaited approval.
  const held = countAwaitingApproval(results);
  const awaiting = noticeAwaiting(results, held);
  if (looked) run.snapshot.transaction(() => noteUnfinished(run, erased));
  const summary = summaryOf(results, { reported, done, held, awaiting, found: problems });
  const settled = run.writes
    ? run.snapshot.transaction(() => keep(results, { summary, done, counts }))
    : [];
  // A run that undoes another decides only about the people of that one.
  if (run.writes && !run.undo) await yielding(run, keepNoticed(results));
  if (run.writes) await closeHolds(results, settled);
  if (run.writes && onlyKey(run) === undefined) await prune(run);
  return summary;
}

/** Counts the people subscribed, by channel, and in a full run the platform's new opt-outs. */
async function countPeople(run: RunContext) {
  const { figures, ranges } = run.snapshot;
  const since = figures.countedAt() ?? 0;
  const subscribed = new Map<string, number>();
  const made: OptOutDay[] = [];
  for await (const range of inTurns(run, ranges.ofRecorded('contact'))) {
    for (const { channel, n } of figures.subscribed(range))
      subscribed.set(channel, (subscribed.get(channel) ?? 0) + n);
    if (run.mode === 'full') made.push(...figures.madeSince({ ...range, since }));
    if (typeof range.upTo !== 'string') break;
  }
  return { subscribed, made };
}

interface Ended {
  summary: Summary;
  done: readonly JournalTally[];
  counts: Awaited<ReturnType<typeof countPeople>> | undefined;
}

/** Returns what all necessary work was done for. */
function keep(results: RunResults, ended: Ended): RecordTypeName[] {
  const { run, parts, known, mirror } = results;
  const { summary } = ended;
  const { runs, journal, problems } = run.snapshot;
  const { id } = run;
  const at = run.clock.now();
  for (const kind of run.undo ? [] : kindsIn(parts)) {
    const { certified, whole, sizes } = findingsOf(known, kind);
    if (!certified) continue;
    if (whole && kind === 'contact') {
      storeReadingFacts(run.snapshot, sizes);
      run.selection?.store();
    }
    const but = supersededKeys(run);
    const dropUnnamed = whole ? problems.dropUnnamed : problems.dropRenamed;
    if (onlyKey(run) === undefined) dropUnnamed({ kind, but });
  }
  const { problems: _, groups: __, reasonCodes: ___, cannot: ____, ...kept } = summary;
  const { status, plan } = summary;
  // Most events cause no change, and their runs would only fill the list of runs.
  const wasTold = (summary.returns?.told ?? 0) > 0;
  const isQuiet = isRecord(results.options.mode) && status === 'done' && !wasTold;
  const isIdle = isQuiet && !journal.holds(id);
  if (isIdle) runs.drop(id);
  else runs.finish({ id, status, plan, summary: JSON.stringify(kept), at });
  if (!isIdle) keepFigures(run, ended);
  if (!run.selection && !run.undo) storeCursor(results, status);
  storeLimits(run.snapshot.meta, run.limits(), at);
  storeDifference(mirror);
  if (run.restored) keepRestored(mirror);
  return closeApprovals(results);
}

function keepFigures(run: RunContext, { summary, done, counts }: Ended): void {
  const { snapshot, clock, id } = run;
  const { figures, runs } = snapshot;
  const at = clock.now();
  for (const of of figures.optOutsOf({ run: id, at })) figures.addOptOuts(of);
  for (const of of counts?.made ?? []) figures.addOptOuts(of);
  if (onlyKey(run) !== undefined) return;
  const { requests, ms } = summary;
  const proven = runs.proven();
  const routes = Object.entries(run.limits()).flatMap(([route, { limit: most, windowMs }]) => {
    if (most === undefined || windowMs === undefined) return [];
    const sent = (requests.byRoute[route] ?? 0) / Math.max(1, ms / windowMs);
    return { at, route, sent: Math.min(most, sent), most, windowMs };
  });
  for (const route of routes) if (route.sent > 0) figures.addRoute(route);
  const acked = done.filter(({ state }) => state === 'acked');
  figures.add({
    run: id,
    at,
    mode: summary.mode,
    ms,
    requests: requests.total,
    refused: requests.rateLimited,
    used: routes.length === 0 ? null : Math.max(...routes.map(({ sent, most }) => sent / most)),
    proofMs: proven ? at - proven.startedAt : null,
    changed: acked.reduce((sum, { n }) => sum + n, 0),
    changes: done.map(({ kind, op, state, n }) => ({ kind, op, state, n })),
    people: counts ? Object.fromEntries(counts.subscribed) : null,
  });
}

/**
 * Stores the problems that the run noticed, and deletes those that it no longer noticed. This comes
 * after the end of the run is stored: if the process dies halfway, some problems are listed as new
 * again, but none is lost.
 */
function* keepNoticed({ run, parts, known, plan }: RunResults): Steps {
  const { problems, ranges, transaction } = run.snapshot;
  const by = { run: run.id, at: run.clock.now() };
  const only = onlyKey(run);
  for (const kind of kindsIn(parts)) {
    yield* eachPart(ranges.ofNoticed(kind), (range) => {
      transaction(() => problems.adopt({ ...range, ...by }));
    });
    const { certified, whole } = findingsOf(known, kind);
    if (!certified || !plan) continue;
    if (only !== undefined) transaction(() => problems.forgetUnnoticedOf({ kind, key: only }));
    else {
      yield* eachPart(ranges.ofProblems(kind), (range) => {
        const but = supersededKeys(run);
        const forget = whole ? problems.forgetUnnoticed : problems.forgetUnnoticedNamed;
        transaction(() => forget({ ...range, but }));
      });
    }
  }
}

/** Deletes rows that are too old. It scans all of them, so a run about one person skips it. */
async function prune(run: RunContext) {
  const { snapshot, clock, keepMs, audit } = run;
  const { runs, figures, journal, optOutReports, holds, unaudited, stated, transaction } = snapshot;
  const at = clock.now();
  // Guards count the changes of the last seven days.
  const before = at - Math.max(keepMs, weekMs);
  transaction(() => {
    runs.prune(at - keepMs);
    stated.prune(at - keepMs);
    figures.prune(at - keepMs);
    optOutReports.prune(before);
    // What a log is to get waits for it; a program that wants none is not to keep it for ever.
    if (!audit) unaudited.prune(before);
  });
  await untilDone(run, () => transaction(() => holds.prune(before)));
  await untilDone(run, () => transaction(() => journal.prune(before)));
}

interface Done {
  reported: Reported | undefined;
  done: readonly JournalTally[];
  held: Record<GuardClass, number>;
  /** What awaits approval. */
  awaiting: readonly ListedProblem[];
  found: ProblemGroups;
}

function summaryOf(results: RunResults, { reported, done, held, awaiting, found }: Done): Summary {
  const { run, tally, mirror, options } = results;
  const contact = kindSummary(results, 'contact', done);
  const template = kindSummary(results, 'template', done);
  const reasons = reasonsOf(results, done);
  const stuck = reported?.stuck;
  const { heldAs, canaries: book, reports } = results.verdict;
  const known = [...results.known.values()];
  const listings = known.flatMap(({ listing }) => listing ?? []);
  const count = (wanted: JournalTally['state']): number =>
    done.reduce((sum, one) => sum + (one.state === wanted ? one.n : 0), 0);
  const erasures = unfinishedIn(run.snapshot);
  const split = splitHeld(held);
  const canaries = canariesOf(run, book);
  for (const guard of guardNames.filter((of) => held[of] > 0)) {
    found.addHeld(guard, held[guard], reports.get(guard) ?? { reason: '', fix: '' });
  }
  const groups = found.groups();
  const unfinished = erasures.length > 0 && results.parts.contacts !== undefined;
  const said: Problem[] = [
    ...reasons,
    ...results.notes,
    ...(unfinished ? [sayUnfinished(erasures)] : []),
    ...(stuck ? [stuck] : []),
  ];
  return {
    run: run.id,
    mirror: mirror.name,
    status: statusOf(results, held, {
      reasons: reasons.length,
      unfinished,
      stuck: stuck !== undefined,
    }),
    mode: modeName(run.mode),
    only: options.only ?? null,
    plan: results.plan?.hash ?? '',
    ...(heldAs !== undefined && heldAs !== results.plan?.hash && { heldAs }),
    contacts: {
      ...contact,
      held: split.contacts,
      skipped: findingsOf(results.known, 'contact').sizes.skipped,
      furtherOptIns: done.reduce((sum, { further }) => sum + further, 0),
      prevented: tally.counts().stopped,
      unmanaged: countUnmanaged(groups),
      missing: findingsOf(results.known, 'contact').sizes.missing,
    },
    templates: { ...template, held: split.templates },
    deferred: countDeferred(run),
    ...(canaries && { canaries }),
    attempted: { sent: count('acked') + count('rejected'), refused: count('rejected') },
    returns: reported?.summary ?? null,
    requests: mirror.requests(),
    forecast: results.forecast ?? null,
    certificate: {
      source: known.length === 0 ? null : known.every(({ certified }) => certified),
      platform: listings.length === 0 ? null : listings.every(({ complete }) => complete),
    },
    problems: tally.problems(awaiting),
    groups,
    fullBecause: fullReasons(results.because),
    reasons: said.map(renderProblem),
    reasonCodes: said.map(({ code }) => code),
    known: tally.counts().known,
    ms: run.clock.now() - run.startedAt,
    ...(run.undo && { undoes: run.undo.run, cannot: run.undo.cannot() }),
  };
}

function kindSummary(results: RunResults, kind: RecordTypeName, done: readonly JournalTally[]) {
  const { run, tally, plan } = results;
  const { staging, guarded, recorded, problems } = run.snapshot;
  // Stale changes are not counted as planned.
  const planned: ChangeCounts = {};
  const acked: ChangeCounts = {};
  let refused = 0;
  for (const { op, state: is, n } of done.filter((one) => one.kind === kind)) {
    if (is !== 'stale') planned[op] = (planned[op] ?? 0) + n;
    if (is === 'acked') acked[op] = (acked[op] ?? 0) + n;
    if (is === 'rejected') refused += n;
  }
  for (const { op, n } of guarded.ops(kind, 'held')) planned[op] = (planned[op] ?? 0) + n;
  // A plan would not do what a person has rejected, nor what waits for a window or a canary.
  const foreseen: Record<string, number> = { ...plan?.changes[kind] };
  for (const { op, n } of guarded.ops(kind, 'rejected', 'deferred'))
    foreseen[op] = (foreseen[op] ?? 0) - n;
  const changes = { ...(run.writes ? planned : foreseen), adopt: tally.counts().adopted[kind] };
  const { sizes, listing } = findingsOf(results.known, kind);
  let { valid: desired, invalid } = sizes;
  let observed = listing?.size ?? recorded.count(kind);
  let parked = problems.countParked(kind);
  const only = onlyKey(run);
  if (only !== undefined) {
    // Only the person that the run is about counts, even if more was read for it.
    const rows = staging.desired(kind, only);
    invalid = rows.filter((row) => row.invalid).length;
    desired = rows.length > invalid ? 1 : 0;
    observed = staging.observed(kind, only).length;
    parked = problems.parked(kind, only).length > 0 ? 1 : 0;
  }
  const unread = kind === 'contact' ? results.unread : undefined;
  return {
    desired,
    observed,
    changes: shownCounts(kind, changes, 'changes'),
    applied: shownCounts(kind, acked, 'applied'),
    refused,
    rejected: parked + staging.countNoticed(kind, 'rejected'),
    conflicts: staging.countNoticed(kind, 'conflict') + (unread?.conflicts ?? 0),
    invalid: invalid + (unread?.invalid ?? 0),
  };
}

/** An unfinished erasure and an unwritten audit log count like a failed opt-out. */
function statusOf(
  { run, tally, failure, notes }: RunResults,
  held: Record<GuardClass, number>,
  { reasons, unfinished, stuck }: { reasons: number; unfinished: boolean; stuck: boolean },
): Status {
  if (reasons > 0) return 'failed';
  if (failure || run.stop.aborted) return 'interrupted';
  if (isAnyLeft(held)) return 'held';
  const { news, optOutsFailed } = tally.counts();
  if (news > 0 || optOutsFailed > 0 || stuck) return 'rejected';
  const isUnlogged = notes.some(({ code }) => code === 'audit-log');
  return (unfinished && run.writes) || isUnlogged ? 'rejected' : 'done';
}

function reasonsOf(results: RunResults, tally: readonly JournalTally[]): Problem[] {
  const { run, parts, breaker, failure } = results;
  const reasons = [...results.reasons, ...breaker.reasons()];
  // Of a refusal, only the message is reported. The explanation may be long, and is listed with the
  // records.
  if (failure instanceof Rejected) reasons.push({ code: 'rejected', reason: failure.message });
  else if (failure && !(failure instanceof Interrupted)) reasons.push(...failure.problems);
  if (!run.writes) return reasons;
  const unknown = kindsIn(parts).flatMap((kind) => openChanges(run, kind)).length;
  if (unknown > 0) {
    reasons.push({
      code: 'outcome-unknown',
      reason: `the outcome of ${counted(unknown, 'change')} is not known yet`,
      fix: 'the next run reads what became of them',
    });
  }
  const unsent = tally.reduce((sum, { state, n }) => sum + (state === 'planned' ? n : 0), 0);
  if (unsent > 0 && !run.stop.aborted) {
    const last = breaker.stopped() ? undefined : breaker.lastUnsent();
    const why = last === undefined ? '' : `${unsent === 1 ? '' : ', the last'}: ${last}`;
    const reason = `${counted(unsent, 'change')} ${unsent === 1 ? 'was' : 'were'} not sent${why}`;
    const again = run.undo && `run \`crm-mirror undo ${run.undo.run}\` again`;
    const fix = again ?? 'the next run plans them again';
    reasons.push({ code: 'changes-left', reason, fix });
  }
  return reasons;
}

/** Returns a note for each setting that prevents changes, with the number of people affected. */
export function sayStopped({ protect, optIns }: Record<Stop, number>): Problem[] {
  const people = (n: number): string => (n === 1 ? '1 person' : `${n} people`);
  const notes: Problem[] = [];
  if (optIns > 0) {
    const reason = `policy.optIns is off: ${people(optIns)} would be created or opted in`;
    notes.push({ code: 'policy', reason, fix: 'set it to on to do so' });
  }
  if (protect > 0) {
    notes.push({
      code: 'policy',
      reason: `contacts.protect: ${people(protect)} would be changed and stay as they are`,
      fix: '`crm-mirror explain <email>` says what for one person',
    });
  }
  return notes;
}

/** Groups all problems that the summary counts by cause, except for what awaits approval. */
async function groupFound({ run, parts, known, mirror }: RunResults): Promise<ProblemGroups> {
  const { problems, ranges } = run.snapshot;
  const found = groupProblems();
  const only = onlyKey(run);
  for (const name of kindsIn(parts)) {
    for await (const range of inTurns(run, ranges.ofNoticed(name))) {
      found.add(name, problems.counted.noticed(range));
    }
    if (only !== undefined) {
      found.add(name, problems.counted.parkedOf({ kind: name, key: only }));
      continue;
    }
    const { whole, reading } = findingsOf(known, name);
    const isPartial = !whole && reading !== '';
    for await (const range of inTurns(run, ranges.ofProblems(name))) {
      found.add(name, problems.counted.parked(range));
      if (isPartial) found.add(name, problems.counted.unread(range));
    }
  }
  if (mirror.returns) {
    const all = run.snapshot.optOutReports.rejected('contact', mostReports);
    const ours = all.filter(({ email }) => only === undefined || email === only);
    found.addRefusedReports(ours);
  }
  return found;
}

const mostReports = 1_000_000;

/** Stages what awaits approval in each guard class as a problem of the run. */
function noticeAwaiting(
  { run: { snapshot }, verdict: { reports } }: RunResults,
  held: Record<GuardClass, number>,
): ListedProblem[] {
  return guardNames.flatMap((guard) => {
    const fault = reports.get(guard);
    if (!fault || held[guard] === 0) return [];
    const about = { kind: guardRows[guard].recordType, key: guard, part: '', ...fault };
    const problem = { ...about, class: 'held', cause: 'awaiting-approval' } as const;
    snapshot.staging.addNoticed(problem);
    return [{ ...problem, isNew: snapshot.problems.get(problem) === undefined }];
  });
}
