/**
 * Makes the decisions for the candidates of one record type by its rules, and stages the results.
 */
import type { Change } from '../../domain/change.ts';
import type { Key, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import type { Decision, RecordType, States } from '../../records/record-type.ts';
import { commitNow } from './commit-plan.ts';
import { keptBackBy, type RunGate, type RunGateFacts } from './run-gates.ts';
import { latestByPlatform } from '../context/platform-knowledge.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { displayNameOf, identityOf, noListChanges } from '../context/person-identity.ts';
import type { Findings } from '../context/run-state.ts';
import { statesOf } from '../read/record-states.ts';
import type { Parked } from '../../store/tables/known-problems.ts';
import type { RunTally } from '../context/run-tally.ts';
import type { UndoneRun } from '../context/undo-run.ts';
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

/** The number of decisions that can be made before other tasks need a turn. */
const pageOfKeys = 100;

/**
 * Makes the decisions for all candidates. If a change of a record has no known outcome, only
 * opt-outs are planned for that record.
 */
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
  const { staging } = run.snapshot;
  const states = statesOf(run, type, { key, known });
  const decision = decisionOf(run, type, states);
  if (!decision) return 0;
  const name = displayNameOf(run.snapshot.meta, key, states);
  staging.forgetNoticed(type.name, name);
  run.snapshot.guarded.forget(type.name, key);
  run.snapshot.guarded.deferred.forget(type.name, key);
  for (const problem of decision.problems) {
    tally.notice(name === key ? problem : { ...problem, key: name });
  }
  const news = decision.changes.length > 0 || differs(decision.note, states.recorded);
  if (decision.note && news) staging.addNoted(decision.note, isAlone(states, decision));
  const { adds, ends } = decision.news ?? noListChanges;
  if (adds.length + ends.length > 0) {
    run.snapshot.listNews.add({ ...identityOf(run, type, key), adds, ends });
  }
  for (const old of decision.forgets) staging.addForgotten(type.name, old);
  if (decision.adopts) tally.adopted(type.name);
  for (const stop of decision.stoppedBy ?? []) tally.stopped(stop);
  const { changes } = decision;
  const refused = run.undo ? [] : refusedOf(run, tally, { type, states, changes });
  const facts = { open: [], refused, isQuarantined: run.quarantined };
  return plan(deciding, states, { changes, facts });
}

/**
 * Returns the decision about a record. If the run undoes another, that is the inverse of what the
 * other did, and undefined for all other records.
 */
function decisionOf(run: RunContext, type: RecordType, states: States): Decision | undefined {
  const { undo } = run;
  if (!undo) return type.decide(states);
  const changes = undo.changesOf(type.name, states.key);
  if (changes.length === 0) return undefined;
  const at = undo.lastAt(type.name, states.key);
  const doneAt = at === undefined ? undefined : latestByPlatform(run, at);
  const { decision, cannot } = type.undo(states, { run: undo.run, changes, doneAt });
  undo.note({ kind: type.name, key: states.key }, cannot);
  return decision;
}

/** Stages the changes that pass the gates of the run. Returns their number. */
function plan(
  { run, onKeptBack }: Deciding,
  { desired }: States,
  { changes, facts }: { changes: readonly Change[]; facts: RunGateFacts },
): number {
  const planned = changes.filter((change) => {
    const gate = keptBackBy(change, facts);
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

/**
 * Returns whether the decision concerns no other record. The contact that the record formerly had
 * on the platform may now belong to another record.
 */
function isAlone({ recorded, former, successors }: States, { note, forgets }: Decision): boolean {
  const isSame = !recorded || recorded.id === note?.id;
  return isSame && former.length + successors.length + forgets.length === 0;
}

/**
 * Plans only opt-outs for a record with a change whose outcome is unknown. What is observed may be
 * our own doing, so nothing is concluded from it.
 */
function decideUnknown(deciding: Deciding, key: Key): void {
  const { run, type, known } = deciding;
  if (run.undo) return noteOpen(run.undo, type.name, key);
  const open = run.snapshot.journal.open(type.name).filter((change) => change.key === key);
  const states = statesOf(run, type, { key, known });
  const { changes } = type.decide(states);
  const facts = { open, refused: [], isQuarantined: run.quarantined };
  plan(deciding, states, { changes, facts });
}

/** Notes that nothing of a record is undone while the outcome of a change to it is unknown. */
function noteOpen(undo: UndoneRun, kind: RecordTypeName, key: Key): void {
  const reason = 'the outcome of a change to this record is not known yet: run `crm-mirror sync`';
  const cannot = undo.changesOf(kind, key);
  undo.note(
    { kind, key },
    cannot.map(({ op, part }) => ({ op, part, rule: 'outcome-open', reason })),
  );
}

/**
 * Joins the fingerprints of the desired rows. A refused change is tried again when this value
 * changes.
 */
export function desiredFingerprint(desired: readonly { fingerprint: string }[]): string {
  const all = desired.map((row) => row.fingerprint);
  return all.toSorted().join(' ');
}

/**
 * Returns the refused changes that may not be sent again yet. Each waits until its record changes
 * or, for an opt-out, until its delay is over. Deletes the refusal of a change that is no longer
 * planned.
 */
function refusedOf(run: RunContext, tally: RunTally, { type, states, changes }: Decided): Change[] {
  const { problems } = run.snapshot;
  const wish = desiredFingerprint(states.desired);
  const waiting: Change[] = [];
  for (const parked of problems.parked(type.name, states.key)) {
    const change = changes.find(
      ({ part, target = '' }) => part === parked.part && target === parked.target,
    );
    const waits =
      change?.op === 'opt_out' ? isEarly(parked, run.clock.now()) : parked.desired === wish;
    if (change && waits) {
      waiting.push(change);
      tally.parked(change, parked);
    } else if (!change && run.writes && isOver(parked, states, wish)) problems.drop(parked);
  }
  return waiting;
}

/**
 * Returns whether it is too early for a retry. A time beyond the longest delay was written by a
 * wrong clock.
 */
function isEarly({ retryAt = 0 }: Parked, now: number): boolean {
  return retryAt > now && retryAt - now <= retrySchedules.rejectedOptOut.longestMs;
}

/**
 * Returns whether a refusal is obsolete. A refusal is not obsolete merely because the record is
 * absent from this listing.
 */
function isOver(parked: Parked, { sight }: States, wish: string): boolean {
  return sight === 'listed' || parked.desired !== wish;
}

interface Decided {
  type: RecordType;
  states: States;
  changes: Change[];
}

/** Returns whether a note contains anything new. */
function differs(note: RecordedRow | undefined, recorded: RecordedRow | undefined): boolean {
  if (!note) return false;
  return (
    !recorded ||
    note.id !== recorded.id ||
    note.ownership !== recorded.ownership ||
    note.body !== recorded.body ||
    note.shown !== recorded.shown ||
    note.desired !== recorded.desired
  );
}
