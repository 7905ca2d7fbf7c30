/**
 * Sends what is planned, journaled: `sent` is on disk before the request leaves, and the recorded
 * state moves in the same transaction as `acked`.
 */
import { isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import { Held } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { SendOutcome } from '../../records/record-type.ts';
import { isFresh, isSuperseded, type RunContext } from '../context/run-context.ts';
import { type ApplyContext, isPastSlice, knownOf } from './apply-context.ts';
import { each } from '../context/work-in-parts.ts';
import { beginInFlight, endInFlight, isForbidden, rememberDeleted } from './in-flight.ts';
import { recordOutcome } from './record-outcome.ts';

const peopleAtOnce = 32;
const pageOfKeys = 500;

export async function apply(applying: ApplyContext): Promise<void> {
  for (const phase of applying.type.phases) {
    await each(planned(applying, phase), peopleAtOnce, async ([key, changes]) => {
      await applyTo(applying, key, changes).finally(() => endInFlight(applying, key));
    });
  }
}

/** Record by record: until its turn nobody else changes what is planned of one. */
async function* planned(
  applying: ApplyContext,
  phase: number,
): AsyncGenerator<[Key, JournaledChange[]]> {
  const { run, type, breaker, endsAt } = applying;
  const part = { run: run.id, kind: type.name, phase };
  let after = '';
  for (;;) {
    const page = run.snapshot.journal.plannedNext(part, after, pageOfKeys);
    for (const record of page) {
      if (run.stop.aborted || breaker.stopped() || run.clock.now() >= endsAt) return;
      yield record;
      [after] = record;
    }
    if (page.size === 0) return;
    // Where nothing may leave any more, nothing else would wait for anything.
    await run.clock.sleep(0);
  }
}

/**
 * The changes of one record, one after the other. What one of them learns ends the plan of the
 * rest; a creation that shows what it brought along is decided upon again at once, so that nobody
 * stays subscribed to what the CRM forbids.
 */
async function applyTo(
  applying: ApplyContext,
  key: Key,
  first: readonly JournaledChange[],
): Promise<void> {
  const { run, type } = applying;
  if (!(await sendAll(applying, first))) return;
  const part = { run: run.id, kind: type.name };
  for (const next of type.phases) {
    await sendAll(applying, run.snapshot.journal.planned({ ...part, phase: next }, key), true);
  }
}

/**
 * Answers whether the record was decided upon again, to some purpose. `urgent`: opt-outs are sent
 * also when the run was asked to stop.
 */
async function sendAll(
  applying: ApplyContext,
  changes: readonly JournaledChange[],
  urgent = false,
): Promise<boolean> {
  const { run, type, breaker } = applying;
  for (const [at, planned] of changes.entries()) {
    const stays = urgent && isStatedOptOut(planned);
    if ((run.stop.aborted && !stays) || breaker.stopped()) return false;
    if (breaker.holds(type, planned)) continue;
    const change = withTarget(applying, planned);
    if (change.target === undefined && change.op !== 'create') {
      // Nothing was read, so nothing is concluded: least of all that the person is absent.
      dropStale(run, [change], 'its creation did not come to pass');
      continue;
    }
    const outcome = await attempt(applying, change, stays ? run.abort : run.stop);
    if (typeof outcome === 'string') {
      // What the source says now is read by the next run: this one cannot decide upon it again.
      dropStale(run, [change], reasonOf[outcome]);
      continue;
    }
    breaker.note(type, change, outcome);
    const isMade = change.op === 'create';
    const brought = isMade && outcome.is === 'acked' && outcome.observed;
    // Other channels of a contact wait for nothing; those of one that may not be there have none.
    const isOpen = isMade && outcome.is === 'unknown';
    const ends = outcome.is === 'stale' || isOpen || Boolean(brought);
    let isPlanned = false;
    const follow = (isSettled: boolean): void => {
      if (ends) dropStale(run, changes.slice(at + 1));
      if (brought) isPlanned = applying.replan(change.key, isSettled);
    };
    await recordOutcome(applying, change, { outcome, follow });
    endInFlight(applying, change.key);
    if (ends) return isPlanned;
  }
  return false;
}

/** Why a change is left to another run. */
type Late = 'outdated' | 'superseded';
const reasonOf: Readonly<Record<Late, string>> = {
  outdated: 'the source has changed since it was read',
  superseded: 'another run brought this person in line meanwhile',
};

/** What will not be sent, since what it was planned on no longer holds. */
function dropStale(
  { snapshot, clock }: RunContext,
  changes: readonly JournaledChange[],
  reason: string | null = null,
) {
  if (changes.length === 0) return;
  snapshot.transaction(() => {
    for (const { seq } of changes) snapshot.journal.move(seq, 'stale', { at: clock.now(), reason });
  });
}

/** What follows a creation was planned before its record had an id. */
export function withTarget({ run, type }: ApplyContext, change: JournaledChange): JournaledChange {
  if (change.op === 'create' || change.target !== undefined) return change;
  return { ...change, target: run.snapshot.recorded.get(type.name, change.key)?.id };
}

/**
 * Looked at where what is known is too old, then sent. What has waited for the budget until its
 * knowledge is too old does not leave: it is looked at again, in single file, since many would grow
 * old together again.
 */
async function attempt(
  applying: ApplyContext,
  change: JournaledChange,
  stop: AbortSignal,
): Promise<SendOutcome | Late> {
  const first = await tryOnce(applying, change, stop);
  if (first !== 'too old') return first;
  return applying.oneByOne(async () => {
    for (;;) {
      const next = await tryOnce(applying, change, stop);
      if (next !== 'too old') return next;
    }
  });
}

/**
 * `sent` is written at the very moment the request leaves: until then nothing has happened. Whether
 * the source still calls for a delete is asked then, too: it may have waited for hours.
 */
async function tryOnce(
  applying: ApplyContext,
  change: JournaledChange,
  stop: AbortSignal,
): Promise<SendOutcome | 'too old' | Late> {
  const { run, type, breaker } = applying;
  const isOutdated = () => change.op === 'delete' && !applying.known.still();
  if (isOutdated()) return 'outdated';
  if (isSuperseded(run, type, change.key)) return 'superseded';
  const known = knownOf(applying, change);
  if (!known.fresh && breaker.blinds(type, change)) {
    return { is: 'held', why: 'it cannot be looked at before it is sent' };
  }
  const provenAt = known.fresh ? known.at : run.clock.now();
  const looked = await type.look(change, known);
  if (looked) {
    // What comes of it is written: not while another run is at her.
    if (!beginInFlight(applying, change.key)) return 'superseded';
    return looked.is === 'unknown' ? { is: 'unsent', why: looked.why } : looked;
  }
  let late: 'too old' | Late | undefined;
  let isBarred = false;
  const outcome = await type.send(change, {
    signal: stop,
    abort: run.abort,
    seen: known.fresh,
    facts: run.facts.known,
    recorded: () => run.snapshot.recorded.get(type.name, change.key),
    leaves: async () =>
      run.groupCommit(() => {
        if (stop.aborted || breaker.holds(type, change)) throw new Held('stopped before it left');
        if (isPastSlice(applying, change)) throw new Held('the source is read again first');
        late = isOutdated() ? 'outdated' : undefined;
        if (change.op !== 'opt_out' && !isFresh(run, provenAt)) late ??= 'too old';
        // Last: for what is looked at again first, which may take long, nobody has to wait.
        if (!late && !beginInFlight(applying, change.key)) late = 'superseded';
        if (late) throw new Held(`what is known of it is ${late}`);
        if (change.op === 'delete') rememberDeleted(applying, change);
        isBarred = isForbidden(applying, change);
        if (isBarred) throw new Held('the ledger forbids it');
        run.snapshot.journal.move(change.seq, 'sent', { at: run.clock.now() });
      }),
  });
  if (outcome.is !== 'held') return outcome;
  if (isBarred) return { is: 'stale', observed: undefined, why: outcome.why };
  return late ?? outcome;
}
