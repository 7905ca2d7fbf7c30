/**
 * Looks, between full runs, whether anybody left all mail: by one request, as long as no counter of
 * the platform rose.
 *
 *   kept                     the platform counts now      then
 *   nothing                  anything                     kept; a full run has seen who left before
 *   counts                   no more                      kept
 *   counts                   more, of any of them         a listing of who left begins
 *   counts, and what a       anything                     a listing begins: that may know, or
 *   listing was beside,                                   have written, what was older
 *   and is over by now
 *   counts, and a listing    anything                     it goes on, with the page before: what
 *   that is not over                                      went meanwhile has moved the rest up
 *
 * The platform lists by when a contact was made, not by when somebody left, so a leaver may be on
 * any page; and as many newcomers as a count rose by prove nothing, since each who came back hides
 * another one. So a listing goes through to its end. It takes a quarter of what the route allows in
 * a window at most, and goes on with the next look. Only then what was counted before it began is
 * kept: who left since had a counter rise again.
 *
 * It holds no lease: whoever calls it does.
 */
import { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';
import type { RecordType } from '../../records/record-type.ts';
import type {
  UnsubscribeCounts,
  UnsubscribeListing,
  LeavingPage,
} from '../../records/capabilities.ts';
import { bindingState } from '../account/account-binding.ts';
import { recordUnsubscribed, type Departing } from './record-unsubscribed.ts';
import { metaValue } from '../../snapshot/database/meta-table.ts';
import type { Mirror } from '../context/mirror-context.ts';

/**
 * unproven: the snapshot is bound to another account, and a run has to prove them the same first.
 * uncounted: the platform does not tell its counts. still: nobody left. listing: not all of those
 * who left were listed yet, the next look goes on. listed: they were.
 */
export interface Sighting {
  is: 'unproven' | 'uncounted' | 'still' | 'listing' | 'listed';
  /** Pages that were listed. */
  pages: number;
  /** People of whom something was learnt. */
  learnt: number;
}

export interface Watching {
  /** Ends the waiting. */
  stop: AbortSignal;
  /** Gives up what is under way. */
  abort: AbortSignal;
  /** The snapshot was put back from a backup, and the platform was not listed since. */
  restored?: boolean;
}

const name = 'sentinel';
const pageSize = 100;
/** Share of the route's limit that a listing takes in a window. */
const share = 0.25;
/** Where nothing is known of it. */
const unknown = { pages: 10, windowMs: 60_000 };
/** More runs than these are never at it at once. */
const runsAtOnce = 8;

const counted = z.record(z.string(), z.number());
const stored = z.object({
  counts: counted,
  listing: z
    .object({
      counts: counted,
      /** Those to list still; the first is under way. */
      ways: z.array(z.string()),
      page: z.number(),
      /** How many stood on the pages before. */
      seen: z.number(),
    })
    .optional(),
  /** What was under way when people were taken in, by name. */
  sibling: z.array(z.string()),
  /** How many pages were listed by when: milliseconds since the epoch, for about a window. */
  spent: z.array(z.object({ at: z.number(), pages: z.number() })),
});
type State = z.infer<typeof stored>;
type Listing = NonNullable<State['listing']>;

/** Throws Invalid for a mirror of nobody who could leave, and what the platform's calls throw. */
export async function watch(mirror: Mirror, watching: Watching): Promise<Sighting> {
  const { snapshot, account } = mirror;
  const departing = { mirror, type: peopleOf(mirror), restored: watching.restored ?? false };
  const { type } = departing;
  const idle = { pages: 0, learnt: 0 };
  const standing = bindingState(snapshot, account);
  if (standing === 'other key' || standing === 'other url') return { is: 'unproven', ...idle };
  const asking = { signal: watching.stop, abort: watching.abort };
  const counts = await type.departures.counts(asking);
  if (!counts) return { is: 'uncounted', ...idle };
  const before = stateOf(mirror);
  const listing = before && (before.listing ?? begun(before, counts, underWay(mirror, type)));
  if (before && listing) return list(departing, { before, listing, counts, asking });
  keep(mirror, { sibling: [], spent: [], ...before, counts });
  return { is: 'still', ...idle };
}

function peopleOf({ name: mirror, parts }: Mirror): Departing['type'] {
  for (const { type } of parts) {
    const { departures } = type.capabilities;
    if (departures) return { ...type, departures };
  }
  throw new Invalid(`${mirror}: the sentinel watches contacts, and there are none → add contacts`);
}

/** A listing where there is reason for one: first of the way whose count rose. */
function begun(
  { counts: before, sibling }: State,
  counts: UnsubscribeCounts,
  now: readonly string[],
): Listing | undefined {
  const rose = (way: string): boolean => (counts[way] ?? 0) > (before[way] ?? 0);
  const ways = Object.keys(counts);
  const isOver = sibling.some((one) => !now.includes(one));
  if (!isOver && !ways.some(rose)) return undefined;
  const ordered = [...ways.filter(rose), ...ways.filter((way) => !rose(way))];
  return { counts, ways: ordered, page: 1, seen: 0 };
}

interface Listed {
  before: State;
  listing: Listing;
  counts: UnsubscribeCounts;
  asking: Parameters<UnsubscribeListing['list']>[1];
}

/** As many pages as may be asked for now; each is kept as it comes. */
async function list(
  departing: Departing,
  { before, listing, counts, asking }: Listed,
): Promise<Sighting> {
  const { mirror, type } = departing;
  const { clock } = mirror;
  const { most, spent } = mayList(mirror, type.departures, before.spent);
  const sibling = before.listing ? before.sibling : [];
  let state: State = { ...before, listing, sibling };
  let overlaps = listing.page > 1 && most > 1;
  let learnt = 0;
  let pages = 0;
  while (state.listing && pages < most) {
    const { ways, page } = state.listing;
    const at = clock.now();
    const query = { way: ways[0] ?? '', page: overlaps ? page - 1 : page, limit: pageSize };
    const found = await type.departures.list(query, asking);
    const by = clock.now();
    pages += 1;
    const next = overlaps ? state : turned(state, state.listing, { found, counts });
    overlaps = false;
    const runs = runsUnderWay(mirror);
    const departed = recordUnsubscribed(departing, { rows: found.rows, at, by }, ({ open }) => {
      const named = new Set([...next.sibling, ...runs, ...open.map(changeName)]);
      state = { ...next, sibling: [...named], spent: [...spent, { at: by, pages }] };
      mirror.snapshot.meta.set(name, JSON.stringify(state));
    });
    learnt += departed.learnt;
  }
  return { is: state.listing ? 'listing' : 'listed', pages, learnt };
}

/** After a page: the next one, the next way, or the end. */
function turned(
  state: State,
  { ways, page, seen, counts: began }: Listing,
  { found, counts }: { found: LeavingPage; counts: UnsubscribeCounts },
): State {
  const sum = seen + found.listed;
  const isLast = found.listed === 0 || sum >= found.total;
  if (!isLast) return { ...state, listing: { ways, counts: began, page: page + 1, seen: sum } };
  const [, ...rest] = ways;
  if (rest.length > 0) {
    return { ...state, listing: { ways: rest, counts: began, page: 1, seen: 0 } };
  }
  return { ...state, counts: lower(began, counts), listing: undefined };
}

/** Who came back since it began would hide somebody who leaves from now on. */
function lower(began: UnsubscribeCounts, now: UnsubscribeCounts): UnsubscribeCounts {
  const ways = Object.entries(began);
  return Object.fromEntries(ways.map(([way, count]) => [way, Math.min(count, now[way] ?? count)]));
}

/** How many pages may be asked for now, by what was spent within a window. */
function mayList(
  { limits, clock }: Mirror,
  { route }: UnsubscribeListing,
  before: State['spent'],
): { most: number; spent: State['spent'] } {
  const { limit, windowMs = unknown.windowMs } = limits()[route] ?? {};
  const most = limit === undefined ? unknown.pages : Math.max(1, Math.floor(limit * share));
  const now = clock.now();
  const spent = before.filter(({ at }) => at <= now && at > now - windowMs);
  return { most: spent.reduce((rest, { pages }) => rest - pages, most), spent };
}

const changeName = (seq: number): string => `change ${seq}`;

/**
 * A run that has not written its plan down yet may adopt people by a listing that is older than
 * ours, and so may it until it has ended.
 */
function runsUnderWay({ snapshot: { runs, journal } }: Mirror): string[] {
  return runs
    .newest(runsAtOnce)
    .filter(({ endedAt, mode }) => endedAt === null && mode !== 'single')
    .map(({ id }) => `run ${id}, ${journal.holds(id) ? 'sending' : 'reading'}`);
}

function underWay(mirror: Mirror, type: RecordType): string[] {
  const open = mirror.snapshot.journal.open(type.name);
  return [...runsUnderWay(mirror), ...open.map(({ seq }) => changeName(seq))];
}

function stateOf({ snapshot: { meta } }: Mirror): State | undefined {
  return metaValue(meta, name, stored);
}

function keep({ snapshot: { meta, transaction } }: Mirror, state: State): void {
  const text = JSON.stringify(state);
  if (meta.get(name) !== text) transaction(() => meta.set(name, text));
}
