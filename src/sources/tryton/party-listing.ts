/** All parties, or those that have changed, each as whom it stands for. */
import { Interrupted, isExpected } from '../../domain/errors.ts';
import type { Flaw } from '../shared/read-certificate.ts';
import type { SourceRecord } from '../source.ts';
import type { Domain } from './tryton-api.ts';
import type { Party } from './party-record.ts';
import { settle, standIns, type Settling } from './merged-parties.ts';
import { momentOf } from './json-value.ts';

/** Answers what keeps the reading from its certificate. */
type Listing = AsyncGenerator<SourceRecord[], Flaw[]>;

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

/** `sinceMs`: by the clock of the server. */
export function changedSince(settling: Settling, sinceMs: number): Listing {
  const moment = momentOf(sinceMs);
  // Whatever was never changed has no time of change.
  const touched = ['OR', ['create_date', '>=', moment], ['write_date', '>=', moment]];
  const domain = ['OR', touched, ['contact_mechanisms', 'where', touched]];
  return listing(settling, domain, async (page) => standIns(settling.parties, page));
}

/** `besides`: who else is to be read because of some. */
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
    if (pages === 0 || !isExpected(error) || error instanceof Interrupted) throw error;
    const [what = '', fix = 'read it again'] = error.message.split(' → ');
    return [{ why: `reading stopped at page ${pages + 1}: ${what}`, fix }];
  }
  return [];
}
