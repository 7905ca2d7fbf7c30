/**
 * Handles the deletion of a CRM record for privacy reasons: forgets everybody who had the record's
 * id.
 *
 *   the CRM still has the record              handled like any other event
 *   no person is known to have had the id     nothing to do
 *   … and a run about all people is active    tried again: when it has ended, everybody is known
 *   an existing record has the same address   shared: two people may have one address, and only one
 *                                             of them is erased; handled like any other event
 *   events have erased too many recently      held: recorded as requested and not done
 *   otherwise                                 forgotten, as by `forget`; tried again if that fails
 *
 * Each id that is known for the person is requested from the CRM. The CRM is not read for further
 * ids.
 *
 * Events erase in 24 hours as many people as the guard for deletes allows for one run, and twice as
 * many in seven days. Otherwise anyone able to send events could have all people erased, and
 * nothing would bring them back.
 */
import type { Deadlines } from '../../records/change-outcome.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import type { LockedPeople } from '../context/person-locks.ts';
import { type Certificate, forget } from './forget-person.ts';
import type { Mirror, MirrorContacts } from '../context/mirror-context.ts';
import { shortHash } from '../context/person-identity.ts';
import { personIsLocked, idsAt, mostRecords, rowOf } from '../read/partial-read.ts';
import { begun, keep, unfinishedIn } from './pending/unfinished-erasures.ts';
import { everything } from '../../store/database/key-range.ts';
import { storedFact } from '../../store/database/meta-table.ts';
import { judge, weekMs } from '../../domain/guards/guard-limits.ts';

export interface Erased {
  /** What remains to be done with the event: nothing, what any other event asks, or a retry. */
  rest: 'nothing' | 'event' | 'again';
  /** The people who had the record, one entry for each address. */
  people: ErasedOne[];
}

/** The result for one person; `person` is a hash. */
export type ErasedOne = { person: string } & (
  | { is: 'shared' | 'held' }
  | { is: 'forgotten' | 'failed'; told: Certificate }
);

interface Wanted {
  contacts: MirrorContacts;
  id: string;
  key: Key;
}

/** Handles the privacy deletion of a CRM record. Throws Busy while one of the people is locked. */
export async function eraseTold(mirror: Mirror, id: string, leave: Deadlines): Promise<Erased> {
  const { contacts } = mirror;
  if (!contacts?.source.one) return { rest: 'nothing', people: [] };
  const taken = await mirror.locks.take(peopleOf(mirror, id));
  try {
    // The run that held the lock until now may have given the record another address.
    const { keys, ...who } = peopleOf(mirror, id);
    if (!taken.extend({ keys, ...who })) throw personIsLocked();
    if (isThere(await ask(contacts, id, leave))) return { rest: 'event', people: [] };
    if (keys.length === 0) {
      return { rest: mirror.locks.others('').length > 0 ? 'again' : 'nothing', people: [] };
    }
    const people: ErasedOne[] = [];
    for (const key of keys) people.push(await eraseOne(mirror, { contacts, id, key }, leave));
    if (people.some(({ is }) => is === 'failed')) return { rest: 'again', people };
    return { rest: people.some(({ is }) => is === 'shared') ? 'event' : 'nothing', people };
  } finally {
    taken.release();
  }
}

async function eraseOne(mirror: Mirror, wanted: Wanted, leave: Deadlines): Promise<ErasedOne> {
  const { contacts, id, key } = wanted;
  const { snapshot, clock } = mirror;
  const person = shortHash(snapshot.meta, key);
  const ids = await goneOf(mirror, wanted, leave);
  if (!ids) return { person, is: 'shared' };
  const held = snapshot.transaction(() => {
    const isHeld = !passesGuard(mirror, key);
    keep(snapshot, { ...begun(snapshot, key, clock.now()), told: id, held: isHeld });
    return isHeld;
  });
  if (held) return { person, is: 'held' };
  const told = await forget(mirror, { contacts, key, ids, by: 'an event of the CRM' }, leave);
  return { person, is: told.failure ? 'failed' : 'forgotten', told };
}

/** Returns the ids without a record in the CRM; undefined if one still has the address. */
async function goneOf(
  mirror: Mirror,
  { contacts, id, key }: Wanted,
  leave: Deadlines,
): Promise<string[] | undefined> {
  const others = idsAt(mirror, key).filter((other) => other !== id);
  if (others.length > mostRecords) return undefined;
  const gone = [id];
  for (const other of others) {
    const row = await ask(contacts, other, leave);
    if (!isThere(row)) gone.push(other);
    // A record that cannot be read may have this address.
    else if (row?.key === undefined || row.key === key) return undefined;
  }
  return gone;
}

function isThere(row: DesiredRow | undefined): boolean {
  return row !== undefined && row.presence !== 'flagged';
}

async function ask(
  contacts: MirrorContacts,
  id: string,
  { signal }: Deadlines,
): Promise<DesiredRow | undefined> {
  const record = await contacts.source.one?.(id, { fields: contacts.fields, signal });
  return record && rowOf(contacts, id, record);
}

/** The addresses known for a record, also by a broken-off attempt, and all their ids. */
function peopleOf(mirror: Mirror, id: string): LockedPeople {
  const { snapshot } = mirror;
  const { recorded, duplicates } = snapshot;
  const begun = unfinishedIn(snapshot).filter(({ told }) => told === id);
  const keys = new Set([
    ...recorded.keysOfOrigin('contact', id),
    ...duplicates.namesOf('contact', id),
    ...begun.flatMap(({ key }) => key ?? []),
  ]);
  const ids = [...keys].flatMap((key) => idsAt(mirror, key));
  return { keys: [...keys], ids: [...new Set([id, ...ids])] };
}

const dayMs = 86_400_000;

const times = storedFact<readonly number[]>('erased-by-events', 'the erasures by events');

/** Counts one more erasure if it may happen; one that `forget` began may. In a transaction. */
function passesGuard({ snapshot, guards, clock }: Mirror, key: Key): boolean {
  const { meta, shaping } = snapshot;
  const its = shortHash(meta, key);
  const before = unfinishedIn(snapshot).find(({ hash }) => hash === its);
  if (before?.by === 'forget' && !before.held) return true;
  const now = clock.now();
  const week = (times.read(meta) ?? []).filter((at) => at > now - weekMs);
  const volume = {
    guard: 'delete',
    fresh: 1,
    all: week.filter((at) => at > now - dayMs).length + 1,
    unapproved: 1,
    week: week.length,
    get of() {
      return shaping.owned({ kind: 'contact', ...everything, domain: '' }).all;
    },
  } as const;
  // Events arrive one by one, so the guard's rules about the shape of a plan do not apply.
  if (judge(volume, guards.delete)) return false;
  times.write(meta, [...week, now]);
  return true;
}
