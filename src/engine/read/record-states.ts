/** Collects what is known about one record for the decision about it. */
import type { Entry } from '../../domain/do-not-contact.ts';
import type { DesiredRow, Key, ObservedRow, RecordedRow } from '../../domain/record.ts';
import type { RecordType, States } from '../../records/record-type.ts';
import type { Source } from '../../sources/source.ts';
import { isFirstLoad, type RunContext } from '../context/run-context.ts';
import { mappingOf } from '../context/mirror-context.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import type { Findings } from '../context/run-state.ts';
import type { SourceRead } from './source-read.ts';
import { identityOf } from '../context/person-identity.ts';

/** Returns what reading the source has found. */
export function readingOf(
  source: Source,
  read: SourceRead,
): Pick<Findings, 'certified' | 'whole' | 'cursor' | 'reading' | 'sizes' | 'still'> {
  const { complete: certified, reading, whole, sizes } = read;
  const cursor = read.complete ? read.cursor : undefined;
  const still = (): boolean => source.still?.(reading) ?? false;
  return { certified, whole, cursor, reading, sizes, still };
}

/** Collects the states of one record from everything that was read, observed and recorded. */
export function statesOf(
  run: RunContext,
  type: RecordType,
  { key, known }: { key: Key; known: Findings },
): States {
  const { staging, recorded, problems } = run.snapshot;
  const row = recorded.get(type.name, key);
  const entries = type.capabilities.doNotContact
    ? run.doNotContact.concerning(identityOf(run, type, key))
    : [];
  const looked = staging.lookedAt(type.name, key) ?? outrun(known, { row, entries });
  const observed = looked === 'assumed' ? [] : staging.observed(type.name, key);
  const listed = known.listing?.complete;
  const isListed = typeof looked === 'number' || (listed && looked === undefined);
  const sight = isListed ? 'listed' : 'assumed';
  const by = typeof looked === 'number' ? looked : (known.listing?.endedAt ?? run.clock.now());
  const assumedId = isListed ? undefined : row?.id;
  const desired = staging.desired(type.name, key);
  const isNamed = desired.length > 0;
  const successors = isNamed ? [] : successorsOf(run, type, { key, known, inDetail: true });
  const isGone = desired.every(({ presence }) => presence !== 'present');
  return {
    key,
    desired,
    recorded: row,
    former: formerOf(run, type, { key, known, desired, observed, assumedId }),
    successors,
    renamed: row ? renamedOf(run, type, { row, known, isListed: sight === 'listed' }) : [],
    origins: row ? recorded.originsOf(type.name, key) : [],
    statedOut: isNamed ? statedOutOf(run, type, key) : [],
    parked: problems.parked(type.name, key).map(({ part }) => part),
    entries,
    observed,
    sight,
    certified: known.certified,
    restored: run.restored === true || (row === undefined && observed.some(isFromBefore(run))),
    ...(isGone ? goneStates(run, type, { key, known, isNamed, successors }) : stays),
    at: typeof looked === 'number' ? looked : (known.listing?.startedAt ?? run.clock.now()),
    by,
    latest: by + latestNow(run) - run.clock.now(),
    lost: known.lost,
    ...(isUnchosen(run, type, key) && { unchosen: true }),
    facts: run.facts.known(),
  };
}

/** Returns whether the run is limited to other people. */
/** Returns whether a contact may be one of ours that a backup, which was put back, lacks. */
function isFromBefore({ restoredUntil }: RunContext) {
  return ({ createdAt }: ObservedRow): boolean => (createdAt ?? Infinity) <= restoredUntil;
}

function isUnchosen({ selection }: RunContext, { capabilities }: RecordType, key: Key): boolean {
  return capabilities.personRead !== undefined && selection !== undefined && !selection.has(key);
}

