/** Summarizes a run that has ended: its status, its counts, and the reasons if it failed. */
import { Interrupted, type Problem, Rejected, renderProblem } from '../../domain/errors.ts';
import type { Stop } from '../../records/decision.ts';
import { canariesOf } from '../guard/canaries.ts';
import { countDeferred } from '../guard/plan-rules.ts';
import { type RunResults, findingsOf, kindsIn } from '../context/run-results.ts';
import type { JournalTally } from '../../store/tables/journal.ts';
import { openChanges } from '../context/run-context.ts';
import { type GuardClass, guardNames, guardRows } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import {
  type ChangeCounts,
  type KindSummary,
  shownCounts,
  splitHeld,
  type Status,
  type Summary,
  fullReasons,
} from '../report/run-summary.ts';
import { type ProblemGroups, groupProblems, type ProblemGroup } from '../report/problem-groups.ts';
import { modeName, onlyKey } from '../context/mirror-context.ts';
import { type Reported, sayRejected } from '../write-back/report-opt-outs.ts';
import { unfinishedIn, sayUnfinished } from '../erasure/pending/unfinished-erasures.ts';
import { isAnyLeft } from '../guard/plan-decisions.ts';
import { countUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted } from '../../domain/values/counted.ts';
import { inTurns } from '../context/work-in-parts.ts';
import type { ReturnedRow } from '../../store/tables/opt-out-reports.ts';

interface Done {
  reported: Reported | undefined;
  done: readonly JournalTally[];
  held: Record<GuardClass, number>;
  found: ProblemGroups;
}

export function summaryOf(results: RunResults, { reported, done, held, found }: Done): Summary {
  const { run, tally, mirror, options } = results;
  const contact = kindSummary(results, 'contact', done);
  const template = kindSummary(results, 'template', done);
  const reasons = reasonsOf(results, done);
  const stuck = reported?.stuck;
  const { heldAs, canaries: book } = results.verdict;
  const known = [...results.known.values()];
  const listings = known.flatMap(({ listing }) => listing ?? []);
  const count = (wanted: JournalTally['state']): number =>
    done.reduce((sum, one) => sum + (one.state === wanted ? one.n : 0), 0);
  const erasures = unfinishedIn(run.snapshot);
  const split = splitHeld(held);
  const canaries = canariesOf(run, book);
  const groups = withHeld(found, results, held);
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
    problems: tally.problems(),
    groups,
    fullBecause: fullReasons(results.because),
    reasons: said.map(renderProblem),
    reasonCodes: said.map(({ code }) => code),
    known: tally.counts().known,
    ms: run.clock.now() - run.startedAt,
    ...(run.undo && { undoes: run.undo.run, cannot: run.undo.cannot() }),
  };
}

function kindSummary(
  results: RunResults,
  kind: RecordTypeName,
  done: readonly JournalTally[],
): KindSummary & { invalid: number } {
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

/** Returns the reasons why a run failed. `tally` counts the changes of the run. */
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
    const reason = `${counted(unsent, 'change')} ${unsent === 1 ? 'was' : 'were'} not sent`;
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

// Groups all problems that a run has found by cause. The list of problems has a limit.

/** Collects the problems that the summary counts, except for what awaits approval. */
export async function groupFound({
  run,
  parts,
  known,
  mirror,
}: RunResults): Promise<ProblemGroups> {
  const { problems, ranges } = run.snapshot;
  const found = groupProblems();
  const only = onlyKey(run);
  for (const name of kindsIn(parts)) {
    for await (const range of inTurns(run, ranges.ofNoticed(name))) {
      const noticed = problems.counted.noticed(range);
      found.add(
        name,
        noticed.filter((one) => one.class !== 'held'),
      );
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
    found.add('contact', refusedReports(ours));
  }
  return found;
}

const mostReports = 1_000_000;

/** Returns the opt-outs that the CRM refused, in the form in which problems are grouped. */
export function refusedReports(rows: readonly ReturnedRow[]) {
  return rows.map(({ email: key, reason, fix }) => ({
    class: 'rejected' as const,
    cause: 'crm-refused' as const,
    about: sayRejected(reason ?? ''),
    option: null,
    value: null,
    fix: fix ?? '',
    n: 1,
    samples: [{ key, place: null }],
  }));
}

/** Returns the groups, with what awaits approval in each guard class. */
function withHeld(
  found: ProblemGroups,
  { tally }: RunResults,
  held: Record<GuardClass, number>,
): ProblemGroup[] {
  const told = tally.problems().filter((one) => one.class === 'held');
  for (const guard of guardNames.filter((of) => held[of] > 0)) {
    found.put(
      heldGroup(
        guard,
        held[guard],
        told.find(({ key }) => key === guard) ?? { reason: '', fix: '' },
      ),
    );
  }
  return found.groups();
}

/** Returns the group of what awaits approval because of a guard. */
export function heldGroup(
  guard: GuardClass,
  count: number,
  { reason, fix }: { reason: string; fix: string },
): ProblemGroup {
  const kind = guardRows[guard].recordType;
  const about = { class: 'held', kind, cause: 'awaiting-approval' } as const;
  const none = { option: undefined, values: [], others: 0, samples: [] };
  return { ...about, ...none, count, reason, fix };
}
