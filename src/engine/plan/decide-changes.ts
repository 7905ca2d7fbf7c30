/** Decides the candidates of one record type by its rules, and stages what comes of it. */
import { type Change, isStatedOptOut } from '../../domain/change.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { Decision, RecordType, States } from '../../records/record-type.ts';
import { commitNow } from './commit-plan.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { displayNameOf, identityOf, noListChanges } from '../context/person-identity.ts';
import type { Findings } from '../context/run-findings.ts';
import { statesOf } from '../read/record-states.ts';
import type { Parked } from '../../snapshot/tables/known-problems.ts';
import type { RunTally } from '../context/run-tally.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';

interface Deciding {
  run: RunContext;
  type: RecordType;
  known: Findings;
  tally: RunTally;
}

/** As many as can be decided before other tasks need a turn. */
const pageOfKeys = 100;

/** Decides all candidates. A change whose outcome is open keeps all but opt-outs of its record. */
export async function decideChanges({ run, type, known, tally }: Deciding): Promise<void> {
  const { candidates, journal } = run.snapshot;
  const open = new Set(journal.open(type.name).map(({ key }) => key));
  let after = '';
  let done = 0;
  for (;;) {
    const keys = candidates.next(type.name, after, pageOfKeys);
    if (keys.length === 0) return;
    const superseded = new Set(supersededKeys(run, type));
    run.snapshot.stage(() => {
      for (const key of keys) {
        if (superseded.has(key)) continue;
        if (open.has(key)) decideUnknown(run, type, { key, known });
        else decideOne(run, type, { key, known, tally });
      }
    });
    after = keys.at(-1) ?? after;
    done += keys.length;
    run.progress({ stage: 'deciding', kind: type.name, done, of: undefined });
    await run.clock.sleep(0);
  }
}

/**
 * Decides one record at once, by what is recorded of it now, unless it is as desired already.
 * `review` asks the guards. Returns whether anything is planned.
 */
export function decideAgain(
  { run, type, known, tally }: Deciding,
  { key, isSettled, review }: { key: Key; isSettled: boolean; review(): void },
): boolean {
  const { staging, stage } = run.snapshot;
  let planned = 0;
  staging.assume(type.name, key);
  if (isSettled) return false;
  stage(() => (planned = decideOne(run, type, { key, known, tally })));
  if (planned > 0) review();
  commitNow(run);
  return planned > 0;
}

/** Decides one record. Returns how many changes are planned. */
function decideOne(
  run: RunContext,
  type: RecordType,
  { key, known, tally }: { key: Key; known: Findings; tally: RunTally },
): number {
  const { staging } = run.snapshot;
  const states = statesOf(run, type, { key, known });
  const decision = type.decide(states);
  const name = displayNameOf(run.snapshot.meta, key, states);
  staging.forgetNoticed(type.name, name);
  run.snapshot.guarded.forget(type.name, key);
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
  const due = withoutParked(run, tally, { type, states, changes });
  const planned = run.quarantined ? due.filter(isStatedOptOut) : due;
  for (const change of planned) staging.addPlanned(change);
  return planned.length;
}

/**
 * Returns whether the decision concerns no other record. A contact that the record was on the
 * platform before may be another record now.
 */
function isAlone({ recorded, former, successors }: States, { note, forgets }: Decision): boolean {
  const isSame = !recorded || recorded.id === note?.id;
  return isSame && former.length + successors.length + forgets.length === 0;
}

/**
 * Plans opt-outs only for a record with a change whose outcome is not known: what is observed of it
 * may be our own doing, so nothing is concluded from it.
 */
function decideUnknown(run: RunContext, type: RecordType, at: { key: Key; known: Findings }): void {
  const { staging, journal } = run.snapshot;
  const open = journal.open(type.name).filter(({ key }) => key === at.key);
  const isOpen = ({ part, target }: Change) =>
    open.some(({ op, ...one }) => op === 'opt_out' && one.part === part && one.target === target);
  for (const change of type.decide(statesOf(run, type, at)).changes) {
    if (isStatedOptOut(change) && !isOpen(change)) staging.addPlanned(change);
  }
}

/** Joins the fingerprints of what is desired: a refused change is tried again when this changes. */
export function desiredFingerprint(desired: readonly { fingerprint: string }[]): string {
  const all = desired.map((row) => row.fingerprint);
  return all.toSorted().join(' ');
}

/**
 * Leaves out changes that the platform refused until the record changes, and refused opt-outs until
 * their delay is over. What follows a refused creation waits with it. Forgets the refusal of a
 * change that is no longer planned.
 */
function withoutParked(
  run: RunContext,
  tally: RunTally,
  { type, states, changes }: Decided,
): Change[] {
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
  const creates = waiting.some((change) => change.op === 'create');
  return changes.filter(
    (change) => !waiting.includes(change) && !(creates && change.target === undefined),
  );
}

/** Returns whether it is too early. A time beyond any delay was written by a wrong clock. */
function isEarly({ retryAt = 0 }: Parked, now: number): boolean {
  return retryAt > now && retryAt - now <= retrySchedules.rejectedOptOut.longestMs;
}

/** Returns whether a refusal is over: not if only this listing did not show the record. */
function isOver(parked: Parked, { sight }: States, wish: string): boolean {
  return sight === 'listed' || parked.desired !== wish;
}

interface Decided {
  type: RecordType;
  states: States;
  changes: Change[];
}

/** Returns whether a note says anything new. */
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
