/** How a run begins and ends in the snapshot, and the summary it leaves. */
import { Interrupted } from '../model/errors.ts';
import type { Key, KindName } from '../model/record.ts';
import type { Counts } from '../plan/plan.ts';
import { createBrake } from './brake.ts';
import { weekMs } from '../plan/guard.ts';
import { approvalsOf, settleGuards } from './approval.ts';
import type { Clock } from '../model/clock.ts';
import type { Course } from './course.ts';
import { leaveOvertaken } from './decide.ts';
import { isRecord, modeName, onlyKey, type Mirror, type Run, type RunOptions } from './mirror.ts';
import { overtakenIn } from './overtaken.ts';
import { openIn } from './recover.ts';
import { shownCounts, type KindSummary, type Status, type Summary } from '../plan/summary.ts';
import { bindLedger } from './ledger.ts';
import { keepLimits } from './foresee.ts';
import { holds, quarantineOf, sayQuarantine, settleQuarantine } from './quarantine.ts';
import { knowledgeNamed } from './states.ts';
import { createTally } from './tally.ts';
import { throughout } from './throughout.ts';
import { leaveCursors, takeCursors } from './cursor.ts';
import { gatherIn } from './together.ts';
import { noteUnfinished, unfinishedIn } from './unfinished.ts';
import { sayUnfinished } from './unfinished-words.ts';
import { countHeld, guardClasses } from './withheld.ts';

export function begin(mirror: Mirror, options: RunOptions): Course {
  const { snapshot } = mirror;
  const clock = even(mirror.clock);
  const at = clock.now();
  const id = idOf(mirror, at);
  const quarantine = quarantineOf(snapshot.meta);
  const isHeld = holds(quarantine, at);
  const quarantined = isHeld && options.writes;
  const together = gatherIn(snapshot, clock);
  const run: Run = { ...mirror, ...options, clock, id, startedAt: at, quarantined, together };
  const parts = mirror.parts.filter(
    ({ kind }) => !options.only || options.only === `${kind.name}s`,
  );
  snapshot.staging.clear();
  snapshot.narrowing.clear();
  const others = mirror.beside.others(id);
  const isAlone = onlyKey(options) !== undefined;
  const start = (): Course['since'] => {
    let isLeft = false;
    for (const { kind } of parts) {
      snapshot.journal.doubt(kind.name, others);
      if (!isAlone && snapshot.journal.abandon(kind.name, at, others) > 0) isLeft = true;
    }
    snapshot.runs.start({ id, mode: modeName(options.mode), at });
    const since = takeCursors(mirror, parts, options);
    // Somebody was left behind in the middle, whose record may never change again.
    return isLeft ? new Map() : since;
  };
  if (options.writes) bindLedger(run);
  const since = options.writes ? snapshot.transaction(start) : takeCursors(mirror, parts, options);
  const approvals = approvalsOf(run);
  // Last: what is begun has to end.
  mirror.beside.begin(id, isAlone ? 'one' : 'all');
  return {
    run,
    parts,
    begun: parts,
    since,
    isEvent: isRecord(options.mode),
    taken: undefined,
    tally: createTally(snapshot),
    brake: createBrake(),
    known: new Map(),
    reasons: quarantined ? [sayQuarantine(quarantine)] : [],
    notes:
      isHeld && !quarantined ? [...mirror.notes, sayQuarantine(quarantine)] : [...mirror.notes],
    plan: undefined,
    forecast: undefined,
    sliceEndsAt: 0,
    failure: undefined,
    approvals,
    held: new Map(),
    population: {},
    rounds: 0,
  };
}

/** Of runs about one person there may be many in a second. */
function idOf({ snapshot, random }: Mirror, at: number): string {
  const stamp = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
  for (;;) {
    const own = Math.floor(random() * 0x10000);
    const id = `${stamp}-${own.toString(16).padStart(4, '0')}`;
    if (!snapshot.runs.get(id)) return id;
  }
}

