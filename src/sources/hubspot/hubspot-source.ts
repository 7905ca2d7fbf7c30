/**
 * Reads the contacts of a HubSpot account. contact-record.ts explains merged contacts.
 *
 * `read` reads the list of active contacts, then the list of archived ones. A contact that is
 * archived meanwhile is in the second list at the latest; in the reverse order it might be in
 * neither list. A contact that is restored meanwhile may be missing from both. It was archived
 * before, and a single read draws no conclusion. Each list ends when HubSpot names no next page,
 * and the ends of both lists together are the proof of completeness.
 *
 * `changes` uses the search only to find which contacts changed. Because the search index lags
 * behind, its values could be older than what an event has already read, so the values are read by
 * id. The search does not find archived contacts, and no list is ordered by time; the next full
 * read finds them, or an event does. The start time of a read comes from HubSpot's clock, because
 * it is compared with the times of changes.
 *
 * HubSpot cannot report whether anything has changed, so a read stays valid for a quarter of an
 * hour.
 */
import { milliseconds } from '../../domain/values/config-value.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import {
  brokenFlaw,
  certificateOf,
  type Flaw,
  holding,
  withCursor,
  stoppedBy,
} from '../shared/read-certificate.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { type Api, createApi, readToken, createPace } from './hubspot-api.ts';
import { contactRecords, idOf, mergedInto, mergedProperties } from './contact-record.ts';
import type { HubspotOptions } from './options.ts';
import { Unavailable, Invalid } from '../../domain/errors.ts';
import type { Clock } from '../../domain/clock.ts';
import { quoted, hintsFor } from '../shared/field-suggestions.ts';

export function hubspotSource(options: HubspotOptions, surroundings: Surroundings): Source {
  const { clock } = surroundings;
  const around = { ...surroundings, pace: createPace() };
  const wanted = createProperties(clock);
  const overlapMs = milliseconds(options.overlap);
  const { keep, still } = holding(clock);
  const open = async () => createApi({ ...options, token: readToken(options) }, around);
  const certified = (reading: string, flaws: readonly Flaw[], cursor: string | undefined) => {
    keep(reading);
    return withCursor(certificateOf(reading, flaws), cursor);
  };
  return {
    async *read({ fields, signal }) {
      const reading = `hubspot-${clock.now()}`;
      const api = await open();
      try {
        const { properties, at } = await wanted.now(api, { fields, signal });
        const flaws = yield* toRecords(listPages({ api, properties, signal }), fields);
        const cursor = at === undefined ? undefined : new Date(at - overlapMs).toISOString();
        return certified(reading, flaws, cursor);
      } finally {
        await api.close();
      }
    },
    async *changes(
      since,
      { fields, signal },
    ): AsyncGenerator<SourceRecord[], Certificate | 'lost'> {
      const reading = `hubspot-${clock.now()}`;
      const fromMs = Date.parse(since);
      if (Number.isNaN(fromMs)) return 'lost';
      const api = await open();
      try {
        const { properties, at = fromMs } = await wanted.now(api, { fields, signal });
        // HubSpot's clock was set back, or this is another account. Changes made before the old
        // time would be missing from the list.
        if (fromMs > at) return 'lost';
        const flaws = yield* toRecords(listChanged({ api, properties, signal }, fromMs), fields);
        const cursorMs = Math.max(fromMs, at - overlapMs);
        return certified(reading, flaws, new Date(cursorMs).toISOString());
      } finally {
        await api.close();
      }
    },
    async one(id, request) {
      if (!/^[1-9]\d{0,19}$/.test(id)) return undefined;
      const api = await open();
      try {
        const properties = await wanted.lately(api, request);
        for (const archived of [false, true]) {
          const found = await api.one(id, { properties, archived }, request.signal);
          if (!found) continue;
          const origin = { where: `contact ${id}`, text: found.text, archived };
          // If a merged contact is requested, HubSpot returns the remaining one.
          return contactRecords(request.fields).one(id, found.values[0], origin);
        }
        return undefined;
      } finally {
        await api.close();
      }
    },
    still,
  };
}

/** Yields the records of all pages. After the first one, a failure ends the read. */
async function* toRecords(
  sheets: AsyncGenerator<Sheet, void>,
  fields: readonly string[],
): AsyncGenerator<SourceRecord[], Flaw[]> {
  const records = contactRecords(fields);
  const broken: string[] = [];
  let pages = 0;
  try {
    for await (const { values, ...origin } of sheets) {
      pages += 1;
      const batch = values.flatMap((value, at) =>
        records.all(value, { ...origin, where: `page ${pages}, contact ${at + 1}` }),
      );
      broken.push(...batch.flatMap((record) => ('broken' in record ? [record.where] : [])));
      if (batch.length > 0) yield batch;
    }
  } catch (error) {
    return [stoppedBy(error, { hasBegun: pages > 0, where: `at page ${pages + 1}` })];
  }
  const fix = 'mend those contacts in HubSpot';
  const [first] = broken;
  return broken.length > 0 ? [brokenFlaw('contact', { count: broken.length, first, fix })] : [];
}

