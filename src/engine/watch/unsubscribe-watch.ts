/**
 * Checks, between full runs, whether anybody has unsubscribed from all mail. This takes one request
 * as long as none of the platform's counters has risen.
 *
 *   stored                     the platform's counts   result
 *   nothing                    anything                the counts are stored: a full run has
 *                                                      observed who unsubscribed before
 *   counts                     none is higher          the counts are stored
 *   counts                     any is higher           a listing of the unsubscribed begins
 *   counts, and runs or        anything                a listing begins: the runs and changes
 *   changes that were in                               may have known, or written, older states
 *   progress during a listing
 *   and are over now
 *   counts, and an unfinished  anything                the listing continues one page earlier,
 *   listing                                            because removed rows moved others up
 *
 * The platform sorts by when a contact was created, not by when the person left, so a new opt-out
 * may be on any page; and each person who resubscribed hides another one in the counts. So a
 * listing is always read to the end. It uses at most a quarter of the route's limit per window, and
 * continues with the next check. The counts from before the listing are stored only when it ends,
 * so that an opt-out made during the listing still shows as a raised counter in the next check.
 *
 * The listed people are recorded first in the do-not-contact list, then in the snapshot. Nothing is
 * sent, and nothing is concluded about other people. The caller holds the lease.
 */
import { isDeepStrictEqual } from 'node:util';
import { Invalid } from '../../domain/errors.ts';
import type { Contacts, LeavingPage, UnsubscribeCounts } from '../../records/contact/contacts.ts';
import { type ContactStates, decodeContact } from '../../records/contact/observe/contact-state.ts';
import { bindingState } from '../account/account-binding.ts';
import { storedFact } from '../../store/database/meta-table.ts';
import { storeDifference, factsIn, latestNow } from '../context/platform-knowledge.ts';
import type { Mirror } from '../context/mirror-context.ts';
import type { ListRemark } from '../../domain/do-not-contact.ts';
import type { Key, ObservedRow, RecordedRow } from '../../domain/record.ts';
import { identityOf, noListChanges } from '../context/person-identity.ts';

/**
 * The result of a check.
 *
 *   unproven    the snapshot is bound to another account; a run must first prove it is the same one
 *   uncounted   the platform does not state its counts
 *   still       no person has unsubscribed
 *   listing     not all of the unsubscribed are listed yet; the next check continues
 *   listed      all of them are listed
 */
export interface Sighting {
  is: 'unproven' | 'uncounted' | 'still' | 'listing' | 'listed';
  pages: number;
  /** The number of people newly known to have unsubscribed. */
  learnt: number;
}

export interface Watching {
  stop: AbortSignal;
  /** When aborted, the check gives up its requests in flight. */
  abort: AbortSignal;
  /** Whether the snapshot was restored from a backup and the platform has not been listed since. */
  restored?: boolean;
}

const pageSize = 100;
const limitShare = 0.25;
/** Of a route without a known limit. */
const unknown = { pages: 10, windowMs: 60_000 };
const runsAtOnce = 8;

interface Listing {
  counts: Record<string, number>;
  /** The ways still to list; the first is being listed. */
  ways: string[];
  page: number;
  seen: number;
}
interface State {
  counts: Record<string, number>;
  listing?: Listing | undefined;
  /** The runs and changes in progress when people were recorded, by name. */
  sibling: string[];
  /** When pages were listed, for about one window; in milliseconds since the epoch. */
  spent: { at: number; pages: number }[];
}
const storedState = storedFact<State>('sentinel', 'the state of the unsubscribe check');