/** Within a run time goes on evenly, whatever is done to the machine's clock. */
function even({ now, monotonic, sleep }: Clock): Clock {
  const offset = now() - monotonic();
  return { now: () => Math.round(offset + monotonic()), monotonic, sleep };
}

export async function conclude(course: Course): Promise<Summary> {
  const { run } = course;
  if (run.writes) {
    settleQuarantine(course);
    await keepOrigins(course);
  }
  // From here on nothing waits: what is written agrees with what it says of itself.
  leaveOvertaken(run);
  // Who was decided upon again may have been the last of those who were told about.
  const held = countHeld(run.snapshot.guarding);
  course.tally.released(guardClasses.filter((of) => held[of] === 0));
  const people = course.parts.find(({ kind }) => kind.erase);
  if (run.writes && run.mode === 'full' && people) noteUnfinished(run, people.kind);
  const summary = summaryOf(course);
  if (run.writes) run.snapshot.transaction(() => keep(course, summary));
  return summary;
}

function keep(course: Course, summary: Summary): void {
  const { run } = course;
  const { runs, journal } = run.snapshot;
  const { id } = run;
  const at = run.clock.now();
  keepProblems(course, at);
  const { problems: _, ...kept } = summary;
  const { status, plan } = summary;
  // Most events change nothing, and nobody wants to read of them.
  const isIdle = course.isEvent && status === 'done' && journal.tally(id).length === 0;
  if (isIdle) runs.drop(id);
  else runs.finish({ id, status, plan, summary: JSON.stringify(kept), at });
  settleGuards(course);
  leaveCursors(course, status);
  keepLimits(run.snapshot.meta, run.limits(), at);
  if (onlyKey(run) === undefined) prune(run, at);
}

function keepProblems({ run, parts, known, plan }: Course, at: number): void {
  const { problems } = run.snapshot;
  const only = onlyKey(run);
  for (const { kind } of parts) {
    problems.adopt(kind.name, run.id, at);
    const others = overtakenIn(run, kind);
    const knowledge = known.get(kind);
    if (!knowledge?.certified) continue;
    const { whole } = knowledge;
    if (only === undefined && whole) problems.dropUnnamed(kind.name, others);
    if (plan) problems.forgetUnnoticed(kind.name, run.id, only ?? { but: others, whole });
  }
}

/** Looks through all that is kept: not for the sake of one person. */
function prune({ snapshot: { runs, journal, held }, keepMs }: Run, at: number): void {
  // Guards count what happened in the last seven days.
  const before = at - Math.max(keepMs, weekMs);
  runs.prune(at - keepMs);
  journal.prune(before);
  held.prune(before);
}

/** What a certified reading says of ids holds, whatever becomes of the run. */
async function keepOrigins({ run, parts, known }: Course): Promise<void> {
  const { recorded, spans, transaction } = run.snapshot;
  for (const { kind } of parts) {
    if (!known.get(kind)?.certified) continue;
    await throughout(run, spans.ofStrangeIds(kind.name), (span) => {
      transaction(() => recorded.adoptOrigins(kind.name, span));
    });
  }
}

function summaryOf(course: Course): Summary {
  const { run, tally, parts } = course;
  const contact = kindSummary(course, 'contact');
  const template = kindSummary(course, 'template');
  const reasons = reasonsOf(course);
  const erasures = unfinishedIn(run.snapshot);
  const unfinished = erasures.length > 0 && parts.some(({ kind }) => kind.erase);
  return {
    run: run.id,
    mirror: run.name,
    status: statusOf(course, reasons, unfinished),
    mode: modeName(run.mode),
    only: run.only ?? null,
    plan: course.plan?.hash ?? '',
    contacts: { ...contact, held: countHeld(run.snapshot.guarding) },
    templates: template,
    requests: run.requests(),
    forecast: course.forecast ?? null,
    certificate: certificateOf(course),
    problems: tally.problems(),
    reasons: [...reasons, ...course.notes, ...(unfinished ? [sayUnfinished(erasures)] : [])],
    known: tally.counts().known,
    ms: run.clock.now() - run.startedAt,
  };
}