/** Limits the number of pages; this is enough for ten million contacts. */
const MOST_PAGES = 100_000;

interface WantedPages {
  api: Api;
  properties: readonly string[];
  signal: AbortSignal;
}

/** Some contacts as they appear in a response, and whether archived ones were requested. */
interface Sheet {
  values: unknown[];
  text: string;
  archived: boolean;
}

/** Yields all contacts: first the active ones, then the archived ones. */
async function* listPages({ api, properties, signal }: WantedPages): AsyncGenerator<Sheet, void> {
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
async function* listChanged(
  { api, properties, signal }: WantedPages,
  fromMs: number,
): AsyncGenerator<Sheet, void> {
  let above = '0';
  for (;;) {
    const { values, next } = await api.changed({ fromMs, above }, signal);
    const ids = values.map((value) => idOf(value) ?? '');
    for (const id of ids) {
      // If ids did not increase, contacts between two pages would be skipped.
      if (id === '' || BigInt(id) <= BigInt(above)) throw circling(api.host, 'its search');
      above = id;
    }
    let rest: readonly string[] = ids;
    for (const archived of [false, true]) {
      if (rest.length === 0) break;
      const found = await api.some(rest, { properties, archived }, signal);
      yield { values: found.values, text: found.text, archived };
      const known = found.values.flatMap((value) => [idOf(value) ?? '', ...mergedInto(value)]);
      rest = rest.filter((id) => !known.includes(id));
    }
    if (next === undefined || ids.length === 0) return;
  }
}

function circling(host: string, what: string): Unavailable {
  const why = `${host} goes in a circle with ${what}, or in another order than it was asked for`;
  return new Unavailable(why, { fix: 'read it again', acted: 'maybe' });
}

/** How long the property names are trusted when a single contact is read. */
const HOLDS_MS = 15 * 60_000;

const own = ['id', 'createdAt', 'updatedAt', 'archived', 'archivedAt'];
const inside = 'properties.';

/**
 * Selects the properties to request, so that every field of the configuration is included. HubSpot
 * silently omits an unknown property, so the field would look empty and an opt-out could be missed.
 * Therefore the names are requested first, and remembered. Throws Invalid if a property does not
 * exist.
 */
function createProperties(clock: Clock) {
  let known: { names: ReadonlySet<string>; at: number } | undefined;
  /** Looks the names up now. Returns the properties, and HubSpot's time of that, if known. */
  const now = async (api: Api, { fields, signal }: ReadRequest) => {
    const wanted = wantedProperties(fields, api.host);
    const { names, at } = await api.names(signal);
    known = { names, at: clock.monotonic() };
    return { properties: selectKnown(wanted, names, api.host), at };
  };
  return {
    now,
    /** Returns the properties, using names that may have been looked up some time ago. */
    async lately(api: Api, request: ReadRequest): Promise<string[]> {
      const isKnown = known && clock.monotonic() - known.at < HOLDS_MS;
      if (!known || !isKnown) return (await now(api, request)).properties;
      return selectKnown(wantedProperties(request.fields, api.host), known.names, api.host);
    },
  };
}

/** Throws Invalid for a field that a contact cannot have. */
function wantedProperties(fields: readonly string[], host: string): string[] {
  const strange = fields.find((field) => !own.includes(field) && !field.startsWith(inside));
  if (strange !== undefined) {
    const near = own.find((name) => name.toLowerCase() === strange.toLowerCase());
    const mend = `write ${quoted(near ?? inside + strange)}`;
    const has = `a contact has the fields ${own.join(', ')} and ${inside}NAME`;
    throw new Invalid(`${host}: there is no field ${quoted(strange)}; ${has}`, { fix: mend });
  }
  const named = fields.filter((field) => field.startsWith(inside));
  return [...new Set(named.map((field) => field.slice(inside.length)))];
}

export async function hubspotProperties(
  options: HubspotOptions,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<string[]> {
  const token = readToken(options);
  const api = createApi({ ...options, token }, { ...surroundings, pace: createPace() });
  try {
    const { names } = await api.names(signal);
    return [...names];
  } finally {
    await api.close();
  }
}

function selectKnown(
  wanted: readonly string[],
  names: ReadonlySet<string>,
  host: string,
): string[] {
  const missing = wanted.filter((name) => !names.has(name));
  if (missing.length === 0) return [...new Set([...wanted, ...mergedProperties])];
  const hints = hintsFor(missing, [...names]);
  const none = `contacts have no property ${missing.map(quoted).join(', ')}`;
  const mend = 'correct the configuration, by internal names, or make it in HubSpot';
  throw new Invalid(`${host}: ${[none, ...hints].join('; ')}`, { fix: mend });
}
