/** Summarizes a run that has ended: its status, its counts, and the reasons if it failed. */
import {
  type ExpectedError,
  Interrupted,
  type Problem,
  Rejected,
  renderProblem,
} from '../../domain/errors.ts';
import type { Stop } from '../../records/record-type.ts';
import { canariesOf } from '../guard/canaries.ts';
import { countDeferred } from '../guard/change-windows.ts';
import { type RunState, findingsNamed } from '../context/run-state.ts';
import type { JournalTally } from '../../store/tables/journal.ts';
import { openChanges, type RunContext } from '../context/run-context.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import {
  type ChangeCounts,
  type KindSummary,
  shownCounts,
  splitHeld,
  type Status,
  type Summary,
  fullReasons,
} from '../report/run-summary.ts';
import type { ProblemGroups } from '../report/problem-groups.ts';
import { withHeld } from './group-found-problems.ts';
import { modeName, onlyKey } from '../context/mirror-context.ts';
import type { Reported } from '../write-back/report-opt-outs.ts';
import { unfinishedIn, sayUnfinished } from '../erasure/pending/unfinished-erasures.ts';
import { isAnyLeft } from '../guard/plan-decisions.ts';
import { countUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted } from '../../domain/values/counted.ts';

/** Holds what a summary needs in addition to the state of the run. */
interface Done {
  /** The result of reporting opt-outs to the CRM. */
  reported: Reported | undefined;
  /** The changes of the run, counted by state. */
  done: readonly JournalTally[];
  /** The number of people awaiting approval, by guard class. */
  held: Record<GuardClass, number>;
  /** The problems of the run, collected by cause. */
  found: ProblemGroups;
}

/** Builds the summary of a run. */
export function summaryOf(state: RunState, { reported, done, held, found }: Done): Summary {
  const { run, tally, parts, mirror, options } = state;
  const contact = kindSummary(state, 'contact', done);
  const template = kindSummary(state, 'template', done);
  const reasons = reasonsOf(state, done);
  const stuck = reported?.stuck;
  const erasures = unfinishedIn(run.snapshot);
  const split = splitHeld(held);
  const canaries = canariesOf(state);
  const groups = withHeld(found, state, held);
  const unfinished = erasures.length > 0 && parts.some(({ type }) => type.capabilities.erasure);
  const said: Problem[] = [
    ...reasons,
    ...state.notes,
    ...(unfinished ? [sayUnfinished(erasures)] : []),
    ...(stuck ? [stuck] : []),
  ];
  return {
    run: run.id,
    mirror: mirror.name,
    status: statusOf(state, { reasons, unfinished, held, stuck }),
    mode: modeName(run.mode),
    only: options.only ?? null,
    plan: state.plan?.hash ?? '',
    ...heldAsIn(state),
    contacts: {
      ...contact,
      held: split.contacts,
      skipped: findingsNamed(state.known, 'contact').sizes.skipped,
      furtherOptIns: done.reduce((sum, { further }) => sum + further, 0),
      prevented: tally.counts().stopped,
      unmanaged: countUnmanaged(groups),
      missing: findingsNamed(state.known, 'contact').sizes.missing,
    },
    templates: { ...template, held: split.templates },
    deferred: countDeferred(run),
    ...(canaries && { canaries }),
    attempted: attemptedIn(done),
    returns: reported?.summary ?? null,
    requests: mirror.requests(),
    forecast: state.forecast ?? null,
    certificate: certificateOf(state),
    problems: tally.problems(),
    groups,
    fullBecause: fullReasons(state.because),
    reasons: said.map(renderProblem),
    reasonCodes: said.map(({ code }) => code),
    known: tally.counts().known,
    ms: run.clock.now() - run.startedAt,
    ...(run.undo && { undoes: run.undo.run, cannot: run.undo.cannot() }),
  };
}

function kindSummary(
  state: RunState,
  kind: RecordTypeName,
  done: readonly JournalTally[],
): KindSummary & { invalid: number } {
  const { run, tally } = state;
  const { staging } = run.snapshot;
  const adopt = tally.counts().adopted[kind];
  const { planned, acked, refused } = journaled(state, kind, done);
  const changes = run.writes ? planned : foreseen(state, kind);
  const only = onlyKey(run);
  const sizes = only === undefined ? sizesOf(state, kind) : sizesOfOne(run, kind, only);
  const { desired, observed, parked } = sizes;
  const { invalid: unread = 0, conflicts = 0 } = state.unread.get(kind) ?? {};
  const invalid = sizes.invalid + unread;
  return {
    desired,
    observed,
    changes: shownCounts(kind, { ...changes, adopt }, 'changes'),
    applied: shownCounts(kind, acked, 'applied'),
    refused,
    rejected: parked + staging.countNoticed(kind, 'rejected'),
    conflicts: staging.countNoticed(kind, 'conflict') + conflicts,
    invalid,
  };
}