/** Checks once. Throws Invalid for a mirror without contacts, and the errors of the requests. */
export async function watch(mirror: Mirror, watching: Watching): Promise<Sighting> {
  const { snapshot, account, clock } = mirror;
  const { meta, transaction } = snapshot;
  const departing = { mirror, contacts: peopleOf(mirror), restored: watching.restored ?? false };
  const { departures } = departing.contacts;
  const idle = { pages: 0, learnt: 0 };
  const binding = bindingState(snapshot, account);
  if (binding !== 'free' && binding !== 'ours') return { is: 'unproven', ...idle };
  const asking = { signal: watching.stop, abort: watching.abort };
  const counts = await departures.counts(asking);
  storeDifference(mirror);
  if (!counts) return { is: 'uncounted', ...idle };
  const before = storedState.read(meta);
  let listing = before?.listing;
  if (before && !listing) {
    const open = snapshot.journal.open('contact').map(({ seq }) => `change ${seq}`);
    const underWay = [...runsUnderWay(mirror), ...open];
    const rose = (way: string): boolean => (counts[way] ?? 0) > (before.counts[way] ?? 0);
    const ways = Object.keys(counts);
    // A listing starts with the ways whose count rose.
    const ordered = [...ways.filter(rose), ...ways.filter((way) => !rose(way))];
    const isOver = before.sibling.some((one) => !underWay.includes(one));
    if (isOver || ways.some(rose)) listing = { counts, ways: ordered, page: 1, seen: 0 };
  }
  if (!before || !listing) {
    const next = { sibling: [], spent: [], ...before, counts };
    if (!isDeepStrictEqual(next, before)) transaction(() => storedState.write(meta, next));
    return { is: 'still', ...idle };
  }
  // Lists the pages that the limit allows after those of the last window, recording each.
  const { limit, windowMs = unknown.windowMs } = mirror.limits()[departures.route] ?? {};
  const now = clock.now();
  const spent = before.spent.filter(({ at }) => at <= now && at > now - windowMs);
  const share = limit === undefined ? unknown.pages : Math.max(1, Math.floor(limit * limitShare));
  const most = spent.reduce((rest, one) => rest - one.pages, share);
  const sibling = before.listing ? before.sibling : [];
  let state: State = { ...before, listing, sibling };
  let overlaps = listing.page > 1 && most > 1;
  let learnt = 0;
  let pages = 0;
  while (state.listing && pages < most) {
    const { ways, page } = state.listing;
    const at = clock.now();
    const query = { way: ways[0] ?? '', page: overlaps ? page - 1 : page, limit: pageSize };
    const found = await departures.list(query, asking);
    const by = clock.now();
    pages += 1;
    const next = overlaps ? state : turned(state, state.listing, { found, counts });
    overlaps = false;
    const runs = runsUnderWay(mirror);
    learnt += recordUnsubscribed(departing, { rows: found.rows, at, by }, (open) => {
      const named = new Set([...next.sibling, ...runs, ...open.map((seq) => `change ${seq}`)]);
      state = { ...next, sibling: [...named], spent: [...spent, { at: by, pages }] };
      storedState.write(meta, state);
    });
  }
  return { is: state.listing ? 'listing' : 'listed', pages, learnt };
}

function peopleOf({ name: mirror, contacts }: Mirror): Contacts {
  if (contacts) return contacts;
  throw new Invalid(`${mirror}: the unsubscribe check watches contacts, and there are none`, {
    fix: 'add contacts',
  });
}

function turned(
  state: State,
  { ways, page, seen, counts: began }: Listing,
  { found, counts: now }: { found: LeavingPage; counts: UnsubscribeCounts },
): State {
  const sum = seen + found.listed;
  const isLast = found.listed === 0 || sum >= found.total;
  if (!isLast) return { ...state, listing: { ways, counts: began, page: page + 1, seen: sum } };
  const [, ...rest] = ways;
  if (rest.length > 0) {
    return { ...state, listing: { ways: rest, counts: began, page: 1, seen: 0 } };
  }
  // People who resubscribed would otherwise hide as many new opt-outs.
  const lower = Object.entries(began).map(([way, n]) => [way, Math.min(n, now[way] ?? n)] as const);
  return { ...state, counts: Object.fromEntries(lower), listing: undefined };
}

/** A run may record people from a listing that is older than ours. */
function runsUnderWay({ snapshot: { runs, journal } }: Mirror): string[] {
  return runs
    .newest(runsAtOnce)
    .filter(({ endedAt, mode }) => endedAt === null && mode !== 'single')
    .map(({ id }) => `run ${id}, ${journal.holds(id) ? 'sending' : 'reading'}`);
}

