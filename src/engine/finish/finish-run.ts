/** How a run ends in the snapshot, and the summary it leaves. */
import { type GuardClass, guardNames } from '../../domain/guard-classes.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { ChangeCounts } from '../report/change-plan.ts';
import { weekMs } from '../report/guard-rules.ts';
import { clearAnnouncement } from './announce-defaults.ts';
import { closeApprovals } from '../guard/plan-approval.ts';
import type { RunState } from '../context/run-state.ts';
import { dropSuperseded, yielding } from '../plan/commit-plan.ts';
import type { RunContext } from '../context/run-context.ts';
import { modeName, onlyKey } from '../context/mirror-context.ts';
import { supersededKeys } from '../context/superseded-records.ts';
import { storeWantedCounts } from '../read/incremental-read.ts';
import { reasonsOf } from './failure-reasons.ts';
import {
  type KindSummary,
  type ReturnsSummary,
  shownCounts,
  splitHeld,
  type Status,
  type Summary,
} from '../report/run-summary.ts';
import { reportOptOuts } from '../../write-back/report-opt-outs.ts';
import { holdWithheld } from '../guard/hold-limit.ts';
import { closeHolds } from '../guard/held-changes.ts';
import { storeLimits } from '../plan/run-forecast.ts';
import { storeQuarantine } from '../context/platform-quarantine.ts';
import { knowledgeNamed } from '../context/source-knowledge.ts';
import type { JournalTally } from '../../snapshot/tables/journal.ts';
import { eachRange, forEachRange, untilDone } from '../context/for-each-range.ts';
import { storeCursors } from './source-cursor.ts';
import {
  findErased,
  noteUnfinished,
  unfinishedIn,
} from '../../erasure/pending/unfinished-erasures.ts';
import { sayUnfinished } from '../../erasure/pending/erasure-text.ts';
import { countAwaitingApproval, isAnyLeft } from '../guard/guard-classes.ts';

export async function finishRun(context: RunState): Promise<Summary> {
  const { run } = context;
  if (run.writes) {
    storeQuarantine(context);
    await keepOrigins(context);
    await holdWithheld(run);
  }
  const returns = await reportOptOuts(context);
  const done = await tallyOf(run);
  const people = context.parts.find(({ type }) => type.erase)?.type;
  const looked = run.writes && run.mode === 'full' ? people : undefined;
  const erased = looked ? await findErased(run, looked) : [];
  // From here on nothing waits: what is written agrees with what it says of itself.
  dropSuperseded(run);
  // Who was decided upon again may have been the last of those who were told about.
  const held = countAwaitingApproval(context);
  context.tally.released(guardNames.filter((of) => held[of] === 0));
  if (looked) run.snapshot.transaction(() => noteUnfinished(run, looked, erased));
  const summary = summaryOf(context, { returns, done, held });
  const settled = run.writes ? run.snapshot.transaction(() => keep(context, summary)) : [];
  if (run.writes) await yielding(run, keepNoticed(context));
  if (run.writes) await closeHolds(context, settled);
  if (run.writes && onlyKey(run) === undefined) await prune(run);
  return summary;
}

/** Answers the kinds of which all that is called for was planned, and came to its end. */
function keep(context: RunState, summary: Summary): RecordType[] {
  const { run } = context;
  const { runs, journal } = run.snapshot;
  const { id } = run;
  const at = run.clock.now();
  keepParked(context);
  const { problems: _, ...kept } = summary;
  const { status, plan } = summary;
  // Most events change nothing, and nobody wants to read of them.
  const wasTold = (summary.returns?.told ?? 0) > 0;
  const isQuiet = context.isEvent && status === 'done' && !wasTold;
  const isIdle = isQuiet && !journal.holds(id);
  if (isIdle) runs.drop(id);
  else runs.finish({ id, status, plan, summary: JSON.stringify(kept), at });
  storeCursors(context, status);
  storeLimits(run.snapshot.meta, run.limits(), at);
  clearAnnouncement(context);
  return closeApprovals(context);
}

