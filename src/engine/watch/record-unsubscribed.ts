/**
 * Records that people were listed as unsubscribed: first in the do-not-contact list, then in the
 * snapshot, as a run would. Nothing is sent, and nothing is concluded about other people.
 */
import type { RecordType, States } from '../../records/record-type.ts';
import type { UnsubscribeListing } from '../../records/capabilities.ts';
import type { ListRemark } from '../../domain/do-not-contact.ts';
import type { Key, ObservedRow, RecordedRow } from '../../domain/record.ts';
import { factsIn, latestNow } from '../context/platform-knowledge.ts';
import type { Mirror } from '../context/mirror-context.ts';
import { identityOf, noListChanges } from '../context/person-identity.ts';

/** The mirror and record type that are watched. */
export interface Departing {
  mirror: Mirror;
  type: RecordType & { readonly departures: UnsubscribeListing };
  /** Whether the snapshot was restored from a backup and the platform has not been listed since. */
  restored: boolean;
}

/** The people on one page of a listing; times are in milliseconds since the epoch. */
interface Sight {
  rows: readonly ObservedRow[];
  /** When the page was requested, and when the response arrived. */
  at: number;
  by: number;
}

/** The result of recording. */
export interface Departed {
  /** The number of people newly known to have unsubscribed. */
  learnt: number;
  /** The open changes because of which people were not recorded. */
  open: number[];
}

/**
 * Records the listed people who are recorded or planned; `more` is called in the same transaction.
 * It does not yield, so other writes to the snapshot come before or after it.
 */
export function recordUnsubscribed(
  departing: Departing,
  sight: Sight,
  more: (departed: Departed) => void,
): Departed {
  const { type, mirror } = departing;
  const { snapshot, doNotContact, clock } = mirror;
  const changes = snapshot.journal.open(type.name);
  const remarks: ListRemark[] = [];
  const notes: RecordedRow[] = [];
  const open: number[] = [];
  const isOpen = new Set(changes.map(({ key }) => key));
  for (const [key, observed] of peopleIn(departing, sight.rows, isOpen)) {
    open.push(...changes.filter((change) => change.key === key).map(({ seq }) => seq));
    if (isOpen.has(key)) continue;
    const states = statesOf(departing, key, { ...sight, observed });
    const { note, news = noListChanges } = type.decide(states);
    const { adds, ends } = news;
    if (adds.length + ends.length > 0)
      remarks.push({ ...identityOf(mirror, type, key), adds, ends });
    if (note && isNews(note, states.recorded)) notes.push(note);
  }
  doNotContact.write(remarks, clock.now());
  const learnt = new Set([...remarks, ...notes].map(({ key }) => key)).size;
  const departed = { learnt, open };
  snapshot.transaction(() => {
    for (const note of notes) snapshot.recorded.put(note);
    more(departed);
  });
  return departed;
}

/**
 * Groups the rows by person: under the contact's own key, and under the key that the contact is
 * recorded with.
 */
function peopleIn(
  { mirror, type }: Departing,
  rows: readonly ObservedRow[],
  isOpen: ReadonlySet<Key>,
): Map<Key, ObservedRow[]> {
  const { recorded, journal } = mirror.snapshot;
  const people = new Map<Key, ObservedRow[]>();
  const isKnown = (key: Key): boolean =>
    recorded.get(type.name, key) !== undefined ||
    isOpen.has(key) ||
    journal.isPlanned(type.name, key);
  for (const row of rows) {
    const renamed = recorded.everOfId(type.name, row.id, row.alias);
    const keys = [...(isKnown(row.alias) ? [row.alias] : []), ...renamed.map((one) => one.key)];
    for (const key of keys) people.set(key, [...(people.get(key) ?? []), row]);
  }
  return people;
}

/**
 * Returns what the platform shows about a person, and what is recorded. The source was not read, so
 * a person who is not recorded but has a planned change counts as present in the source.
 */
function statesOf(
  { mirror, type, restored }: Departing,
  key: Key,
  { observed, at, by }: Omit<Sight, 'rows'> & { observed: readonly ObservedRow[] },
): States {
  const { snapshot, doNotContact } = mirror;
  const recorded = snapshot.recorded.get(type.name, key);
  return {
    key,
    desired: recorded ? [] : [type.departures.named(key)],
    recorded,
    former: [],
    successors: [],
    renamed: [],
    strays: false,
    origins: snapshot.recorded.originsOf(type.name, key),
    statedOut: [],
    parked: [],
    entries: doNotContact.concerning(identityOf(mirror, type, key)),
    observed,
    sight: 'assumed',
    certified: false,
    restored,
    absence: undefined,
    mayDelete: false,
    at,
    by,
    latest: by + latestNow(mirror) - mirror.clock.now(),
    lost: new Set(snapshot.retryLater.parts(type.name).map(({ part }) => part)),
    facts: factsIn(snapshot),
  };
}

/**
 * Returns whether a note contains anything new. This does not decide which contact of a person is
 * ours: if their contact is gone or has another id now, only the do-not-contact list is updated.
 */
function isNews(note: RecordedRow, recorded: RecordedRow | undefined): boolean {
  if (!recorded) return true;
  if (note.id !== recorded.id) return false;
  return note.body !== recorded.body || note.shown !== recorded.shown;
}
