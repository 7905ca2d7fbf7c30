/**
 * Sends what is planned, journaled: `sent` is on disk before the request leaves, and the recorded
 * state moves in the same transaction as `acked`.
 */
import type { LimitFunction } from 'p-limit';
import { isStatedOptOut, type JournaledChange } from '../model/change.ts';
import { Held } from '../model/errors.ts';
import type { Key } from '../model/record.ts';
import type { Kind, Known, Outcome } from '../kind/kind.ts';
import type { Brake } from './brake.ts';
import { decideAgain, longestDelayMs, wishOf, type Knowledge } from './decide.ts';
import { each } from './each.ts';
import type { Run } from './mirror.ts';
import type { Tally } from './tally.ts';

export interface Applying {
  run: Run;
  kind: Kind;
  known: Knowledge;
  brake: Brake;
  tally: Tally;
  /** What is looked at again goes through here, one after the other. */
  again: LimitFunction;
  /** Puts what was decided before the guards. */
  sift(): void;
  /** How many changes the plan holds. */
  planned: number;
}

const peopleAtOnce = 32;
const pageOfKeys = 500;
/** Knowledge of this run counts for so long; what is older is looked at again before an opt-in. */
const freshMs = 15 * 60_000;

export async function apply(applying: Applying): Promise<void> {
  for (const phase of applying.kind.phases) {
    await each(plannedKeys(applying, phase), peopleAtOnce, (key) => applyTo(applying, phase, key));
  }
}

function* plannedKeys({ run, kind, brake }: Applying, phase: number): Generator<Key> {
  const part = { run: run.id, kind: kind.name, phase };
  let after = '';
  for (;;) {
    const keys = run.snapshot.journal.plannedKeys(part, after, pageOfKeys);
    for (const key of keys) {
      if (run.stop.aborted || brake.stopped()) return;
      yield key;
    }
    if (keys.length === 0) return;
    after = keys.at(-1) ?? after;
  }
}

/**
 * The changes of one record, one after the other. What one of them learns ends the plan of the
 * rest; a creation that shows what it brought along is decided upon again at once, so that nobody
 * stays subscribed to what the CRM forbids.
 */
async function applyTo(applying: Applying, phase: number, key: Key): Promise<void> {
  const { run, kind } = applying;
  const part = { run: run.id, kind: kind.name };
  const first = run.snapshot.journal.planned({ ...part, phase }, key);
  if (!(await sendAll(applying, first))) return;
  decideAgain(applying, key);
  for (const next of kind.phases) {
    await sendAll(applying, run.snapshot.journal.planned({ ...part, phase: next }, key), true);
  }
}

/**
 * Answers whether the record is to be decided upon again. `urgent`: opt-outs are sent also when the
 * run was asked to stop.
 */
async function sendAll(
  applying: Applying,
  changes: readonly JournaledChange[],
  urgent = false,
): Promise<boolean> {
  const { run, kind, brake, known } = applying;
  for (const [at, planned] of changes.entries()) {
    const stays = urgent && isStatedOptOut(planned);
    if ((run.stop.aborted && !stays) || brake.stopped()) return false;
    if (brake.holds(kind, planned)) continue;
    const change = aimed(applying, planned);
    if (change.target === undefined && change.op !== 'create') {
      // Nothing was read, so nothing is concluded: least of all that the person is absent.
      drop(run, [change], 'its creation did not come to pass');
      continue;
    }
    if (change.op === 'delete' && !(await known.still())) {
      drop(run, [change], 'the source has changed since it was read');
      continue;
    }
    const outcome = await attempt(applying, change, stays ? run.abort : run.stop);
    brake.note(kind, change, outcome);
    settle(applying, change, outcome);
    const brought = outcome.is === 'acked' && change.op === 'create' && outcome.observed;
    if (outcome.is !== 'stale' && outcome.is !== 'unknown' && !brought) continue;
    drop(run, changes.slice(at + 1));
    return Boolean(brought);
  }
  return false;
}

/** What will not be sent, since what it was planned on no longer holds. */
function drop(
  { snapshot, clock }: Run,
  changes: readonly JournaledChange[],
  reason: string | null = null,
) {
  snapshot.transaction(() => {
    for (const { seq } of changes) snapshot.journal.move(seq, 'stale', { at: clock.now(), reason });
  });
}

/** What follows a creation was planned before its record had an id. */
export function aimed({ run, kind }: Applying, change: JournaledChange): JournaledChange {
  if (change.op === 'create' || change.target !== undefined) return change;
  return { ...change, target: run.snapshot.recorded.get(kind.name, change.key)?.id };
}

/**
 * Looked at where what is known is too old, then sent. What has waited for the budget until its
 * knowledge is too old does not leave: it is looked at again, in single file, since many would grow
 * old together again.
 */
async function attempt(
  applying: Applying,
  change: JournaledChange,
  stop: AbortSignal,
): Promise<Outcome> {
  const first = await tryOnce(applying, change, stop);
  if (first !== 'too old') return first;
  return applying.again(async () => {
    for (;;) {
      const next = await tryOnce(applying, change, stop);
      if (next !== 'too old') return next;
    }
  });
}