function keepParked({ run, parts, known }: RunState): void {
  const { problems } = run.snapshot;
  const isWhole = onlyKey(run) === undefined;
  for (const { type } of parts) {
    const knowledge = known.get(type);
    if (!knowledge?.certified) continue;
    const { whole, sizes } = knowledge;
    if (whole) storeWantedCounts(run.snapshot, type.name, sizes);
    if (isWhole) problems.dropUnnamed(type.name, { but: supersededKeys(run, type), whole });
  }
}

/**
 * What was noticed is known from now on, and what was not is forgotten. After the run has ended:
 * with a process that ends in the middle, some is listed once more, and nothing less than once.
 */
function* keepNoticed({ run, parts, known, plan }: RunState): Generator<undefined, void> {
  const { problems, ranges, transaction } = run.snapshot;
  const by = { run: run.id, at: run.clock.now() };
  const only = onlyKey(run);
  for (const { type } of parts) {
    const { name } = type;
    yield* eachRange(ranges.ofNoticed(name), (range) => {
      transaction(() => problems.adopt(name, { ...by, range }));
    });
    const knowledge = known.get(type);
    if (!knowledge?.certified || !plan) continue;
    const { whole } = knowledge;
    if (only !== undefined) transaction(() => problems.forgetUnnoticed(name, only));
    else {
      yield* eachRange(problems.ranges(name), (range) => {
        const but = supersededKeys(run, type);
        transaction(() => problems.forgetUnnoticed(name, { range, but, whole }));
      });
    }
  }
}

/** Looks through all that is kept: not for the sake of one person. */
async function prune(run: RunContext): Promise<void> {
  const { snapshot, keepMs, clock } = run;
  const { runs, journal, optOutReports, awaitingApproval, transaction } = snapshot;
  const at = clock.now();
  // Guards count what happened in the last seven days.
  const before = at - Math.max(keepMs, weekMs);
  transaction(() => {
    runs.prune(at - keepMs);
    optOutReports.prune(before);
    awaitingApproval.prune(before);
  });
  await untilDone(run, () => transaction(() => awaitingApproval.pruneBatches()));
  await untilDone(run, () => transaction(() => journal.prune(before)));
}

/** What a certified reading says of ids holds, whatever becomes of the run. */
async function keepOrigins({ run, parts, known }: RunState): Promise<void> {
  const { recorded, ranges, transaction } = run.snapshot;
  for (const { type } of parts) {
    if (!known.get(type)?.certified) continue;
    await forEachRange(run, ranges.ofStrangeIds(type.name), (range) => {
      transaction(() => recorded.adoptOrigins(type.name, range, run.startedAt));
    });
  }
}

/** What became of the changes of the run. */
async function tallyOf({ snapshot, clock, id }: RunContext): Promise<JournalTally[]> {
  const all: JournalTally[] = [];
  for (const some of snapshot.journal.tally(id)) {
    all.push(...some);
    await clock.sleep(0);
  }
  return all;
}

interface Done {
  returns: ReturnsSummary | undefined;
  done: readonly JournalTally[];
  /** People. */
  held: Record<GuardClass, number>;
}

function summaryOf(context: RunState, { returns, done, held }: Done): Summary {
  const { run, tally, parts } = context;
  const contact = kindSummary(context, 'contact', done);
  const template = kindSummary(context, 'template', done);
  const reasons = reasonsOf(context, done);
  const erasures = unfinishedIn(run.snapshot);
  const split = splitHeld(held);
  const unfinished = erasures.length > 0 && parts.some(({ type }) => type.erase);
  return {
    run: run.id,
    mirror: run.name,
    status: statusOf(context, { reasons, unfinished, held }),
    mode: modeName(run.mode),
    only: run.only ?? null,
    plan: context.plan?.hash ?? '',
    contacts: {
      ...contact,
      held: split.contacts,
      skipped: knowledgeNamed(context.known, 'contact').sizes.skipped,
    },
    templates: { ...template, held: split.templates },
    returns: returns ?? null,
    requests: run.requests(),
    forecast: context.forecast ?? null,
    certificate: certificateOf(context),
    problems: tally.problems(),
    reasons: [
      ...reasons,
      ...context.notes,
      ...(unfinished ? [sayUnfinished(erasures)] : []),
      ...(context.stuck === undefined ? [] : [context.stuck]),
    ],
    known: tally.counts().known,
    ms: run.clock.now() - run.startedAt,
  };
}

