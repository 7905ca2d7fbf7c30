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
import type { RecordTypeName, Key, RecordedRow } from '../../domain/record.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { RecordType } from '../../records/record-type.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';
import { onlyKey } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings, PlatformListing } from '../context/run-state.ts';
import { keysOf } from '../observe/person-observation.ts';
import type { Parts } from '../../records/capabilities.ts';

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
