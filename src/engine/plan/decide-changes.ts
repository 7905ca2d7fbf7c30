/**
 * Makes the decisions for the candidates of one record type by its rules, and stages the results.
 */
import { type Change, type JournaledChange, isStatedOptOut } from '../../domain/change.ts';
import type { Key, RecordTypeName, RecordedRow } from '../../domain/record.ts';
import type { Decision, RecordType, States } from '../../records/record-type.ts';
import { commitNow } from './commit-plan.ts';
import { latestByPlatform } from '../context/platform-knowledge.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { displayNameOf, identityOf, noListChanges } from '../context/person-identity.ts';
import type { Findings, PlatformListing } from '../context/run-state.ts';
import { statesOf } from '../read/record-states.ts';
import type { RunTally } from '../context/run-tally.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { keysOf } from '../observe/person-observation.ts';
import type { Parts } from '../../records/capabilities.ts';

interface Deciding {
  run: RunContext;
  type: RecordType;
  known: Findings;
  tally: RunTally;
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
    ...found
  }: { changes: readonly Change[]; open: JournaledChange[]; refused: readonly Change[] },
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

// Gates that withhold decided changes in a run, whatever their purpose. They are applied in this
// order, after the rules and gates of the record type (docs/consent.md).

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
// them it finds channels that were deleted on the platform. A deleted channel looks as if all
// members had unsubscribed from it together. That is one problem of the channel, not an opt-out by
// each person.
//
//   people recorded in it,     of them without      result
//   and listed                 a subscription
//   fewer than 10              any number           each counts as unsubscribed
//   10 or more                 at most half         each counts as unsubscribed
//   10 or more                 more than half       the channel is lost
//
// A lost channel remains a known problem until a certified listing shows otherwise. Until then
// every run fails because of it, as it does for a channel that the platform does not know.

export async function addCandidates(
  run: RunContext,
  type: RecordType,
  findings: Findings,
): Promise<void> {
  const { candidates, ranges, stage } = run.snapshot;
  const { name, decidesAbsent } = type;
  const key = onlyKey(run);
  if (key !== undefined) {
    for (const one of keysOf(run, type, { key, known: findings })) candidates.add(name, one);
    return;
  }
  if (run.undo) {
    for await (const chunk of inTurns(run, run.undo.chunks())) run.undo.select(name, chunk);
    return;
  }
  if (!findings.listing && !findings.whole) {
    stage(() => candidates.named({ kind: name }));
    return;
  }
  for await (const range of inTurns(run, ranges.ofKeys(name))) {
    stage(() => {
      if (findings.listing) candidates.full({ ...range, absent: decidesAbsent.full });
      else candidates.fast({ ...range, absent: decidesAbsent.fast });
    });
  }
  candidates.parked(name);
}

const membersAtLeast = 10;
const pageOfRows = 500;

/** Returns a problem for each lost channel, by the selected candidates only. */
export async function findLostChannels(
  run: RunContext,
  { name, capabilities: { channels } }: RecordType,
  listing: PlatformListing | undefined,
): Promise<RecordProblem[]> {
  if (!channels) return [];
  const { retryLater, candidates, recorded, staging } = run.snapshot;
  const before = listing?.complete ? [] : retryLater.parts(name).map((one) => one.part);
  const lost = new Set(channels.names.filter((part) => before.includes(part)));
  if (listing) {
    // Who was not listed has lost no channel.
    const lostBy = (row: RecordedRow): string[] => {
      const observed = staging.observed(name, row.key);
      const left = new Set(observed.flatMap(channels.shown));
      return observed.length === 0 ? [] : membersOf(row, channels).filter((one) => !left.has(one));
    };
    const losses = new Map<string, number>();
    const pages = pagesOf((last: Key = '') => candidates.next(name, last, pageOfRows));
    for await (const keys of inTurns(run, pages)) {
      const rows = keys.flatMap((key) => recorded.get(name, key) ?? []);
      for (const part of rows.flatMap(lostBy)) losses.set(part, (losses.get(part) ?? 0) + 1);
    }
    for (const [part, count] of losses) if (count * 2 <= membersAtLeast) losses.delete(part);
    const found = losses.size === 0 ? [] : await exceeding(losses, { run, name, channels });
    for (const part of found) lost.add(part);
  }
  const reason =
    'more than half of the people recorded in this channel have no subscription there any more, ' +
    'so this counts as an opt-out of nobody, and nobody is opted in';
  const fix = 'restore the channel on the platform, or take it out of the configuration';
  const problem = { class: 'conflict', cause: 'channel-lost', reason, fix } as const;
  return [...lost].map((part) => ({ kind: name, key: part, part, ...problem }));
}

function membersOf(row: RecordedRow, { names, recorded }: Parts): string[] {
  return recorded(row).filter((part) => names.includes(part));
}

/** Returns the channels that over half of the members have lost, counting no more than needed. */
async function exceeding(
  losses: Map<string, number>,
  { run, name, channels }: { run: RunContext; name: RecordTypeName; channels: Parts },
): Promise<string[]> {
  const { recorded, staging } = run.snapshot;
  const members = new Map([...losses.keys()].map((part) => [part, 0]));
  const isOpen = (part: string) => (members.get(part) ?? 0) < 2 * (losses.get(part) ?? 0);
  const pages = pagesOf((last?: { key: Key }) => recorded.next(name, last?.key ?? '', pageOfRows));
  for await (const rows of inTurns(run, pages)) {
    if (![...losses.keys()].some(isOpen)) break;
    for (const row of rows) {
      const counted = membersOf(row, channels).filter((part) => losses.has(part));
      if (counted.length === 0 || staging.observed(name, row.key).length === 0) continue;
      for (const part of counted) members.set(part, (members.get(part) ?? 0) + 1);
    }
  }
  const isLost = (part: string) => isOpen(part) && (members.get(part) ?? 0) >= membersAtLeast;
  return [...losses.keys()].filter(isLost);
}
