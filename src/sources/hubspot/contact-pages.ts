/** Yields pages of contacts until the end of the list. */
import { Unavailable } from '../../domain/errors.ts';
import type { Api, ContactPage } from './hubspot-api.ts';
import { idOf, mergedInto } from './contact-record.ts';

/** Limits the number of pages; this is enough for ten million contacts. */
const MOST_PAGES = 100_000;

/** The properties to read, and the API to read them from. */
export interface WantedPages {
  api: Api;
  properties: readonly string[];
  signal: AbortSignal;
}

/** Some contacts as they appear in a response. */
export type Sheet = Pick<ContactPage, 'values' | 'text'> & { archived: boolean };

/** Yields all contacts: first the active ones, then the archived ones. */
export async function* listedPages(wanted: WantedPages): AsyncGenerator<Sheet, void> {
  const { api, properties, signal } = wanted;
  for (const archived of [false, true]) {
    const seen = new Set<string>();
    let after: string | undefined;
    for (;;) {
      const { next, ...page } = await api.list({ after, properties, archived }, signal);
      yield { ...page, archived };
      after = next;
      if (after === undefined) break;
      if (seen.has(after) || seen.size >= MOST_PAGES) throw circling(api.host, 'its list');
      seen.add(after);
    }
  }
}

/** Yields the contacts that changed since `fromMs`. */
export async function* changedPages(
  wanted: WantedPages,
  fromMs: number,
): AsyncGenerator<Sheet, void> {
  const { api, signal } = wanted;
  let above = '0';
  for (;;) {
    const { values, next } = await api.changed({ fromMs, above }, signal);
    const ids = values.map((value) => idOf(value) ?? '');
    for (const id of ids) {
      // If ids did not increase, contacts between two pages would be skipped.
      if (id === '' || BigInt(id) <= BigInt(above)) throw circling(api.host, 'its search');
      above = id;
    }
    yield* readPages(wanted, ids);
    if (next === undefined || ids.length === 0) return;
  }
}

/** Yields the contacts with these ids, including archived ones. */
async function* readPages(
  wanted: WantedPages,
  ids: readonly string[],
): AsyncGenerator<Sheet, void> {
  const { api, properties, signal } = wanted;
  let rest = ids;
  for (const archived of [false, true]) {
    if (rest.length === 0) return;
    const { values, text } = await api.some(rest, { properties, archived }, signal);
    yield { values, text, archived };
    const found = new Set(values.flatMap((value) => [idOf(value) ?? '', ...mergedInto(value)]));
    rest = rest.filter((id) => !found.has(id));
  }
}

function circling(host: string, what: string): Unavailable {
  const why = `${host} goes in a circle with ${what}, or in another order than it was asked for`;
  return new Unavailable(why, { fix: 'read it again', acted: 'maybe' });
}