/** `sent` is written at the very moment the request leaves: until then nothing has happened. */
async function tryOnce(
  applying: Applying,
  change: JournaledChange,
  stop: AbortSignal,
): Promise<Outcome | 'too old'> {
  const { run, kind, brake } = applying;
  const known = knownOf(applying, change);
  if (!known.fresh && brake.blinds(kind, change)) {
    return { is: 'held', why: 'it cannot be looked at before it is sent' };
  }
  const provenAt = known.fresh ? known.at : run.clock.now();
  const looked = await kind.look(change, known);
  if (looked) return looked.is === 'unknown' ? { is: 'unsent', why: looked.why } : looked;
  let isOld = false;
  const outcome = await kind.send(change, {
    signal: stop,
    abort: run.abort,
    leaves() {
      if (stop.aborted || brake.holds(kind, change)) throw new Held('stopped before it left');
      isOld = change.op !== 'opt_out' && !isFresh(run, provenAt);
      if (isOld) throw new Held('what is known of it has become too old');
      const { journal, transaction } = run.snapshot;
      transaction(() => journal.move(change.seq, 'sent', { at: run.clock.now() }));
    },
  });
  return outcome.is === 'held' && isOld ? 'too old' : outcome;
}

/** When this run was last shown the record. Earlier runs had clocks of their own. */
function knownOf({ run, kind, known }: Applying, change: JournaledChange): Known & { at: number } {
  const { recorded, staging } = run.snapshot;
  const listed = known.listing?.complete ? known.listing.at : 0;
  const looked = staging.lookedAt(kind.name, change.key);
  const alone = typeof looked === 'number' ? looked : 0;
  const sighted = change.op === 'create' ? 0 : (staging.sightedAt(kind.name, change.key) ?? 0);
  const at = Math.max(listed, alone, sighted);
  const before = recorded.get(kind.name, change.key);
  const partial = known.listing?.complete === false && alone === 0;
  return { recorded: before, fresh: isFresh(run, at), partial, at, signal: run.abort };
}

/** Seen in this run, and not too long ago. */
export function isFresh(run: Run, at: number): boolean {
  return at >= run.startedAt && run.clock.now() - at < freshMs;
}

/**
 * What an outcome means for the journal, the recorded state, the problems and the rest of the run.
 */
export function settle(applying: Applying, change: JournaledChange, outcome: Outcome): void {
  const { run, kind } = applying;
  const { journal } = run.snapshot;
  const at = run.clock.now();
  run.snapshot.transaction(() => {
    if (outcome.is === 'acked') acknowledge(applying, change, outcome);
    else if (outcome.is === 'rejected') reject(applying, change, outcome);
    else if (outcome.is === 'stale') {
      journal.move(change.seq, 'stale', { at, reason: outcome.why });
      relearn(applying, outcome.about ?? change.key, outcome.observed);
      run.snapshot.narrowing.add(kind.name, change.key);
    } else if (outcome.is === 'unknown') {
      journal.move(change.seq, 'unknown', { at, reason: outcome.why });
    } else journal.move(change.seq, 'planned', { at });
  });
  applying.tally.settled(kind, change, outcome);
  const done = applying.tally.settledCount(kind.name);
  const of = Math.max(done, applying.planned);
  run.progress({ stage: 'applying', kind: kind.name, done, of });
}

function acknowledge(
  applying: Applying,
  change: JournaledChange,
  outcome: Extract<Outcome, { is: 'acked' }>,
): void {
  const { run, kind } = applying;
  const { journal, recorded, problems } = run.snapshot;
  const at = run.clock.now();
  const row = kind.acknowledge(recorded.get(kind.name, change.key), change, { ...outcome, at });
  if (outcome.undone) journal.move(change.seq, 'stale', { at, reason: 'taken back since' });
  else journal.move(change.seq, 'acked', { at });
  if (row?.seenAt === at) run.snapshot.staging.addSighted(kind.name, change.key, at);
  if (row) recorded.put(row);
  else recorded.drop(kind.name, change.key);
  problems.drop(change);
}

/**
 * Parked until the record changes; an opt-out is tried again after 1, 2, 4 … hours, at most daily.
 */
function reject(
  applying: Applying,
  change: JournaledChange,
  outcome: Extract<Outcome, { is: 'rejected' }>,
): void {
  const { run, kind } = applying;
  const { journal, problems, staging } = run.snapshot;
  const at = run.clock.now();
  const { reason, fix } = outcome;
  const problem = {
    kind: kind.name,
    key: change.key,
    class: 'rejected' as const,
    part: change.part,
    target: change.target,
  };
  const before = problems.get(problem);
  const attempts = (before?.attempts ?? 0) + 1;
  const delay = Math.min(longestDelayMs, 3_600_000 * 2 ** (attempts - 1));
  journal.move(change.seq, 'rejected', { at, reason, fix });
  problems.put({
    ...problem,
    reason,
    fix,
    attempts,
    retryAt: change.op === 'opt_out' ? at + delay : undefined,
    desired: wishOf(staging.desired(kind.name, change.key)),
    since: before?.since ?? at,
    run: run.id,
  });
}

/** What was read just now replaces what was listed, and the record is decided upon again. */
function relearn(
  { run, kind }: Applying,
  key: Key,
  observed: Extract<Outcome, { is: 'stale' }>['observed'],
): void {
  const { staging, narrowing } = run.snapshot;
  staging.forgetObserved(kind.name, key);
  for (const row of observed) staging.addObserved(row, key);
  staging.addLooked(kind.name, key, run.clock.now());
  narrowing.add(kind.name, key);
}
