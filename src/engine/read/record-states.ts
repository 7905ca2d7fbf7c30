/**
 * Collects what is known about one record for the decision about it: its states under its own key,
 * when it is gone from the source, and under the keys that it had before or has now.
 */
import type { Entry } from '../../domain/do-not-contact.ts';
import type { Key, ObservedRow, RecordedRow } from '../../domain/record.ts';
import type { RecordType, States } from '../../records/record-type.ts';
import type { Source } from '../../sources/source.ts';
import { isFirstLoad, type RunContext } from '../context/run-context.ts';
import { mappingOf } from '../context/mirror-context.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import type { Findings } from '../context/run-state.ts';
import type { SourceRead } from './source-read.ts';
import { identityOf } from '../context/person-identity.ts';

/** Returns the name of the read. Equal file names, sizes and times give equal names. */
export function readingOf(source: Source, read: SourceRead) {
  const { complete: certified, reading, whole, sizes } = read;
  const cursor = read.complete ? read.cursor : undefined;
  const still = (): boolean => source.still?.(reading) ?? false;
  return { certified, whole, cursor, reading, sizes, still };
}

export function statesOf(
  run: RunContext,
  type: RecordType,
  { key, known }: { key: Key; known: Findings },
): States {
  const { snapshot, selection } = run;
  const { staging, recorded, problems, stated } = snapshot;
  const { name, capabilities } = type;
  const { listing } = known;
  const row = recorded.get(name, key);
  const entries = capabilities.doNotContact
    ? run.doNotContact.concerning(identityOf(run, type, key))
    : [];
  // If the list has an entry that is newer than the listing, the opt-out was observed in another
  // way, and the recorded state is newer than the listing.
  const isNewer = ({ seq, through }: Entry): boolean =>
    through === 'address' && seq > (listing?.knownEntries ?? Infinity);
  const isOutrun = row?.id !== undefined && entries.some(isNewer);
  const looked = staging.lookedAt(name, key) ?? (isOutrun ? 'assumed' : undefined);
  const observed = looked === 'assumed' ? [] : staging.observed(name, key);
  const lookedAt = typeof looked === 'number' ? looked : undefined;
  const isListed = lookedAt !== undefined || (listing?.complete && looked === undefined);
  const by = lookedAt ?? listing?.endedAt ?? run.clock.now();
  const assumed = isListed || row?.id === undefined ? [] : [row.id];
  const shown = observed.length > 0 ? observed.map(({ id }) => id) : assumed;
  const desired = staging.desired(name, key);
  const isNamed = desired.length > 0;
  // The records with other keys that share an id, on the platform or in the source.
  const isReplaced = ({ key: old }: RecordedRow): boolean =>
    known.certified && staging.desired(name, old).length === 0;
  const takenOver = type.keyedById
    ? shown.flatMap((id) => recorded.ofId(name, id, key) ?? []).filter(isReplaced)
    : shown.flatMap((id) => recorded.everOfId({ kind: name, id, notKey: key }));
  const ids = desired.map(({ id }) => id).filter((id) => id !== '');
  const rows = [...takenOver, ...ids.flatMap((id) => recorded.ofOrigin(name, id, key))];
  const former = [...new Map(rows.map((one) => [one.key, one])).values()];
  const successors = isNamed ? [] : successorsOf(run, type, { key, known, inDetail: true });
  const isGone = desired.every(({ presence }) => presence !== 'present');
  const mayHaveStrays = successors.length > 0 || (known.whole && isNamed);
  const isShown = run.mode === 'full' ? listing?.complete === true : run.restored !== true;
  const mayDelete = () => isShown && !isFirstLoad(run) && !run.selection;
  // What matters only for a record that the source lacks. Any run may delete one.
  const gone = () => ({
    strays: mayHaveStrays && recorded.hasStrays(name, key),
    absence: known.absenceCounts ? snapshot.absences.get(name, key) : undefined,
    // Only a complete reading proves that no other person has the old address.
    mayDelete: mayDelete() && (successors.length === 0 || known.whole),
    unmanagedOut: isNamed ? snapshot.unmanaged.decided(name, key, 'opt_out') : [],
  });
  const statedOut = (): string[] =>
    stated.optOutsOf({
      kind: name,
      key,
      ids: staging.idsOf(name, key),
      mapping: mappingOf(run) ?? '',
    });
  // A backup that was put back may lack a contact of ours that is older than it.
  const isOld = ({ createdAt = Infinity }: ObservedRow): boolean => createdAt <= run.restoredUntil;
  return {
    key,
    desired,
    recorded: row,
    former: former.map((one) => ({ row: one, seen: staging.observed(name, one.key) })),
    successors,
    renamed: row ? renamedOf(run, type, { row, known, isListed: isListed === true }) : [],
    origins: row ? recorded.originsOf(name, key) : [],
    statedOut: isNamed && capabilities.channels ? statedOut() : [],
    parked: problems.parked(name, key).map(({ part }) => part),
    entries,
    observed,
    sight: isListed ? 'listed' : 'assumed',
    certified: known.certified,
    restored: run.restored === true || (row === undefined && observed.some(isOld)),
    ...(isGone ? gone() : stays),
    at: lookedAt ?? listing?.startedAt ?? run.clock.now(),
    by,
    latest: by + latestNow(run) - run.clock.now(),
    lost: known.lost,
    ...(capabilities.personRead && selection && !selection.has(key) && { unchosen: true }),
    facts: run.facts.known(),
  };
}

const stays = { strays: false, absence: undefined, mayDelete: false };

function renamedOf(
  run: RunContext,
  type: RecordType,
  { row, known, isListed }: { row: RecordedRow; known: Findings; isListed: boolean },
): States['renamed'] {
  const { staging, recorded } = run.snapshot;
  const { name, capabilities } = type;
  return (capabilities.personRead?.idsOf(row) ?? []).flatMap((id) => {
    const seen = isListed ? staging.elsewhere(id, name, row.key) : undefined;
    // A recorded contact still has this key unless it was read with another key, or was deleted.
    if (!seen && (id === row.id || (isListed && known.listing))) return [];
    const other = recorded.ofId(name, id, row.key);
    const now = seen?.alias ?? other?.key;
    const desired = now === undefined ? [] : staging.desired(name, now);
    const isLeft = now !== undefined && desired.length === 0;
    const successors = isLeft ? successorsOf(run, type, { key: now, known }) : [];
    const origins = successors.length > 0 && isLeft ? recorded.originsOf(name, now) : [];
    const next = { desired, successors, origins, recorded: known.whole ? undefined : other };
    return [{ id, row: seen, ...next }];
  });
}

/** Returns the records that have replaced a record that is missing from the source. */
function successorsOf(
  run: RunContext,
  type: RecordType,
  { key, known, inDetail = false }: { key: Key; known: Findings; inDetail?: boolean },
): States['successors'] {
  const { staging, recorded } = run.snapshot;
  const { name } = type;
  const { listing } = known;
  return recorded.successors({ kind: name, key }).map((next) => {
    const row = recorded.get(name, next);
    const isListed = staging.observed(name, next).some(({ id }) => id === row?.id);
    const isNewer = staging.lookedAt(name, next) === 'assumed';
    const isSeen = isListed || isNewer || staging.sightedAt(name, next) !== undefined;
    const vanished = listing?.complete === true && !isSeen;
    const desired = staging.desired(name, next);
    // The source contains the new key, so that one has no successors of its own.
    const isKnown = inDetail && desired.length > 0;
    const states = isKnown ? statesOf(run, type, { key: next, known }) : undefined;
    return { desired, recorded: row, vanished, states };
  });
}
