/**
 * Collects what is known about one record for the decision about it: its states under its own key,
 * when it is gone from the source, and under the keys that it had before or has now.
 */
import type { Entry } from '../../domain/do-not-contact.ts';
import type { Key, ObservedRow } from '../../domain/record.ts';
import { idsOf } from '../../records/contact/consent/renamed-contact.ts';
import {
  type ContactStates,
  decodeContact,
  type RecordedContactRow,
} from '../../records/contact/observe/contact-state.ts';
import type { Source } from '../../sources/source.ts';
import { isFirstLoad, type RunContext } from '../context/run-context.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import type { Findings } from '../context/run-results.ts';
import type { SourceRead } from './source-read.ts';
import { identityOf } from '../context/person-identity.ts';

/** Returns what a run keeps of a read. */
export function readingOf(source: Source, read: SourceRead) {
  const { complete: certified, reading, whole, sizes } = read;
  const cursor = read.complete ? read.cursor : undefined;
  const still = (): boolean => source.still?.(reading) ?? false;
  return { certified, whole, cursor, reading, sizes, still };
}

const kind = 'contact';

export function statesOf(
  run: RunContext,
  { key, known }: { key: Key; known: Findings },
): ContactStates {
  const { snapshot, selection } = run;
  const { staging, recorded, problems, stated } = snapshot;
  const { listing } = known;
  const found = recorded.get(kind, key);
  const row = found && decodeContact.recorded(found);
  const entries = run.doNotContact.concerning(identityOf(run, key));
  // If the list has an entry that is newer than the listing, the opt-out was observed in another
  // way, and the recorded state is newer than the listing.
  const isNewer = ({ seq, through }: Entry): boolean =>
    through === 'address' && seq > (listing?.knownEntries ?? Infinity);
  const isOutrun = row?.id !== undefined && entries.some(isNewer);
  const looked = staging.lookedAt(kind, key) ?? (isOutrun ? 'assumed' : undefined);
  const observed = looked === 'assumed' ? [] : observedOf(run, key);
  const lookedAt = typeof looked === 'number' ? looked : undefined;
  const isListed = lookedAt !== undefined || (listing?.complete && looked === undefined);
  const by = lookedAt ?? listing?.endedAt ?? run.clock.now();
  const assumed = isListed || row?.id === undefined ? [] : [row.id];
  const shown = observed.length > 0 ? observed.map(({ id }) => id) : assumed;
  const desired = desiredRows(run, key);
  const isNamed = desired.length > 0;
  // The people with other addresses who share an id, on the platform or in the CRM.
  const takenOver = shown.flatMap((id) => recorded.everOfId({ kind, id, notKey: key }));
  const ids = desired.map(({ id }) => id).filter((id) => id !== '');
  const rows = [...takenOver, ...ids.flatMap((id) => recorded.ofOrigin(kind, id, key))];
  const former = [...new Map(rows.map((one) => [one.key, one])).values()];
  const successors = isNamed ? [] : successorsOf(run, { key, known, inDetail: true });
  const isGone = desired.every(({ presence }) => presence !== 'present');
  const mayHaveStrays = successors.length > 0 || (known.whole && isNamed);
  const isShown = run.mode === 'full' ? listing?.complete === true : run.restored !== true;
  const mayDelete = () => isShown && !isFirstLoad(run) && !run.selection;
  // What matters only for a person who is not in the CRM. Any run may delete one.
  const gone = () => ({
    strays: mayHaveStrays && recorded.hasStrays(kind, key),
    absence: known.absenceCounts ? snapshot.absences.get(kind, key) : undefined,
    // Only a complete reading proves that no other person has the old address.
    mayDelete: mayDelete() && (successors.length === 0 || known.whole),
    unmanagedOut: isNamed ? snapshot.unmanaged.decided(kind, key, 'opt_out') : [],
  });
  const statedOut = (): string[] =>
    stated.optOutsOf({
      kind,
      key,
      ids: staging.idsOf(kind, key),
      mapping: run.contacts?.manner ?? '',
    });
  // A backup that was put back may lack a contact of ours that is older than it.
  const isOld = ({ createdAt = Infinity }: ObservedRow): boolean => createdAt <= run.restoredUntil;
  return {
    key,
    desired,
    recorded: row,
    former: former.map((one) => ({
      row: decodeContact.recorded(one),
      seen: observedOf(run, one.key),
    })),
    successors,
    renamed: row ? renamedOf(run, { row, known, observed, isListed: isListed === true }) : [],
    origins: row ? recorded.originsOf(kind, key) : [],
    statedOut: isNamed ? statedOut() : [],
    parked: problems.parked(kind, key).map(({ part }) => part),
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
    ...(selection && !selection.has(key) && { unchosen: true }),
    facts: run.facts.known(),
  };
}

const stays = { strays: false, absence: undefined, mayDelete: false };

function desiredRows({ snapshot: { staging } }: RunContext, key: Key) {
  return staging.desired(kind, key).map((row) => decodeContact.desired(row));
}

function observedOf({ snapshot: { staging } }: RunContext, key: Key) {
  return staging.observed(kind, key).map((row) => decodeContact.observed(row));
}

interface Read {
  observed: ContactStates['observed'];
  row: RecordedContactRow;
  known: Findings;
  isListed: boolean;
}

function renamedOf(
  run: RunContext,
  { row, known, observed, isListed }: Read,
): ContactStates['renamed'] {
  const { staging, recorded } = run.snapshot;
  // A search of the address that finds only others: our contact may have another one since.
  const isReplaced =
    staging.lookedAt(kind, row.key) !== undefined &&
    observed.length > 0 &&
    observed.every(({ id }) => id !== row.id);
  return idsOf(row).flatMap((id) => {
    const seen = isListed ? staging.elsewhere(id, kind, row.key) : undefined;
    // A recorded contact still has this key unless it was read with another key, or was deleted.
    const isGone = id === row.id ? !isReplaced : isListed && known.listing;
    if (!seen && isGone) return [];
    const other = recorded.ofId(kind, id, row.key);
    const now = seen?.alias ?? other?.key;
    const desired = now === undefined ? [] : desiredRows(run, now);
    const isLeft = now !== undefined && desired.length === 0;
    const successors = isLeft ? successorsOf(run, { key: now, known }) : [];
    const origins = successors.length > 0 && isLeft ? recorded.originsOf(kind, now) : [];
    const unread = known.whole || !other ? undefined : decodeContact.recorded(other);
    const shown = seen && decodeContact.observed(seen);
    return [{ id, row: shown, desired, successors, origins, recorded: unread }];
  });
}

/** The people who have replaced a person who is missing from the CRM. */
function successorsOf(
  run: RunContext,
  { key, known, inDetail = false }: { key: Key; known: Findings; inDetail?: boolean },
): ContactStates['successors'] {
  const { staging, recorded } = run.snapshot;
  const { listing } = known;
  return recorded.successors({ kind, key }).map((next) => {
    const row = recorded.get(kind, next);
    const isListed = staging.observed(kind, next).some(({ id }) => id === row?.id);
    const isNewer = staging.lookedAt(kind, next) === 'assumed';
    const isSeen = isListed || isNewer || staging.sightedAt(kind, next) !== undefined;
    const vanished = listing?.complete === true && !isSeen;
    const desired = desiredRows(run, next);
    // The CRM contains the new key, so that one has no successors of its own.
    const isKnown = inDetail && desired.length > 0;
    const states = isKnown ? statesOf(run, { key: next, known }) : undefined;
    return { desired, recorded: row && decodeContact.recorded(row), vanished, states };
  });
}
