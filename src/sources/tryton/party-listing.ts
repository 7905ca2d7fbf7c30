/**
 * Reads parties: all of them, those that changed, or some by their ids; each as the party that it
 * stands for.
 */
import { Unavailable } from '../../domain/errors.ts';
import { type Flaw, stoppedBy } from '../shared/read-certificate.ts';
import type { SourceRecord } from '../source.ts';
import type { Api, Domain } from './tryton-api.ts';
import { momentOf, type Party, partyOf } from './party-record.ts';
import { settle, type Settling, standIns } from './merged-parties.ts';
import { askedFor, type SelectedFields } from './field-selection.ts';

/** Yields records and returns what prevents a certificate. */
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
  // A party that was never changed has no time of change.
  const touched = ['OR', ['create_date', '>=', moment], ['write_date', '>=', moment]];
  const domain = ['OR', touched, ['contact_mechanisms', 'where', touched]];
  return listing(settling, domain, async (page) => standIns(settling.parties, page));
}

/** Yields the records of a condition; `besides` returns further parties to read because of some. */
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

/** Reads parties as Tryton has them. */
export interface Parties {
  readonly api: Api;
  /**
   * Yields pages by rising ids, each from above the last one, because a party that changes
   * meanwhile would move in another order.
   */
  pages(domain: Domain): AsyncGenerator<Party[], void>;
  /** Returns the parties with these ids that exist. */
  some(ids: readonly number[]): Promise<Party[]>;
  /** Returns the parties that were merged into these. */
  losers(ids: readonly number[]): Promise<Party[]>;
}

/** Creates the reader of one reading. */
export function createParties(api: Api, wanted: SelectedFields): Parties {
  const pages: Parties['pages'] = async function* (domain) {
    const fields = askedFor(wanted);
    for (let above = 0; ;) {
      const listing = { above, domain, fields, limit: PAGE };
      const { values, text } = await api.list('party.party', listing);
      if (values.length === 0) return;
      const page = values.map((value) => partyOf(value, wanted, text) ?? odd(api.host));
      for (const { id } of page) {
        // Otherwise parties between two pages would be skipped.
        if (id <= above) throw circling(api.host);
        above = id;
      }
      yield page;
    }
  };
  /** Returns the parties of a condition; `most`: there cannot be more. */
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
  const what = `${host} answered a party that is none → read it again`;
  throw new Unavailable(what, { acted: 'maybe' });
}

function circling(host: string): Unavailable {
  const why = `${host} lists parties in another order than it was asked for`;
  return new Unavailable(`${why} → read it again`, { acted: 'maybe' });
}
