/**
 * Ends a run: reports opt-outs to the CRM, stores the end, the figures that plots are drawn from
 * and the problems that the run noticed, deletes what is too old, and returns the summary.
 */
import { type Steps, eachPart, inTurns, untilDone } from '../context/work-in-parts.ts';
import { guardNames } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { weekMs } from '../report/guard-rules.ts';
import { sayDeferred } from '../guard/plan-rules.ts';
import { sayCanaries, closeCanaries } from '../guard/canaries.ts';
import { findingsOf, kindsIn, type RunResults } from '../context/run-results.ts';
import { dropSuperseded, yielding } from '../plan/commit-plan.ts';
import { closeAuditLog, type RunContext, supersededKeys } from '../context/run-context.ts';
import { noteDifference, storeDifference, keepRestored } from '../context/platform-knowledge.ts';
import { isRecord, onlyKey } from '../context/mirror-context.ts';
import { storeReadingFacts } from '../read/partial-read.ts';
import { groupFound, summaryOf } from './summarize-run.ts';
import type { Summary } from '../report/run-summary.ts';
import { reportOptOuts } from '../write-back/report-opt-outs.ts';
import { closeApprovals, closeHolds, countAwaitingApproval, holdWithheld } from '../guard/holds.ts';
import { storeLimits } from '../plan/plan-summary.ts';
import { storeQuarantine } from '../context/circuit-breaker.ts';
import type { JournalTally } from '../../store/tables/journal.ts';
import { storeCursor } from './source-cursor.ts';
import { findErased, noteUnfinished } from '../erasure/pending/unfinished-erasures.ts';
import type { OptOutDay } from '../../store/tables/run-figures.ts';

/** Ends a run, whatever the outcome of its work. */
export async function finishRun(found: RunResults): Promise<Summary> {
  const { run, parts, breaker } = found;
  const { writes, mode } = run;
  const { reason, note }: ReturnType<typeof storeQuarantine> = writes
    ? storeQuarantine(run, breaker)
    : {};
  const unwritten = writes ? await closeAuditLog(run, { prunes: mode === 'full' }) : undefined;
  const canaries = closeCanaries(found);
  const notes = [note, unwritten].filter((one) => one !== undefined);
  const results: RunResults = {
    ...found,
    verdict: { ...found.verdict, canaries },
    reasons: [...found.reasons, ...(reason === undefined ? [] : [reason])],
    notes: [
      ...found.notes,
      ...noteDifference(found.mirror),
      ...sayDeferred(run),
      ...sayCanaries(run, canaries),
      ...notes,
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
  const counts = looked ? await countPeople(run) : undefined;
  dropSuperseded(run);
  const problems = await groupFound(results);
  // There is no await from here until the end is stored, so that the summary agrees with the
  // snapshot.
  dropSuperseded(run);
  // A new decision may have been made for the last record that awaited approval.
  const held = countAwaitingApproval(results);
  results.tally.released(guardNames.filter((of) => held[of] === 0));
  if (looked) run.snapshot.transaction(() => noteUnfinished(run, erased));
  const summary = summaryOf(results, { reported, done, held, found: problems });
  const settled = run.writes
    ? run.snapshot.transaction(() => keep(results, { summary, done, counts }))
    : [];
  // A run that undoes another decides only about the people of that one.
  if (run.writes && !run.undo) await yielding(run, keepNoticed(results));
  if (run.writes) await closeHolds(results, settled);
  if (run.writes && onlyKey(run) === undefined) await prune(run);
  return summary;
}

/** Counts the people subscribed, by channel, and the platform's opt-outs since the last count. */
async function countPeople(run: RunContext) {
  const { figures, ranges } = run.snapshot;
  const since = figures.countedAt() ?? 0;
  const subscribed = new Map<string, number>();
  const made: OptOutDay[] = [];
  for await (const range of inTurns(run, ranges.ofRecorded('contact'))) {
    for (const { channel, n } of figures.subscribed(range))
      subscribed.set(channel, (subscribed.get(channel) ?? 0) + n);
    made.push(...figures.madeSince({ ...range, since }));
    if (typeof range.upTo !== 'string') break;
  }
  return { subscribed, made };
}

interface Ended {
  summary: Summary;
  done: readonly JournalTally[];
  counts: Awaited<ReturnType<typeof countPeople>> | undefined;
}

/** Stores the end of the run. Returns what all necessary work was done for. */
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

/** Stores the figures. Must be called within the transaction that stores the end of the run. */
function keepFigures(run: RunContext, { summary, done, counts }: Ended): void {
  const { snapshot, clock, id } = run;
  const { figures, runs } = snapshot;
  const at = clock.now();
  for (const of of figures.optOutsOf({ run: id, at })) figures.addOptOuts(of);
  for (const of of counts?.made ?? []) figures.addOptOuts(of);
  if (onlyKey(run) !== undefined) return;
  const { requests, ms } = summary;
  const proven = runs.proven();
  // The largest share of a route's limit that the requests took up.
  const shares = Object.entries(run.limits()).flatMap(([route, { limit, windowMs }]) => {
    if (limit === undefined || windowMs === undefined) return [];
    return Math.min(1, (requests.byRoute[route] ?? 0) / (limit * Math.max(1, ms / windowMs)));
  });
  const acked = done.filter(({ state }) => state === 'acked');
  figures.add({
    run: id,
    at,
    mode: summary.mode,
    ms,
    requests: requests.total,
    refused: requests.rateLimited,
    used: shares.length === 0 ? null : Math.max(...shares),
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
