/**
 * Reads parties: all of them, those that changed, or some by their ids; each as the party to which
 * it resolves. After a merge (Tryton's "Replace") that is another party:
 *
 *   party          leads to                          yielded as
 *   not merged     ·                                 itself
 *   merged         a party, itself merged or not     the last party, under its own id
 *   merged         nothing, or a circle              itself, inactive
 *
 * A merged party is thus a person whose address has changed to that of the remaining party, and
 * whose opt-outs move along. If the resulting party is inactive and has no address, not even a
 * former one, it was never a contact or was erased, so it yields no record.
 */
import { Unavailable } from '../../domain/errors.ts';
import { type Flaw, stoppedBy } from '../shared/read-certificate.ts';
import type { SourceRecord } from '../source.ts';
import type { Api, Domain } from './tryton-api.ts';
import { momentOf, type Party, partyOf } from './party-record.ts';
import { askedFor, type SelectedFields } from './field-selection.ts';
import type { JsonRecords } from '../shared/json-records.ts';

/** Yields records and returns the flaws that prevent a certificate. */
type Listing = AsyncGenerator<SourceRecord[], Flaw[]>;

/** Yields all parties, and counts them before and after. */
export async function* everybody(settling: Settling): Listing {
  const { api } = settling.parties;
  const before = await api.count();
  let read = 0;
  const flaws = yield* listing(settling, [], async (page) => {
    read += page.length;
    return [];
  });
  if (flaws.length > 0) return flaws;
  const after = await api.count();
  if (read === before || read === after) return [];
  const why = `${read} parties were read, and Tryton counts ${after}`;
  return [{ why, fix: 'read it again when the CRM is quieter' }];
}

/** Yields the parties that changed since `sinceMs`, by the server's clock. */
export function changedSince(settling: Settling, sinceMs: number): Listing {
  const moment = momentOf(sinceMs);
  // A party that was never changed has no change time, so its creation time is checked too.
  const touched = ['OR', ['create_date', '>=', moment], ['write_date', '>=', moment]];
  const domain = ['OR', touched, ['contact_mechanisms', 'where', touched]];
  return listing(settling, domain, async (page) => standIns(settling.parties, page));
}

/**
 * Yields the records that match a condition. `besides` returns further parties that must be read
 * because of the given ones.
 */
async function* listing(
  settling: Settling,
  domain: Domain,
  besides: (page: readonly Party[]) => Promise<Party[]>,
): Listing {
  let pages = 0;
  try {
    for await (const page of settling.parties.pages(domain)) {
      const records = await settle(settling, [...page, ...(await besides(page))]);
      pages += 1;
      if (records.length > 0) yield records;
    }
  } catch (error) {
    return [stoppedBy(error, { hasBegun: pages > 0, where: `at page ${pages + 1}` })];
  }
  return [];
}

const PAGE = 500;

/** Reads parties as Tryton returns them. */
export interface Parties {
  readonly api: Api;
  /**
   * Yields pages in ascending order of ids, each starting above the last id, because in any other
   * order a party that changes meanwhile would move.
   */
  pages(domain: Domain): AsyncGenerator<Party[], void>;
  /** Returns the existing parties with these ids. */
  some(ids: readonly number[]): Promise<Party[]>;
  /** Returns the parties that were merged into these. */
  losers(ids: readonly number[]): Promise<Party[]>;
}

/** Creates the reader for one read. */
export function createParties(api: Api, wanted: SelectedFields): Parties {
  const pages: Parties['pages'] = async function* (domain) {
    const fields = askedFor(wanted);
    for (let above = 0; ;) {
      const listing = { above, domain, fields, limit: PAGE };
      const { values, text } = await api.list('party.party', listing);
      if (values.length === 0) return;
      const page = values.map((value) => partyOf(value, wanted, text) ?? odd(api.host));
      for (const { id } of page) {
        // If ids did not increase, parties between two pages would be skipped.
        if (id <= above) throw circling(api.host);
        above = id;
      }
      yield page;
    }
  };
  /** Returns the parties that match a condition; `most` is an upper bound of their number. */
  const those = async (domain: Domain, most = Infinity) => {
    const found: Party[] = [];
    for await (const page of pages(domain)) {
      found.push(...page);
      if (found.length >= most) break;
    }
    return found;
  };
  return {
    api,
    pages,
    some: async (ids) => (ids.length === 0 ? [] : those([['id', 'in', ids]], ids.length)),
    losers: async (ids) => (ids.length === 0 ? [] : those([['replaced_by', 'in', ids]])),
  };
}

function odd(host: string): never {
  const what = `${host} answered a party that is none`;
  throw new Unavailable(what, { fix: 'read it again', acted: 'maybe' });
}

function circling(host: string): Unavailable {
  const why = `${host} lists parties in another order than it was asked for`;
  return new Unavailable(why, { fix: 'read it again', acted: 'maybe' });
}

/** The maximum number of merges to follow from one party. */
const MOST_STEPS = 10;

/** The parts needed to follow merges. */
interface Settling {
  parties: Parties;
  records: JsonRecords;
}

/** Returns the records of these parties, in this order. */
export async function settle(
  { parties, records }: Settling,
  rows: readonly Party[],
): Promise<SourceRecord[]> {
  const known = new Map<number, Party | null>(rows.map((row) => [row.id, row]));
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const ids = [...new Set(rows.flatMap((row) => needOf(row, known) ?? []))];
    if (ids.length === 0) break;
    for (const id of ids) known.set(id, null);
    for (const row of await parties.some(ids)) known.set(row.id, row);
  }
  return rows.flatMap((row) => {
    const last = lastOf(row, known);
    if (!last.isActive && !last.isReachable) return [];
    const where = `party ${row.id}${last.id === row.id ? '' : `, merged into ${last.id}`}`;
    return [records.recordOf({ ...last.values, id: String(row.id) }, where, last.text)];
  });
}

/**
 * Returns the parties that were merged into one of these, directly or over several steps, because
 * they change with it.
 */
async function standIns(parties: Parties, rows: readonly Party[]): Promise<Party[]> {
  const seen = new Set(rows.map(({ id }) => id));
  const found: Party[] = [];
  let ids = [...seen];
  for (let step = 0; step < MOST_STEPS && ids.length > 0; step += 1) {
    const fresh = (await parties.losers(ids)).filter(({ id }) => !seen.has(id));
    found.push(...fresh);
    ids = fresh.map(({ id }) => id);
    for (const id of ids) seen.add(id);
  }
  return found;
}

type Known = ReadonlyMap<number, Party | null>;

/** Returns the id that has to be looked up next, or undefined if there is none. */
function needOf(row: Party, known: Known): number | undefined {
  let at = row;
  for (let steps = 0; steps <= MOST_STEPS && at.replacedBy !== undefined; steps += 1) {
    const next = known.get(at.replacedBy);
    if (next === undefined) return at.replacedBy;
    if (next === null) return undefined;
    at = next;
  }
  return undefined;
}

function lastOf(row: Party, known: Known): Party {
  let at = row;
  for (let steps = 0; steps <= MOST_STEPS; steps += 1) {
    if (at.replacedBy === undefined) return at;
    const next = known.get(at.replacedBy);
    if (!next) return row;
    at = next;
  }
  return row;
}