/**
 * Counts what a plan would do, by operation, without the changes that a person has rejected and
 * those that wait for a window or a canary.
 */
function foreseen({ run, plan }: RunState, kind: RecordTypeName): Record<string, number> {
  const counts = { ...plan?.changes[kind] };
  const { awaitingApproval, guarded } = run.snapshot;
  for (const { op, n } of [...awaitingApproval.refusedOps(kind), ...guarded.deferred.ops(kind)])
    counts[op] = (counts[op] ?? 0) - n;
  return counts;
}

function sizesOf({ run, known }: RunState, kind: RecordTypeName) {
  const { recorded, problems } = run.snapshot;
  const { sizes, listing } = findingsNamed(known, kind);
  const { valid, invalid } = sizes;
  const observed = listing?.size ?? recorded.count(kind);
  return { desired: valid, observed, invalid, parked: problems.countParked(kind) };
}

/** Counts only the person that a run is about, even if more was read for it. */
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

/**
 * Counts the changes that this run planned, except stale ones, those that were acknowledged, and
 * those that were refused.
 */
function journaled(
  { run }: RunState,
  kind: RecordTypeName,
  done: readonly JournalTally[],
): { planned: ChangeCounts; acked: ChangeCounts; refused: number } {
  const planned: ChangeCounts = {};
  const acked: ChangeCounts = {};
  let refused = 0;
  for (const { kind: of, op, state, n } of done) {
    if (of !== kind) continue;
    if (state !== 'stale') planned[op] = (planned[op] ?? 0) + n;
    if (state === 'acked') acked[op] = (acked[op] ?? 0) + n;
    if (state === 'rejected') refused += n;
  }
  for (const { op, n } of run.snapshot.guarded.withheldOps(kind)) {
    planned[op] = (planned[op] ?? 0) + n;
  }
  return { planned, acked, refused };
}

function attemptedIn(done: readonly JournalTally[]): Summary['attempted'] {
  const count = (wanted: JournalTally['state']): number =>
    done.reduce((sum, { state, n }) => sum + (state === wanted ? n : 0), 0);
  const refused = count('rejected');
  return { sent: count('acked') + refused, refused };
}

interface Ending extends Pick<Done, 'held'> {
  reasons: readonly Problem[];
  unfinished: boolean;
  stuck: Problem | undefined;
}

/**
 * Returns the status. An unfinished erasure counts like a failed opt-out, and so does an audit log
 * that could not be written.
 */
function statusOf(
  { run, tally, failure, notes }: RunState,
  { reasons, unfinished, held, stuck }: Ending,
): Status {
  if (reasons.length > 0) return 'failed';
  if (failure || run.stop.aborted) return 'interrupted';
  if (isAnyLeft(held)) return 'held';
  const { news, optOutsFailed } = tally.counts();
  if (news > 0 || optOutsFailed > 0 || stuck !== undefined) return 'rejected';
  const isUnlogged = notes.some(({ code }) => code === 'audit-log');
  return (unfinished && run.writes) || isUnlogged ? 'rejected' : 'done';
}

function certificateOf({ known }: RunState): Summary['certificate'] {
  const all = [...known.values()];
  const listings = all.flatMap(({ listing }) => listing ?? []);
  return {
    source: all.length === 0 ? null : all.every(({ certified }) => certified),
    platform: listings.length === 0 ? null : listings.every(({ complete }) => complete),
  };
}

/** Returns the reasons why a run failed. `tally` counts the changes of the run. */
function reasonsOf(state: RunState, tally: readonly JournalTally[]): Problem[] {
  const { run, breaker, failure, parts } = state;
  const reasons = [...state.reasons, ...breaker.reasons()];
  if (failure && !(failure instanceof Interrupted)) reasons.push(...problemsOf(failure));
  if (!run.writes) return reasons;
  const unknown = parts.flatMap(({ type }) => openChanges(run, type.name)).length;
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

/**
 * For a refusal, only the message is reported. The explanation may be long, and is listed with the
 * records.
 */
function problemsOf(failure: ExpectedError): readonly Problem[] {
  if (!(failure instanceof Rejected)) return failure.problems;
  return [{ code: 'rejected', reason: failure.message }];
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

function heldAsIn({ plan, review: { heldAs } }: RunState): Pick<Summary, 'heldAs'> {
  return heldAs === undefined || heldAs === plan?.hash ? {} : { heldAs };
}
