/**
 * Reads the contacts of a HubSpot account: active ones, then archived ones. So one that is archived
 * meanwhile is in the second list at the latest; one that is restored meanwhile may be in neither,
 * but was archived, and a single read draws no conclusion. Both lists ended: the read was complete.
 * `changes` uses the search only to find who changed, and reads by id, because the search index
 * lags behind what an event may have read. It finds no archived contacts; a full read does, or an
 * event. Times are of HubSpot's clock, because they are compared with times of changes.
 */
import { milliseconds } from '../../domain/values/config-value.ts';
import type { CrmRequest, Surroundings } from '../shared/crm-request.ts';
import { brokenFlaws, type Flaw, stoppedBy } from '../shared/read-certificate.ts';
import {
  type ListEnd,
  type Listing,
  sessionSource,
  sessionWriteBack,
} from '../shared/session-source.ts';
import type { ReadRequest, Source, SourceRecord, WriteBack } from '../source.ts';
import {
  type Api,
  contactRecords,
  createPace,
  idOf,
  mergedInto,
  mergedProperties,
  openApi,
  openAsking,
} from './hubspot-api.ts';
import type { HubspotOptions, HubspotReturnsOptions } from './options.ts';
import { Unavailable, Invalid } from '../../domain/errors.ts';
import { quoted, hintsFor } from '../shared/record-fields.ts';
import { pathSegment } from '../../domain/address-part.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';

export function hubspotSource(options: HubspotOptions, surroundings: Surroundings): Source {
  const { clock } = surroundings;
  const around = { ...surroundings, pace: createPace() };
  // HubSpot silently omits an unknown property, and an opt-out could be missed. So the names are
  // requested first, and remembered, and a property that does not exist is refused.
  let known: { names: ReadonlySet<string>; at: number } | undefined;
  /** Looks the names up now. Returns the properties, and HubSpot's time of that, if known. */
  const now = async (api: Api, { fields, signal }: ReadRequest) => {
    refuseStrange(fields, api.host);
    const { names, at } = await api.names(signal);
    known = { names, at: clock.monotonic() };
    return { properties: selectProperties(fields, names, api.host), at };
  };
  const wanted = {
    now,
    /** Returns the properties, using names that may have been looked up some time ago. */
    async lately(api: Api, request: ReadRequest): Promise<string[]> {
      const isKnown = known && clock.monotonic() - known.at < NAMES_HOLD_MS;
      if (!known || !isKnown) return (await now(api, request)).properties;
      refuseStrange(request.fields, api.host);
      return selectProperties(request.fields, known.names, api.host);
    },
  };
  const overlapMs = milliseconds(options.overlap);
  return sessionSource('hubspot', clock, {
    open: () => openApi(options, around),
    async *read(api, request): Listing {
      const { properties, at } = await wanted.now(api, request);
      const flaws = yield* toRecords(listPages(api, properties, request.signal), request.fields);
      const cursor = at === undefined ? undefined : new Date(at - overlapMs).toISOString();
      return { flaws, cursor };
    },
    async *changes(api, since, request): Listing<ListEnd | 'lost'> {
      const fromMs = Date.parse(since);
      if (Number.isNaN(fromMs)) return 'lost';
      const { fields, signal } = request;
      const { properties, at = fromMs } = await wanted.now(api, request);
      // The clock was set back, or it is another account: changes before the old time would be
      // missing.
      if (fromMs > at) return 'lost';
      const flaws = yield* toRecords(listChanged(api, properties, signal, fromMs), fields);
      return { flaws, cursor: new Date(Math.max(fromMs, at - overlapMs)).toISOString() };
    },
    async one(api, id, request) {
      if (!/^[1-9]\d{0,19}$/.test(id)) return undefined;
      const properties = await wanted.lately(api, request);
      for (const archived of [false, true]) {
        const found = await api.one(id, { properties, archived }, request.signal);
        if (!found) continue;
        const origin = { where: `contact ${id}`, text: found.text, archived };
        // If a merged contact is requested, HubSpot returns the remaining one.
        return contactRecords(request.fields).one(id, found.values[0], origin);
      }
      return undefined;
    },
  });
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
    return [stoppedBy(error, pages > 0, `at page ${pages + 1}`)];
  }
  return brokenFlaws('contact', broken.length, broken[0], 'mend those contacts in HubSpot');
}