/** Returns the parts for which one of the key's records is known to have stated an opt-out. */
function statedOutOf(run: RunContext, { name, capabilities }: RecordType, key: Key) {
  if (!capabilities.channels) return [];
  const { stated, staging } = run.snapshot;
  const ids = staging.idsOf(name, key);
  return stated.optOutsOf(name, { key, ids, mapping: mappingOf(run) ?? '' });
}

const stays = { strays: false, absence: undefined, mayDelete: false };

interface Gone extends Pick<States, 'key' | 'successors'> {
  known: Findings;
  isNamed: boolean;
}

/** Collects what matters only for a record that is not present in the source. */
function goneStates(
  run: RunContext,
  { name }: RecordType,
  { key, known, isNamed, successors }: Gone,
): Pick<States, keyof typeof stays | 'unmanagedOut'> {
  const mayHaveStrays = successors.length > 0 || (known.whole && isNamed);
  return {
    strays: mayHaveStrays && run.snapshot.recorded.hasStrays(name, key),
    absence: known.absenceCounts ? run.snapshot.absences.get(name, key) : undefined,
    // Only a complete reading proves that no other person has the old address.
    mayDelete: mayDelete(run, known) && (successors.length === 0 || known.whole),
    unmanagedOut: isNamed ? run.snapshot.unmanaged.decided(name, key, 'opt_out') : [],
  };
}

/**
 * Returns whether this run may delete. Without a listing this is possible too, because each contact
 * is read before it is deleted.
 */
function mayDelete(run: RunContext, { listing }: Findings): boolean {
  if (isFirstLoad(run) || run.selection) return false;
  return run.mode === 'full' ? listing?.complete === true : run.restored !== true;
}

/**
 * Returns 'assumed' if the do-not-contact list has an entry for the person that is newer than the
 * listing. In that case the recorded state is newer than the listing, because the opt-out was
 * observed in another way.
 */
function outrun(
  { listing }: Findings,
  { row, entries }: { row: RecordedRow | undefined; entries: readonly Entry[] },
): 'assumed' | undefined {
  if (!listing || row?.id === undefined) return undefined;
  const isNew = ({ seq, through }: Entry) => through === 'address' && seq > listing.knownEntries;
  return entries.some(isNew) ? 'assumed' : undefined;
}

interface Seen {
  key: Key;
  known: Findings;
  desired: readonly DesiredRow[];
  observed: readonly ObservedRow[];
  /** The recorded platform id, if the platform was not read. */
  assumedId: string | undefined;
}

/**
 * Returns the records with other keys that share an id with this one, on the platform or in the
 * source.
 */
function formerOf(
  { snapshot }: RunContext,
  type: RecordType,
  { key, known, desired, observed, assumedId }: Seen,
): States['former'] {
  const { staging, recorded } = snapshot;
  const shown = observed.length > 0 ? observed.map(({ id }) => id) : [assumedId ?? []].flat();
  const replaced = ({ key: old }: RecordedRow): boolean =>
    known.certified && staging.desired(type.name, old).length === 0;
  const takenOver = type.keyedById
    ? shown.flatMap((id) => recorded.ofId(type.name, id, key) ?? []).filter(replaced)
    : shown.flatMap((id) => recorded.everOfId(type.name, id, key));
  const ids = desired.map(({ id }) => id).filter((id) => id !== '');
  const rows = [...takenOver, ...recorded.ofOrigins(type.name, ids, key)];
  const former = new Map(rows.map((row) => [row.key, row]));
  return [...former.values()].map((row) => ({
    row,
    seen: staging.observed(type.name, row.key),
  }));
}

/** Returns the contacts that are recorded under this key and now have another one. */
function renamedOf(
  run: RunContext,
  type: RecordType,
  { row, known, isListed }: { row: RecordedRow; known: Findings; isListed: boolean },
): States['renamed'] {
  const { staging, recorded } = run.snapshot;
  const { name, capabilities } = type;
  return (capabilities.personRead?.idsOf(row) ?? []).flatMap((id) => {
    const seen = isListed ? staging.elsewhere(name, id, row.key) : undefined;
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
  return recorded.successors(name, key).map((next) => {
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
