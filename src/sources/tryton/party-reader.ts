/** Reads parties: page by page, by rising ids, or those of some ids. */
import { Unavailable } from '../../domain/errors.ts';
import type { Api, Domain } from './tryton-api.ts';
import { askedFor, type SelectedFields } from './field-selection.ts';
import { partyOf, type Party } from './party-record.ts';

const PAGE = 500;

export interface Parties {
  readonly api: Api;
  /** Each always from above the last one: who changes meanwhile moves in no order. */
  pages(domain: Domain): AsyncGenerator<Party[], void>;
  /** Those of these ids that there are. */
  some(ids: readonly number[]): Promise<Party[]>;
  /** Those that were merged into these. */
  losers(ids: readonly number[]): Promise<Party[]>;
}

export function createParties(api: Api, wanted: SelectedFields): Parties {
  const pages: Parties['pages'] = async function* (domain) {
    const fields = askedFor(wanted);
    for (let above = 0; ;) {
      const listing = { above, domain, fields, limit: PAGE };
      const { values, text } = await api.list('party.party', listing);
      if (values.length === 0) return;
      const page = values.map((value) => partyOf(value, wanted, text) ?? odd(api.host));
      for (const { id } of page) {
        // Else those between two pages would be passed over.
        if (id <= above) throw circling(api.host);
        above = id;
      }
      yield page;
    }
  };
  /** `most`: no more than that there are. */
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