function kindSummary(
  context: RunState,
  kind: RecordTypeName,
  done: readonly JournalTally[],
): KindSummary & { invalid: number } {
  const { run, tally, plan } = context;
  const { staging } = run.snapshot;
  const adopt = tally.counts().adopted[kind];
  const { planned, acked } = journaled(context, kind, done);
  const changes = run.writes ? planned : (plan?.changes[kind] ?? {});
  const only = onlyKey(run);
  const sizes = only === undefined ? sizesOf(context, kind) : sizesOfOne(run, kind, only);
  const { desired, observed, parked } = sizes;
  const { invalid: unread = 0, conflicts = 0 } = context.unread.get(kind) ?? {};
  const invalid = sizes.invalid + unread;
  return {
    desired,
    observed,
    changes: shownCounts(kind, { ...changes, adopt }, 'changes'),
    applied: shownCounts(kind, acked, 'applied'),
    rejected: parked + staging.countNoticed(kind, 'rejected'),
    conflicts: staging.countNoticed(kind, 'conflict') + conflicts,
    invalid,
  };
}

function sizesOf({ run, known }: RunState, kind: RecordTypeName) {
  const { staging, recorded, problems } = run.snapshot;
  const { sizes, listing } = knowledgeNamed(known, kind);
  const { valid, invalid } = sizes;
  const observed = listing ? staging.countObserved(kind) : recorded.count(kind);
  return { desired: valid, observed, invalid, parked: problems.countParked(kind) };
}

/** A single run counts the person it is about, whatever else was read for it. */
function sizesOfOne({ snapshot }: RunContext, kind: RecordTypeName, key: Key) {
  const { staging, problems } = snapshot;
  const rows = staging.desired(kind, key);
  const invalid = rows.filter((row) => row.invalid).length;
  return {
    desired: rows.length > invalid ? 1 : 0,
    observed: staging.observed(kind, key).length,
    invalid,
    parked: problems.parked(kind, key).length > 0 ? 1 : 0,
  };
}

/** What this run planned (held or not, less what turned out stale), and what was acknowledged. */
function journaled(
  { run }: RunState,
  kind: RecordTypeName,
  done: readonly JournalTally[],
): { planned: ChangeCounts; acked: ChangeCounts } {
  const planned: ChangeCounts = {};
  const acked: ChangeCounts = {};
  for (const { kind: of, op, state, n } of done) {
    if (of !== kind) continue;
    if (state !== 'stale') planned[op] = (planned[op] ?? 0) + n;
    if (state === 'acked') acked[op] = (acked[op] ?? 0) + n;
  }
  for (const { op, n } of run.snapshot.guarded.withheldOps(kind)) {
    planned[op] = (planned[op] ?? 0) + n;
  }
  return { planned, acked };
}

/** An erasure that is not done is as loud as an opt-out that could not be applied. */
function statusOf(
  { run, tally, failure, stuck }: RunState,
  { reasons, unfinished, held }: Pick<Done, 'held'> & { reasons: string[]; unfinished: boolean },
): Status {
  if (reasons.length > 0) return 'failed';
  if (failure || run.stop.aborted) return 'interrupted';
  if (isAnyLeft(held)) return 'held';
  const { news, optOutsFailed } = tally.counts();
  if (news > 0 || optOutsFailed > 0 || stuck !== undefined) return 'rejected';
  return unfinished && run.writes ? 'rejected' : 'done';
}

function certificateOf({ known }: RunState): Summary['certificate'] {
  const all = [...known.values()];
  const listings = all.flatMap(({ listing }) => listing ?? []);
  return {
    source: all.length === 0 ? null : all.every(({ certified }) => certified),
    platform: listings.length === 0 ? null : listings.every(({ complete }) => complete),
  };
}
