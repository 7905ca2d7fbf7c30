/**
 * A record that the CRM says it has erased for privacy: whoever stood under its id is forgotten.
 *
 *   the CRM has the record still                 an event as any other
 *   nobody is known to have stood there          nothing
 *   … and a run about everybody is under way     again: by its end it is known whom it has made
 *   a living record stands under the address     shared: two may have one address, and one of them
 *                                                is erased; an event as any other
 *   too many were erased by events of late       held: noted as asked for and not done
 *   else                                         forgotten, as by `forget`; again where that fails
 *
 * The CRM is asked for every id that is known of her, and is not read for others.
 */
import type { Deadlines } from '../records/erasure-request.ts';
import { Busy } from '../domain/errors.ts';
import type { DesiredRow, Key } from '../domain/record.ts';
import type { LockedPeople } from '../engine/context/person-locks.ts';
import { forget, type Certificate } from './forget-person.ts';
import type { Mirror, MirrorPart } from '../engine/context/mirror-context.ts';
import { shortHash } from '../engine/context/display-name.ts';
import { atHer, idsAt, most, rowOf } from '../engine/read/person-read.ts';
import { passesGuard } from './erasure-guard.ts';
import { begun, keep, unfinishedIn } from './pending/unfinished-erasures.ts';

export interface Erased {
  /** What the event is still good for. */
  rest: 'nothing' | 'event' | 'again';
  /** By the addresses under which the record stood. */
  people: ErasedOne[];
}

/** `person` is a hash. */
export type ErasedOne = { person: string } & (
  { is: 'shared' | 'held' } | { is: 'forgotten' | 'failed'; told: Certificate }
);

/** Throws what the source throws, Busy, and what `forget` does. */
export async function eraseTold(mirror: Mirror, id: string, leave: Deadlines): Promise<Erased> {
  const part = mirror.parts.find(({ source, type }) => source.one && type.erase);
  if (!part) return { rest: 'nothing', people: [] };
  const taken = await mirror.locks.take(peopleOf(mirror, part, id));
  try {
    // Whoever had her before may have moved her.
    const { keys, ...who } = peopleOf(mirror, part, id);
    if (!taken.also({ keys, ...who })) throw new Busy(atHer);
    if (isThere(await ask(part, id, leave))) return { rest: 'event', people: [] };
    if (keys.length === 0) {
      return { rest: mirror.locks.others('').length > 0 ? 'again' : 'nothing', people: [] };
    }
    const people: ErasedOne[] = [];
    for (const key of keys) people.push(await eraseOne(mirror, { part, id, key }, leave));
    return { rest: restOf(people), people };
  } finally {
    taken.release();
  }
}

function restOf(people: readonly ErasedOne[]): Erased['rest'] {
  if (people.some(({ is }) => is === 'failed')) return 'again';
  return people.some(({ is }) => is === 'shared') ? 'event' : 'nothing';
}

interface Wanted {
  part: MirrorPart;
  id: string;
  key: Key;
}

async function eraseOne(mirror: Mirror, wanted: Wanted, leave: Deadlines): Promise<ErasedOne> {
  const { part, id, key } = wanted;
  const { snapshot, clock } = mirror;
  const person = shortHash(snapshot.meta, key);
  const ids = await goneOf(mirror, wanted, leave);
  if (!ids) return { person, is: 'shared' };
  const held = snapshot.transaction(() => {
    const isHeld = !passesGuard(mirror, part.type, key);
    keep(snapshot, { ...begun(snapshot, key, clock.now()), told: id, held: isHeld });
    return isHeld;
  });
  if (held) return { person, is: 'held' };
  const told = await forget(mirror, { part, key, ids }, leave);
  return { person, is: told.failure ? 'failed' : 'forgotten', told };
}

/** The ids under which she stood and nobody stands now; undefined: somebody stands there. */
async function goneOf(
  mirror: Mirror,
  { part, id, key }: Wanted,
  leave: Deadlines,
): Promise<string[] | undefined> {
  const others = idsAt(mirror, part.type, key).filter((other) => other !== id);
  if (others.length > most) return undefined;
  const gone = [id];
  for (const other of others) {
    const row = await ask(part, other, leave);
    if (!isThere(row)) gone.push(other);
    // Of one that cannot be read nobody knows that it stands elsewhere.
    else if (row?.key === undefined || row.key === key) return undefined;
  }
  return gone;
}

function isThere(row: DesiredRow | undefined): boolean {
  return row !== undefined && row.presence !== 'flagged';
}

async function ask(
  { type, source }: MirrorPart,
  id: string,
  { signal }: Deadlines,
): Promise<DesiredRow | undefined> {
  const record = await source.one?.(id, { fields: type.fields, signal });
  return record && rowOf(type, id, record);
}

/** Under which addresses the record stood, those of an attempt that was cut short too. */
function peopleOf(mirror: Mirror, part: MirrorPart, id: string): LockedPeople {
  const { snapshot } = mirror;
  const { recorded, duplicates } = snapshot;
  const { name } = part.type;
  const begun = unfinishedIn(snapshot).filter(({ told }) => told === id);
  const keys = new Set([
    ...recorded.keysOfOrigin(name, id),
    ...duplicates.namesOf(name, id),
    ...begun.flatMap(({ key }) => key ?? []),
  ]);
  const ids = [...keys].flatMap((key) => idsAt(mirror, part.type, key));
  return { keys: [...keys], ids: [...new Set([id, ...ids])] };
}
