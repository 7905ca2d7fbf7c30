/**
 * Makes the decisions for the candidates of one record type by its rules, and stages the results.
 */
import type { Change, JournaledChange } from '../../domain/change.ts';
import type { Key } from '../../domain/record.ts';
import type { Decision, RecordType, States } from '../../records/record-type.ts';
import { commitNow } from './commit-plan.ts';
import { keptBackBy, type RunGate } from './run-gates.ts';
import { latestByPlatform } from '../context/platform-knowledge.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { displayNameOf, identityOf, noListChanges } from '../context/person-identity.ts';
import type { Findings } from '../context/run-state.ts';
import { statesOf } from '../read/record-states.ts';
import type { RunTally } from '../context/run-tally.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';

interface Deciding {
  run: RunContext;
  type: RecordType;
  known: Findings;
  tally: RunTally;
  /** Called for every change that a gate of the run withholds. */
  onKeptBack?: ((change: Change, gate: RunGate) => void) | undefined;
}

const pageOfKeys = 100;
const recordedFields = ['id', 'ownership', 'body', 'shown', 'desired'] as const;

/** Decides about all candidates. While a change has no known outcome, only opt-outs are planned. */
export async function decideChanges(deciding: Deciding): Promise<void> {
  const { run, type } = deciding;
  const { candidates, journal } = run.snapshot;
  const open = new Set(journal.open(type.name).map(({ key }) => key));
  let done = 0;
  const pages = pagesOf((last: Key = '') => candidates.next(type.name, last, pageOfKeys));
  for await (const keys of inTurns(run, pages)) {
    const superseded = new Set(supersededKeys(run, type));
    run.snapshot.stage(() => {
      for (const key of keys) {
        if (superseded.has(key)) continue;
        if (open.has(key)) decideUnknown(deciding, key);
        else decideOne(deciding, key);
      }
    });
    done += keys.length;
    run.progress({ stage: 'deciding', kind: type.name, done, of: undefined });
  }
}

/**
 * Makes a new decision for one record immediately, based on its current recorded state, unless the
 * record is already as desired. `review` applies the guards. Returns whether anything is planned.
 */
export function decideAgain(
  deciding: Deciding,
  { key, isSettled, review }: { key: Key; isSettled: boolean; review(): void },
): boolean {
  const { run, type } = deciding;
  const { staging, stage } = run.snapshot;
  let planned = 0;
  staging.assume(type.name, key);
  if (isSettled) return false;
  stage(() => (planned = decideOne(deciding, key)));
  if (planned > 0) review();
  commitNow(run);
  return planned > 0;
}

/** Makes the decision for one record. Returns the number of planned changes. */
function decideOne(deciding: Deciding, key: Key): number {
  const { run, type, known, tally } = deciding;
  const { undo } = run;
  const { staging, guarded, meta, listNews } = run.snapshot;
  const states = statesOf(run, type, { key, known });
  let decision: Decision;
  if (undo) {
    // The run plans the inverse of what another did, and nothing for all other records.
    const changes = undo.changesOf(type.name, key);
    if (changes.length === 0) return 0;
    const at = undo.lastAt(type.name, key);
    const doneAt = at === undefined ? undefined : latestByPlatform(run, at);
    const undone = type.undo(states, { run: undo.run, changes, doneAt });
    undo.note({ kind: type.name, key }, undone.cannot);
    ({ decision } = undone);
  } else decision = type.decide(states);
  const { changes, note, forgets, problems, news = noListChanges } = decision;
  const { recorded, former, successors } = states;
  const name = displayNameOf(meta, key, states);
  staging.forgetNoticed(type.name, name);
  guarded.forget(type.name, key);
  guarded.deferred.forget(type.name, key);
  for (const problem of problems) tally.notice(name === key ? problem : { ...problem, key: name });
  const isNews = recordedFields.some((field) => note?.[field] !== recorded?.[field]);
  if (note && (changes.length > 0 || isNews)) {
    // The contact that the record formerly had on the platform may now belong to another record.
    const isSame = !recorded || recorded.id === note.id;
    const isAlone = isSame && former.length + successors.length + forgets.length === 0;
    staging.addNoted({ ...note, alone: isAlone });
  }
  const { adds, ends } = news;
  if (adds.length + ends.length > 0) {
    listNews.add({ ...identityOf(run, type, key), adds, ends });
  }
  for (const old of forgets) staging.addForgotten(type.name, old);
  if (decision.adopts) tally.adopted(type.name);
  for (const stop of decision.stoppedBy ?? []) tally.stopped(stop);
  const refused = undo ? [] : findRefused(deciding, states, changes);
  return stageChanges(deciding, states, { changes, open: [], refused });
}

/** Stages the changes that pass the gates of the run. Returns their number. */
function stageChanges(
  { run, onKeptBack }: Deciding,
  { desired }: States,
  {
    changes,
    ...facts
  }: { changes: readonly Change[]; open: JournaledChange[]; refused: readonly Change[] },
): number {
  const planned = changes.filter((change) => {
    const gate = keptBackBy(change, { ...facts, isQuarantined: run.quarantined });
    if (gate) onKeptBack?.(change, gate);
    return gate === undefined;
  });
  const records = planned.length > 0 ? desiredFingerprint(desired) || undefined : undefined;
  for (const change of planned) {
    const { why } = change;
    run.snapshot.staging.addPlanned(why ? { ...change, why: { ...why, records } } : change);
  }
  return planned.length;
}

/** Plans opt-outs only: while an outcome is unknown, what is observed may be our own doing. */
function decideUnknown(deciding: Deciding, key: Key): void {
  const { run, type, known } = deciding;
  if (run.undo) {
    const reason = 'the outcome of a change to this record is not known yet: run `crm-mirror sync`';
    const cannot = run.undo.changesOf(type.name, key);
    run.undo.note(
      { kind: type.name, key },
      cannot.map(({ op, part }) => ({ op, part, rule: 'outcome-open', reason })),
    );
    return;
  }
  const open = run.snapshot.journal.open(type.name).filter((change) => change.key === key);
  const states = statesOf(run, type, { key, known });
  const { changes } = type.decide(states);
  stageChanges(deciding, states, { changes, open, refused: [] });
}

/** Joins the fingerprints of the rows. A refused change is tried again when this changes. */
export function desiredFingerprint(desired: readonly { fingerprint: string }[]): string {
  const all = desired.map((row) => row.fingerprint);
  return all.toSorted().join(' ');
}

/**
 * Returns the refused changes that may not be sent again yet. Each waits until its record changes
 * or, for an opt-out, until its delay is over. Deletes the refusal of a change that is no longer
 * planned, but not merely because the record is absent from this listing.
 */
function findRefused(
  { run, type, tally }: Deciding,
  { key, desired, sight }: States,
  changes: readonly Change[],
): Change[] {
  const { problems } = run.snapshot;
  const { longestMs } = retrySchedules.rejectedOptOut;
  const now = run.clock.now();
  const wanted = desiredFingerprint(desired);
  const waiting: Change[] = [];
  for (const parked of problems.parked(type.name, key)) {
    const change = changes.find(
      ({ part, target = '' }) => part === parked.part && target === parked.target,
    );
    const { retryAt = 0 } = parked;
    // A time beyond the longest delay was written by a wrong clock.
    const isEarly = retryAt > now && retryAt - now <= longestMs;
    const isSame = parked.desired === wanted;
    if (change && (change.op === 'opt_out' ? isEarly : isSame)) {
      waiting.push(change);
      tally.parked(change, parked);
    } else if (!change && run.writes && (sight === 'listed' || !isSame)) problems.drop(parked);
  }
  return waiting;
}
