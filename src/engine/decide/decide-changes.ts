/** Decides about the people that are candidates, and stages what is decided about any record. */
import { type Change, type JournaledChange, isStatedOptOut } from '../../domain/change.ts';
import type { DesiredRow, Key, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import type { Contacts } from '../../records/contact/contacts.ts';
import { recordedChannels, shownChannels } from '../../records/contact/observe/observed-contact.ts';
import type { Decision, Undoing, Undone } from '../../records/decision.ts';
import type { RecordName } from '../../store/database/key-range.ts';
import { commitNow } from './commit-plan.ts';
import { aheadOf, latestByPlatform } from '../context/platform-knowledge.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { displayNameOf, identityOf, noListChanges } from '../context/person-identity.ts';
import type { Findings, PlatformListing } from '../context/run-results.ts';
import { statesOf } from '../read/record-states.ts';
import type { RunTally } from '../context/run-tally.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { keysOf } from '../observe/observe-platform.ts';

interface Deciding {
  run: RunContext;
  tally: RunTally;
  onKeptBack?: ((change: Change, gate: RunGate) => void) | undefined;
}

interface DecidingPeople extends Deciding {
  contacts: Contacts;
  known: Findings;
}

const kind = 'contact';
const pageOfKeys = 100;
const recordedFields = ['id', 'ownership', 'body', 'shown', 'desired'] as const;

/** Decides about all people that are candidates. */
export async function decideChanges(deciding: DecidingPeople): Promise<void> {
  await decideCandidates(deciding.run, kind, {
    decide: (key) => void decidePerson(deciding, key),
    decideOpen: (key) => decideUnknown(deciding, key),
  });
}

/**
 * Decides about all candidates, who are none then. `decideOpen` decides about a record with a
 * change whose outcome is not known; nothing of it is undone.
 */
export async function decideCandidates(
  run: RunContext,
  of: RecordTypeName,
  { decide, decideOpen }: { decide(key: Key): void; decideOpen?(key: Key): void },
): Promise<void> {
  const { candidates, journal } = run.snapshot;
  const open = new Set(journal.open(of).map(({ key }) => key));
  let done = 0;
  const pages = pagesOf((last: Key = '') => candidates.next(of, last, pageOfKeys));
  for await (const keys of inTurns(run, pages)) {
    const superseded = new Set(of === 'contact' ? supersededKeys(run) : []);
    run.snapshot.stage(() => {
      for (const key of keys) {
        if (superseded.has(key)) continue;
        if (!open.has(key)) decide(key);
        else if (run.undo) noteOpen(run, { kind: of, key });
        else decideOpen?.(key);
      }
    });
    done += keys.length;
    run.progress({ stage: 'deciding', kind: of, done, of: undefined });
  }
  candidates.clear(of);
}

/**
 * Makes a new decision for one record immediately, based on its current recorded state, unless the
 * record is already as desired. `decide` stages it, and `review` applies the guards. Returns
 * whether anything is planned.
 */
export function decideAgain(
  run: RunContext,
  { kind: of, key }: RecordName,
  { isSettled, decide, review }: { isSettled: boolean; decide(): number; review(): void },
): boolean {
  const { staging, stage } = run.snapshot;
  let planned = 0;
  staging.assume(of, key);
  if (isSettled) return false;
  stage(() => (planned = decide()));
  if (planned > 0) review();
  commitNow(run);
  return planned > 0;
}

/** Returns the number of planned changes. */
export function decidePerson(deciding: DecidingPeople, key: Key): number {
  const { run, contacts, known } = deciding;
  const { meta, listNews } = run.snapshot;
  const states = statesOf(run, { key, known });
  const decision = run.undo
    ? undoneIn(run, { kind, key }, (undoing) => contacts.undo(states, undoing))
    : contacts.decide(states);
  if (!decision) return 0;
  const { adds, ends } = decision.news ?? noListChanges;
  if (adds.length + ends.length > 0) listNews.add({ ...identityOf(run, key), adds, ends });
  const { recorded, former, successors } = states;
  // The contact that the record formerly had on the platform may now belong to another record.
  const isSame = !recorded || recorded.id === decision.note?.id;
  const isAlone = isSame && former.length + successors.length + decision.forgets.length === 0;
  const name = displayNameOf(meta, key, states);
  return stageDecision(deciding, { kind, key, name, decision, states, isAlone });
}

/** Returns the inverse of what the run to undo has changed of a record; undefined if nothing. */
export function undoneIn(
  run: RunContext,
  record: RecordName,
  invert: (undoing: Undoing) => Undone,
): Decision | undefined {
  const { undo } = run;
  const changes = undo?.changesOf(record.kind, record.key) ?? [];
  if (!undo || changes.length === 0) return undefined;
  const at = undo.lastAt(record.kind, record.key);
  const doneAt = at === undefined ? undefined : latestByPlatform(run, at);
  const { decision, cannot } = invert({ run: undo.run, changes, doneAt });
  undo.note(record, cannot);
  return decision;
}

/** Notes that nothing of a record can be undone while a change to it has no known outcome. */
function noteOpen({ undo }: RunContext, record: RecordName): void {
  const reason = 'the outcome of a change to this record is not known yet: run `crm-mirror sync`';
  const changes = undo?.changesOf(record.kind, record.key) ?? [];
  undo?.note(
    record,
    changes.map(({ op, part }) => ({ op, part, rule: 'outcome-open', reason })),
  );
}

interface Decided extends RecordName {
  /** The record's name in problems. */
  name: string;
  decision: Decision;
  states: {
    desired: readonly DesiredRow[];
    recorded: RecordedRow | undefined;
    sight: 'listed' | 'assumed';
  };
  /** Whether the row to record depends on no other record. */
  isAlone: boolean;
}

/** Stages a decision. Returns the number of changes that pass the gates of the run. */
export function stageDecision(deciding: Deciding, decided: Decided): number {
  const { run, tally } = deciding;
  const { kind: of, key, name, decision, states, isAlone } = decided;
  const { staging, guarded } = run.snapshot;
  const { changes, note, forgets, problems } = decision;
  staging.forgetNoticed(of, name);
  guarded.forget(of, key);
  for (const problem of problems) tally.notice(name === key ? problem : { ...problem, key: name });
  const isNews = recordedFields.some((field) => note?.[field] !== states.recorded?.[field]);
  if (note && (changes.length > 0 || isNews)) staging.addNoted({ ...note, alone: isAlone });
  for (const old of forgets) staging.addForgotten(of, old);
  if (decision.adopts) tally.adopted(of);
  for (const stop of decision.stoppedBy ?? []) tally.stopped(stop);
  const refused = run.undo ? [] : findRefused(deciding, decided);
  return stageChanges(deciding, states.desired, { changes, open: [], refused });
}

/** Stages the changes that pass the gates of the run. Returns their number. */
function stageChanges(
  { run, onKeptBack }: Deciding,
  desired: readonly DesiredRow[],
  { changes, ...found }: { changes: readonly Change[] } & Omit<RunGateFacts, 'isQuarantined'>,
): number {
  const gateFacts: RunGateFacts = { ...found, isQuarantined: run.quarantined };
  const planned = changes.filter((change) => {
    const gate = runGates.find(({ holds }) => holds(change, gateFacts));
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
function decideUnknown(deciding: DecidingPeople, key: Key): void {
  const { run, contacts, known } = deciding;
  const open = run.snapshot.journal.open(kind).filter((change) => change.key === key);
  const states = statesOf(run, { key, known });
  const { changes } = contacts.decide(states);
  stageChanges(deciding, states.desired, { changes, open, refused: [] });
}

/** Joins the fingerprints of the rows. A refused change is tried again when this changes. */
export function desiredFingerprint(desired: readonly { fingerprint: string }[]): string {
  const all = desired.map((row) => row.fingerprint);
  return all.toSorted().join(' ');
}

/**
 * Returns the refused changes that wait: until the record changes or, for an opt-out, until its
 * delay is over. Deletes the refusal of a change that is no longer planned, but not merely because
 * the record is absent from this listing.
 */
function findRefused(
  { run, tally }: Deciding,
  { kind: of, key, decision: { changes }, states: { desired, sight } }: Decided,
): Change[] {
  const { problems } = run.snapshot;
  const { longestMs } = retrySchedules.rejectedOptOut;
  const now = run.clock.now();
  const wanted = desiredFingerprint(desired);
  const waiting: Change[] = [];
  for (const parked of problems.parked(of, key)) {
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

// Gates that withhold decided changes in a run, whatever their purpose. They are applied in this
// order, after the rules and gates of a person (docs/consent.md).

interface RunGateFacts {
  /** Changes to the same record whose outcome is unknown. */
  open: readonly JournaledChange[];
  /** Changes to the same record that the platform refused and that are not retried yet. */
  refused: readonly Change[];
  isQuarantined: boolean;
}

export interface RunGate {
  id: string;
  asks: string;
  holds(change: Change, facts: RunGateFacts): boolean;
}

export const runGates: readonly RunGate[] = [
  {
    id: 'outcome-open',
    asks: 'an earlier request for this record has no known outcome, so only stated opt-outs are sent',
    holds: (change, { open }) =>
      open.length > 0 &&
      (!isStatedOptOut(change) ||
        // Is one of the changes with an unknown outcome the same opt-out?
        open.some(
          ({ op, part, target }) =>
            op === 'opt_out' && part === change.part && target === change.target,
        )),
  },
  {
    id: 'refused-before',
    asks: 'the platform refused the change, or the creation that it depends on: opt-outs are retried later, other changes after the record changes or `retry` is called',
    holds: (change, { refused }) =>
      refused.includes(change) ||
      (change.target === undefined && refused.some(({ op }) => op === 'create')),
  },
  {
    id: 'quarantined',
    asks: 'the mirror is quarantined, so only stated opt-outs are sent',
    holds: (change, { isQuarantined }) => isQuarantined && !isStatedOptOut(change),
  },
];

// Selects the records that need a decision: the few that differ from their recorded state. Among
// them it finds deleted channels: one looks as if all members had unsubscribed together, which is
// one problem of the channel, not an opt-out by each person.
//
//   people recorded in it,     of them without      result
//   and listed                 a subscription
//   fewer than 10              any number           each counts as unsubscribed
//   10 or more                 at most half         each counts as unsubscribed
//   10 or more                 more than half       the channel is lost
//
// A lost channel remains a known problem until a certified listing shows otherwise. Until then
// every run fails because of it, as it does for a channel that the platform does not know.

/** Makes records candidates. `absent`: also those that are recorded and not in the source. */
export async function addCandidates(
  run: RunContext,
  of: RecordTypeName,
  { absent, findings }: { absent: boolean; findings: Findings },
): Promise<void> {
  const { candidates, ranges, stage, staging } = run.snapshot;
  const key = onlyKey(run);
  if (key !== undefined) {
    for (const one of keysOf(run, { key, known: findings })) candidates.add(of, one);
    return;
  }
  if (run.undo) {
    for await (const chunk of inTurns(run, run.undo.chunks())) run.undo.select(of, chunk);
    return;
  }
  if (!findings.listing && !findings.whole) {
    stage(() => candidates.named({ kind: of }));
    return;
  }
  // Nobody is concluded absent without a listing.
  const isGone = absent && of === 'template';
  const ofRest = of === 'contact' && staging.unchanged.isCompared();
  for await (const range of inTurns(run, ofRest ? ranges.ofRest(of) : ranges.ofKeys(of))) {
    stage(() => {
      if (findings.listing) candidates.full({ ...range, absent });
      else if (ofRest) candidates.fastOfRest({ ...range, absent: isGone });
      else candidates.fast({ ...range, absent: isGone });
    });
  }
  candidates.parked(of);
}

/**
 * Decides whether a reading counts for how long people have been missing from the CRM, drops the
 * counts of people who are back, and counts the others. Returns whether it counts.
 */
export async function countAbsences(
  run: RunContext,
  { absence }: Contacts,
  read: Findings,
): Promise<boolean> {
  const { absences, ranges, transaction } = run.snapshot;
  const counts = run.mode === 'full' && !run.selection && read.certified && read.still();
  if (!run.writes) return counts;
  const only = onlyKey(run);
  transaction(() => {
    if (only === undefined) absences.dropNamed({ kind });
    else absences.dropIfNamed({ kind, key: only });
  });
  if (!counts) return false;
  const platformAt = read.listing?.platformStartedAt;
  const times = { at: run.startedAt, platformAt, aheadMs: aheadOf(run) };
  // If the process dies halfway, no person is counted twice for one reading.
  for await (const range of inTurns(run, ranges.ofKeys(kind))) {
    const but = supersededKeys(run);
    const reading = { reading: read.reading, ...times, ...absence, but };
    transaction(() => absences.count({ ...range, ...reading }));
  }
  return true;
}

const membersAtLeast = 10;
const pageOfRows = 500;

/** Returns a problem for each lost channel, found among the candidates. */
export async function findLostChannels(
  run: RunContext,
  channels: readonly string[],
  listing: PlatformListing | undefined,
): Promise<RecordProblem[]> {
  const { retryLater, candidates, recorded, staging } = run.snapshot;
  const before = listing?.complete ? [] : retryLater.parts(kind).map((one) => one.part);
  const lost = new Set(channels.filter((part) => before.includes(part)));
  if (listing) {
    // Who was not listed has lost no channel.
    const lostBy = (row: RecordedRow): string[] => {
      const observed = staging.observed(kind, row.key);
      const left = new Set(observed.flatMap(shownChannels));
      return observed.length === 0 ? [] : membersOf(row, channels).filter((one) => !left.has(one));
    };
    const losses = new Map<string, number>();
    const pages = pagesOf((last: Key = '') => candidates.next(kind, last, pageOfRows));
    for await (const keys of inTurns(run, pages)) {
      const rows = keys.flatMap((key) => recorded.get(kind, key) ?? []);
      for (const part of rows.flatMap(lostBy)) losses.set(part, (losses.get(part) ?? 0) + 1);
    }
    for (const [part, count] of losses) if (count * 2 <= membersAtLeast) losses.delete(part);
    const found = losses.size === 0 ? [] : await exceeding(losses, { run, channels });
    for (const part of found) lost.add(part);
  }
  const reason =
    'more than half of the people recorded in this channel have no subscription there any more, ' +
    'so this counts as an opt-out of nobody, and nobody is opted in';
  const fix = 'restore the channel on the platform, or take it out of the configuration';
  const problem = { class: 'conflict', cause: 'channel-lost', reason, fix } as const;
  return [...lost].map((part) => ({ kind, key: part, part, ...problem }));
}

function membersOf(row: RecordedRow, channels: readonly string[]): string[] {
  return recordedChannels(row).filter((part) => channels.includes(part));
}

/** Returns the channels that over half of the members have lost, counting no more than needed. */
async function exceeding(
  losses: Map<string, number>,
  { run, channels }: { run: RunContext; channels: readonly string[] },
): Promise<string[]> {
  const { recorded, staging } = run.snapshot;
  const members = new Map([...losses.keys()].map((part) => [part, 0]));
  const isOpen = (part: string) => (members.get(part) ?? 0) < 2 * (losses.get(part) ?? 0);
  const pages = pagesOf((last?: { key: Key }) => recorded.next(kind, last?.key ?? '', pageOfRows));
  for await (const rows of inTurns(run, pages)) {
    if (![...losses.keys()].some(isOpen)) break;
    for (const row of rows) {
      const counted = membersOf(row, channels).filter((part) => losses.has(part));
      if (counted.length === 0 || staging.observed(kind, row.key).length === 0) continue;
      for (const part of counted) members.set(part, (members.get(part) ?? 0) + 1);
    }
  }
  const isLost = (part: string) => isOpen(part) && (members.get(part) ?? 0) >= membersAtLeast;
  return [...losses.keys()].filter(isLost);
}