const MOST_PAGES = 100_000;

/** Some contacts as they appear in a response, and whether archived ones were requested. */
interface Sheet {
  values: unknown[];
  text: string;
  archived: boolean;
}

async function* listPages(
  api: Api,
  properties: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Sheet, void> {
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

async function* listChanged(
  api: Api,
  properties: readonly string[],
  signal: AbortSignal,
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
const NAMES_HOLD_MS = 15 * 60_000;

const own = ['id', 'createdAt', 'updatedAt', 'archived', 'archivedAt'];
const inside = 'properties.';

function refuseStrange(fields: readonly string[], host: string): void {
  const strange = fields.find((field) => !own.includes(field) && !field.startsWith(inside));
  if (strange === undefined) return;
  const near = own.find((name) => name.toLowerCase() === strange.toLowerCase());
  const mend = `write ${quoted(near ?? inside + strange)}`;
  const has = `a contact has the fields ${own.join(', ')} and ${inside}NAME`;
  throw new Invalid(`${host}: there is no field ${quoted(strange)}; ${has}`, { fix: mend });
}

function selectProperties(
  fields: readonly string[],
  names: ReadonlySet<string>,
  host: string,
): string[] {
  const wanted = fields.flatMap((field) =>
    field.startsWith(inside) ? field.slice(inside.length) : [],
  );
  const missing = [...new Set(wanted)].filter((name) => !names.has(name));
  if (missing.length === 0) return [...new Set([...wanted, ...mergedProperties])];
  const hints = hintsFor(missing, [...names]);
  const none = `contacts have no property ${missing.map(quoted).join(', ')}`;
  const mend = 'correct the configuration, by internal names, or make it in HubSpot';
  throw new Invalid(`${host}: ${[none, ...hints].join('; ')}`, { fix: mend });
}

export async function hubspotProperties(
  options: HubspotOptions,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<string[]> {
  const api = openApi(options, { ...surroundings, pace: createPace() });
  try {
    const { names } = await api.names(signal);
    return [...names];
  } finally {
    await api.close();
  }
}

// Reports an opt-out from one subscription through version 3 of HubSpot's communication
// preferences, and one from all mail through version 4, by address. One already made counts as
// reported.

const MOST_WAIT_MS = 20_000;
const accepts = [200, 201, 202, 204, 400, 404];
const explanation = 'The person unsubscribed on the email platform.';

export function hubspotReturns(
  options: HubspotOptions,
  { subscriptions = {}, legalBasis }: HubspotReturnsOptions,
  surroundings: Surroundings,
): WriteBack {
  const { url } = options;
  const pace = createPace();
  const toRequest = ({ email, channel }: OptOutReport): CrmRequest => {
    const all = `/communication-preferences/v4/statuses/${pathSegment(email)}/unsubscribe-all?channel=EMAIL`;
    if (channel === '*') return { address: new URL(all, url).href, method: 'POST' };
    const json = {
      emailAddress: email,
      subscriptionId: subscriptions[channel],
      ...(legalBasis && { legalBasis, legalBasisExplanation: explanation }),
    };
    return { address: new URL('/communication-preferences/v3/unsubscribe', url).href, json };
  };
  return sessionWriteBack({
    takes: ({ channel }) => channel === '*' || Object.hasOwn(subscriptions, channel),
    look: () => `reported to ${new URL(url).host}, in its communication preferences`,
    open: () =>
      openAsking(options, { ...surroundings, pace }, { accepts, mostWaitMs: MOST_WAIT_MS }),
    async report({ ask }, one, signal) {
      const { status, value } = (await ask(toRequest(one), signal)) ?? { status: 404 };
      const message = fieldAt(value, 'message');
      const says = typeof message === 'string' ? message : '';
      const isDone = /already (?:been )?(?:unsubscribed|opted out)/i.test(says);
      if (status < 300 || isDone) return { is: 'told' };
      const isBasis = status !== 404 && /legal ?basis/i.test(says);
      return {
        is: 'rejected',
        reason:
          status === 404
            ? 'HubSpot does not have this person, or subscription (404)'
            : `HubSpot refused it (${status})`,
        fix: isBasis ? 'add legalBasis to returns' : 'correct subscriptions of returns',
      };
    },
  });
}