interface Departing {
  mirror: Mirror;
  contacts: Contacts;
  /** Whether the snapshot was restored from a backup and the platform has not been listed since. */
  restored: boolean;
}

interface Sight {
  rows: readonly ObservedRow[];
  /** When the page was requested, and when the response arrived. */
  at: number;
  by: number;
}

/**
 * Records the listed people who are recorded or planned, and returns how many are newly known to
 * have unsubscribed; `more` is called in the same transaction, with the open changes because of
 * which people were not recorded. It does not yield.
 */
function recordUnsubscribed(
  departing: Departing,
  sight: Sight,
  more: (open: readonly number[]) => void,
): number {
  const { contacts, mirror } = departing;
  const { snapshot, doNotContact, clock } = mirror;
  const changes = snapshot.journal.open('contact');
  const remarks: ListRemark[] = [];
  const notes: RecordedRow[] = [];
  const open: number[] = [];
  const isOpen = new Set(changes.map(({ key }) => key));
  for (const [key, observed] of peopleIn(departing, sight.rows, isOpen)) {
    open.push(...changes.filter((change) => change.key === key).map(({ seq }) => seq));
    if (isOpen.has(key)) continue;
    const states = statesOf(departing, key, { ...sight, rows: observed });
    const { note, news = noListChanges } = contacts.decide(states);
    const { adds, ends } = news;
    if (adds.length + ends.length > 0) remarks.push({ ...identityOf(mirror, key), adds, ends });
    // This does not decide which contact of a person is ours: if their contact is gone or has
    // another id now, only the do-not-contact list is updated.
    const { recorded: row } = states;
    const isNews = !row || note?.body !== row.body || note.shown !== row.shown;
    if (note && isNews && (!row || note.id === row.id)) notes.push(note);
  }
  doNotContact.write(remarks, clock.now());
  snapshot.transaction(() => {
    for (const note of notes) snapshot.recorded.put(note);
    more(open);
  });
  return new Set([...remarks, ...notes].map(({ key }) => key)).size;
}

/** Groups the rows by person: under the contact's own key, and under recorded ones. */
function peopleIn(
  { mirror }: Departing,
  rows: readonly ObservedRow[],
  isOpen: ReadonlySet<Key>,
): Map<Key, ObservedRow[]> {
  const { recorded, journal } = mirror.snapshot;
  const people = new Map<Key, ObservedRow[]>();
  const isKnown = (key: Key): boolean =>
    recorded.get('contact', key) !== undefined ||
    isOpen.has(key) ||
    journal.isPlanned('contact', key);
  for (const row of rows) {
    const renamed = recorded.everOfId({ kind: 'contact', id: row.id, notKey: row.alias });
    const keys = [...(isKnown(row.alias) ? [row.alias] : []), ...renamed.map((one) => one.key)];
    for (const key of keys) people.set(key, [...(people.get(key) ?? []), row]);
  }
  return people;
}

/** Returns a person's states. The source was not read: who is only planned counts as present. */
function statesOf(
  { mirror, contacts, restored }: Departing,
  key: Key,
  { rows: observed, at, by }: Sight,
): ContactStates {
  const { snapshot, doNotContact } = mirror;
  const row = snapshot.recorded.get('contact', key);
  return {
    key,
    desired: row ? [] : [decodeContact.desired(contacts.departures.named(key))],
    recorded: row && decodeContact.recorded(row),
    former: [],
    successors: [],
    renamed: [],
    strays: false,
    origins: snapshot.recorded.originsOf('contact', key),
    statedOut: [],
    parked: [],
    entries: doNotContact.concerning(identityOf(mirror, key)),
    observed: observed.map((one) => decodeContact.observed(one)),
    sight: 'assumed',
    certified: false,
    restored,
    absence: undefined,
    mayDelete: false,
    at,
    by,
    latest: by + latestNow(mirror) - mirror.clock.now(),
    lost: new Set(snapshot.retryLater.parts('contact').map(({ part }) => part)),
    facts: factsIn(snapshot),
  };
}