function kindSummary(course: Course, kind: KindName): KindSummary & { invalid: number } {
  const { run, tally, plan } = course;
  const { staging } = run.snapshot;
  const adopt = tally.counts().adopted[kind];
  const { planned, acked } = journaled(course, kind);
  const changes = run.writes ? planned : (plan?.changes[kind] ?? {});
  const only = onlyKey(run);
  const sizes = only === undefined ? sizesOf(course, kind) : sizesOfOne(run, kind, only);
  const { desired, observed, invalid, parked } = sizes;
  return {
    desired,
    observed,
    changes: shownCounts(kind, { ...changes, adopt }, 'changes'),
    applied: shownCounts(kind, acked, 'applied'),
    rejected: parked + staging.countNoticed(kind, 'rejected'),
    conflicts: staging.countNoticed(kind, 'conflict'),
    invalid,
  };
}

function sizesOf({ run, known }: Course, kind: KindName) {
  const { staging, recorded, problems } = run.snapshot;
  const { sizes, listing } = knowledgeNamed(known, kind);
  const { valid, invalid } = sizes;
  const observed = listing ? staging.countObserved(kind) : recorded.count(kind);
  return { desired: valid, observed, invalid, parked: problems.countParked(kind) };
}

/** A single run counts the person it is about, whatever else was read for it. */
function sizesOfOne({ snapshot }: Run, kind: KindName, key: Key) {
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
function journaled({ run }: Course, kind: KindName): { planned: Counts; acked: Counts } {
  const planned: Counts = {};
  const acked: Counts = {};
  for (const { kind: of, op, state, n } of run.snapshot.journal.tally(run.id)) {
    if (of !== kind) continue;
    if (state !== 'stale') planned[op] = (planned[op] ?? 0) + n;
    if (state === 'acked') acked[op] = (acked[op] ?? 0) + n;
  }
  for (const { op, n } of run.snapshot.guarding.withheldOps(kind)) {
    planned[op] = (planned[op] ?? 0) + n;
  }
  return { planned, acked };
}

function reasonsOf(course: Course): string[] {
  const { run, brake, failure, parts } = course;
  const reasons = [...course.reasons, ...brake.reasons()];
  if (failure && !(failure instanceof Interrupted)) reasons.push(failure.message);
  if (!run.writes) return reasons;
  const unknown = parts.flatMap(({ kind }) => openIn(run, kind.name)).length;
  if (unknown > 0) {
    reasons.push(
      `the outcome of ${unknown} changes is not known yet → the next run reads what became of them`,
    );
  }
  const unsent = run.snapshot.journal
    .tally(run.id)
    .reduce((sum, { state, n }) => sum + (state === 'planned' ? n : 0), 0);
  if (unsent > 0 && !run.stop.aborted) {
    reasons.push(`${unsent} changes were not sent → the next run plans them again`);
  }
  return reasons;
}

/** An erasure that is not done is as loud as an opt-out that could not be applied. */
function statusOf({ run, tally, failure }: Course, reasons: string[], unfinished: boolean): Status {
  const held = countHeld(run.snapshot.guarding);
  if (reasons.length > 0) return 'failed';
  if (failure || run.stop.aborted) return 'interrupted';
  if (held.delete + held.opt_in > 0) return 'held';
  const { news, optOutsFailed } = tally.counts();
  return news > 0 || optOutsFailed > 0 || (unfinished && run.writes) ? 'rejected' : 'done';
}

function certificateOf({ known }: Course): Summary['certificate'] {
  const all = [...known.values()];
  const listings = all.flatMap(({ listing }) => listing ?? []);
  return {
    source: all.length === 0 ? null : all.every(({ certified }) => certified),
    platform: listings.length === 0 ? null : listings.every(({ complete }) => complete),
  };
}
