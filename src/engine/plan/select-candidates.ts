/**
 * Selects the records that need a decision: the few that differ from their recorded state. Among
 * them it finds channels that were deleted on the platform. A deleted channel looks as if all
 * members had unsubscribed from it together. That is one problem of the channel, not an opt-out by
 * each person.
 *
 *   people recorded in it,     of them without      result
 *   and listed                 a subscription
 *   fewer than 10              any number           each counts as unsubscribed
 *   10 or more                 at most half         each counts as unsubscribed
 *   10 or more                 more than half       the channel is lost
 *
 * A lost channel remains a known problem until a certified listing shows otherwise. Until then
 * every run fails because of it, as it does for a channel that the platform does not know.
 */
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { RecordType } from '../../records/record-type.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';
import { onlyKey } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings, PlatformListing } from '../context/run-state.ts';
import { keysOf } from '../observe/person-observation.ts';
import type { Key, ObservedRow, RecordedRow } from '../../domain/record.ts';
import type { Parts } from '../../records/capabilities.ts';

/** Stages the candidates. Returns a problem for each lost channel. */
export async function candidatesOf(
  run: RunContext,
  type: RecordType,
  findings: Findings,
): Promise<RecordProblem[]> {
  await addCandidates(run, type, findings);
  const lost = await lostParts(run, type, findings.listing);
  return [...lost].map((part) => lossOf(type, part));
}

async function addCandidates(run: RunContext, type: RecordType, findings: Findings): Promise<void> {
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
    stage(() => candidates.named(name));
    return;
  }
  for await (const range of inTurns(run, ranges.ofKeys(name))) {
    stage(() => {
      if (findings.listing) candidates.full(name, range, decidesAbsent.full);
      else candidates.fast(name, range, decidesAbsent.fast);
    });
  }
  candidates.parked(name);
}

const membersAtLeast = 10;
const pageOfRows = 500;

/**
 * Returns the lost channels. Call it after the candidates are selected, because only candidates are
 * counted.
 */
async function lostParts(
  run: RunContext,
  { name, capabilities: { channels: parts } }: RecordType,
  listing: PlatformListing | undefined,
): Promise<Set<string>> {
  if (!parts) return new Set();
  const before = listing?.complete
    ? []
    : run.snapshot.retryLater.parts(name).map((one) => one.part);
  const lost = new Set(parts.names.filter((part) => before.includes(part)));
  if (!listing) return lost;
  const losses = await countLosses(run, name, parts);
  for (const [part, count] of losses) if (count * 2 <= membersAtLeast) losses.delete(part);
  const found = losses.size === 0 ? [] : await exceeding(losses, { run, name, parts });
  return new Set([...lost, ...found]);
}

/** Returns the problem of a lost channel. */
function lossOf({ name }: RecordType, part: string): RecordProblem {
  return {
    kind: name,
    key: part,
    class: 'conflict',
    part,
    cause: 'channel-lost',
    reason:
      'more than half of the people recorded in this channel have no subscription there any more, ' +
      'so this counts as an opt-out of nobody, and nobody is opted in',
    fix: 'restore the channel on the platform, or take it out of the configuration',
  };
}

/** Counts, for each channel, the candidates that have lost it. */
async function countLosses(
  run: RunContext,
  name: RecordType['name'],
  parts: Parts,
): Promise<Map<string, number>> {
  const { candidates, recorded, staging } = run.snapshot;
  const losses = new Map<string, number>();
  const pages = pagesOf((last: Key = '') => candidates.next(name, last, pageOfRows));
  for await (const keys of inTurns(run, pages)) {
    const rows = keys.flatMap((key) => recorded.get(name, key) ?? []);
    for (const part of rows.flatMap((row) => lossesOf(row, staging.observed(name, row.key), parts)))
      losses.set(part, (losses.get(part) ?? 0) + 1);
  }
  return losses;
}

/** Returns the channels that a person has lost; none if the person was not listed. */
function lossesOf(row: RecordedRow, observed: ObservedRow[], parts: Parts): string[] {
  if (observed.length === 0) return [];
  const left = new Set(observed.flatMap(parts.shown));
  return membersOf(row, parts).filter((part) => !left.has(part));
}

/**
 * Returns the channels that over half of the members have lost. Stops counting as soon as possible.
 */
async function exceeding(
  losses: Map<string, number>,
  { run, name, parts }: { run: RunContext; name: RecordType['name']; parts: Parts },
): Promise<string[]> {
  const { recorded, staging } = run.snapshot;
  const members = new Map([...losses.keys()].map((part) => [part, 0]));
  const isOpen = (part: string) => (members.get(part) ?? 0) < 2 * (losses.get(part) ?? 0);
  const pages = pagesOf((last?: { key: Key }) => recorded.next(name, last?.key ?? '', pageOfRows));
  for await (const rows of inTurns(run, pages)) {
    if (![...losses.keys()].some(isOpen)) break;
    for (const row of rows) {
      const counted = membersOf(row, parts).filter((part) => losses.has(part));
      if (counted.length === 0 || staging.observed(name, row.key).length === 0) continue;
      for (const part of counted) members.set(part, (members.get(part) ?? 0) + 1);
    }
  }
  const isLost = (part: string) => isOpen(part) && (members.get(part) ?? 0) >= membersAtLeast;
  return [...losses.keys()].filter(isLost);
}

function membersOf(row: RecordedRow, { names, recorded }: Parts): string[] {
  return recorded(row).filter((part) => names.includes(part));
}
