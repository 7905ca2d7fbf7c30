/**
 * Reads the contacts of a HubSpot account: active ones, then archived ones. So one that is archived
 * meanwhile is in the second list at the latest; one that is restored meanwhile may be in neither,
 * but was archived, and a single read draws no conclusion. Both lists ended: the read was complete.
 * `changes` uses the search only to find who changed, and reads by id, because the search index
 * lags behind what an event may have read. It finds no archived contacts; a full read does, or an
 * event. Times are of HubSpot's clock, because they are compared with times of changes.
 */
import { z } from 'zod';
import { pathSegment, queryValue } from '../../domain/address-part.ts';
import { Invalid, RateLimited, Unavailable } from '../../domain/errors.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import { isHeaderText } from '../../domain/schema-fields.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import { fieldAt, isRecord } from '../../domain/values/record-field.ts';
import { httpDate, observe } from '../../http/rate-limit-headers.ts';
import {
  type Asking,
  createAsking,
  type CrmRequest,
  outwait,
  type Said,
  type Surroundings,
} from '../shared/crm-request.ts';
import { smallText } from '../shared/files/file-origin.ts';
import { brokenFlaws, type Flaw, stoppedBy } from '../shared/read-certificate.ts';
import { hintsFor, jsonRecords, quoted } from '../shared/record-fields.ts';
import {
  type ListEnd,
  type Listing,
  sessionSource,
  sessionWriteBack,
} from '../shared/session-source.ts';
import type { ReadRequest, Source, SourceRecord, WriteBack } from '../source.ts';
import type { HubspotOptions, HubspotReturnsOptions } from './options.ts';

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
  /** Returns the properties, using names that may have been looked up some time ago. */
  const lately = async (api: Api, request: ReadRequest): Promise<string[]> => {
    const isKnown = known && clock.monotonic() - known.at < NAMES_HOLD_MS;
    if (!known || !isKnown) return (await now(api, request)).properties;
    refuseStrange(request.fields, api.host);
    return selectProperties(request.fields, known.names, api.host);
  };
  const overlapMs = milliseconds(options.overlap);
  return sessionSource('hubspot', clock, {
    open: () => openApi(options, around),
    async *read(api, request): Listing {
      const { properties, at } = await now(api, request);
      const flaws = yield* toRecords(listPages(api, properties, request.signal), request.fields);
      const cursor = at === undefined ? undefined : new Date(at - overlapMs).toISOString();
      return { flaws, cursor };
    },
    async *changes(api, since, request): Listing<ListEnd | 'lost'> {
      const fromMs = Date.parse(since);
      if (Number.isNaN(fromMs)) return 'lost';
      const { fields, signal } = request;
      const { properties, at = fromMs } = await now(api, request);
      // The clock was set back, or it is another account: changes before the old time would be
      // missing.
      if (fromMs > at) return 'lost';
      const flaws = yield* toRecords(listChanged(api, properties, signal, fromMs), fields);
      return { flaws, cursor: new Date(Math.max(fromMs, at - overlapMs)).toISOString() };
    },
    async one(api, id, request) {
      if (!/^[1-9]\d{0,19}$/.test(id)) return undefined;
      const properties = await lately(api, request);
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

function selectProperties(fields: readonly string[], names: ReadonlySet<string>, host: string) {
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

const REPORT_WAIT_MS = 20_000;
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
      openAsking(options, { ...surroundings, pace }, { accepts, mostWaitMs: REPORT_WAIT_MS }),
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

// Sends requests to HubSpot (CRM API, version 3, contacts) when their turn comes, for as long as
// HubSpot demands (createPace), ten minutes in total.

const PAGE = 100;
const MOST_WAIT_MS = 10 * 60_000;
const HOUR_MS = 3_600_000;
/** A longer address may be refused (414). Then the values are read by their ids, with a body. */
const LONGEST_ADDRESS = 2_000;

const contacts = '/crm/v3/objects/contacts';
const propertiesOfContacts = '/crm/v3/properties/contacts';
const idProperty = 'hs_object_id';
const search = `${contacts}/search`;

/** Too many requests, a temporarily locked record, and an account that is being moved. */
const later = [429, 423, 477];

interface ContactPage {
  values: unknown[];
  text: string;
  next: string | undefined;
}

interface Of {
  properties: readonly string[];
  archived: boolean;
}

/** Opens a session with the token of now. */
function openApi(options: HubspotOptions, around: Surroundings & { pace: Pace }) {
  const { url } = options;
  const patience = { accepts: [403], mostWaitMs: MOST_WAIT_MS };
  const { host, ask: patiently, close } = openAsking(options, around, patience);
  const ask = async (question: CrmRequest, signal: AbortSignal): Promise<Said | undefined> => {
    const said = await patiently(question, signal);
    if (said?.status !== 403) return said;
    const { pathname } = new URL(question.address);
    const scope = pathname === propertiesOfContacts ? 'schemas' : 'objects';
    const fix = `give its app the scope crm.${scope}.contacts.read`;
    throw new Invalid(`${host} does not allow this with the token (403)`, { fix });
  };
  const at = (path: string, query: Record<string, string>) =>
    `${new URL(path, url).href}?${new URLSearchParams(query).toString()}`;
  const posted = (path: string, json: object) => ({ address: new URL(path, url).href, json });
  /** Returns those of a page of ids that exist. Throws Unavailable if one cannot be read. */
  const some = async (ids: readonly string[], of: Of, signal: AbortSignal) => {
    const path = `${contacts}/batch/read?archived=${queryValue(String(of.archived))}`;
    const inputs = ids.map((id) => ({ id }));
    const said = await ask(posted(path, { properties: of.properties, inputs }), signal);
    const { errors = [] } = read(batch, said, host);
    // A missing contact is no failure, but one that could not be read must not count as removed.
    if (errors.some(({ category }) => category !== 'OBJECT_NOT_FOUND')) {
      const what = 'could not read all the contacts it was asked for';
      throw new Unavailable(`${host} ${what} (${said?.status})`, { acted: 'maybe' });
    }
    return pageOf(said, host);
  };
  return {
    host,
    async names(signal: AbortSignal) {
      const said = await ask({ address: at(propertiesOfContacts, { archived: 'false' }) }, signal);
      const { results } = read(named, said, host);
      const when = httpDate(said?.headers['date']);
      return { names: new Set(results.map(({ name }) => name)), at: when };
    },
    async list({ after, ...of }: Of & { after: string | undefined }, signal: AbortSignal) {
      const place = { limit: String(PAGE), ...(after !== undefined && { after }) };
      const address = at(contacts, { ...place, ...queryOf(of) });
      if (address.length <= LONGEST_ADDRESS) return pageOf(await ask({ address }, signal), host);
      const short = at(contacts, { ...place, ...queryOf({ ...of, properties: [idProperty] }) });
      const listed = pageOf(await ask({ address: short }, signal), host);
      const ids = listed.values.flatMap((value) => idOf(value) ?? []);
      if (ids.length === 0) return listed;
      const found = await some(ids, of, signal);
      const nameless = listed.values.filter((value) => idOf(value) === undefined);
      return { ...found, values: [...found.values, ...nameless], next: listed.next };
    },
    /** Returns contacts changed since then, as far as known, by ascending ids above `above`. */
    async changed(since: { fromMs: number; above: string }, signal: AbortSignal) {
      // The first contacts above the last id: HubSpot's limit of 10,000 results per search does not
      // matter, nor that a contact that changes meanwhile would move in an order by time.
      const filters = [
        { propertyName: 'lastmodifieddate', operator: 'GTE', value: String(since.fromMs) },
        { propertyName: idProperty, operator: 'GT', value: since.above },
      ];
      const content = {
        filterGroups: [{ filters }],
        sorts: [{ propertyName: idProperty, direction: 'ASCENDING' }],
        properties: [idProperty],
        limit: PAGE,
      };
      return pageOf(await ask(posted(search, content), signal), host);
    },
    some,
    async one(id: string, of: Of, signal: AbortSignal): Promise<ContactPage | undefined> {
      const address = at(`${contacts}/${pathSegment(id)}`, queryOf(of));
      if (address.length > LONGEST_ADDRESS) {
        const found = await some([id], of, signal);
        return found.values.length > 0 ? found : undefined;
      }
      const said = await ask({ address }, signal);
      if (!said) return undefined;
      read(single, said, host);
      return { values: [said.value], text: said.text, next: undefined };
    },
    close,
  };
}

/** Requests. They throw the errors of a request, and Invalid for a response of another shape. */
type Api = ReturnType<typeof openApi>;

function queryOf({ properties, archived }: Of): Record<string, string> {
  return { properties: properties.join(','), archived: String(archived) };
}

const after = z.union([z.string(), z.number()]).transform(String);
const page = z.object({
  results: z.array(z.unknown()),
  paging: z.object({ next: z.object({ after }).nullish() }).nullish(),
});
const named = z.object({ results: z.array(z.object({ name: z.string() })) });
const batch = z.object({
  errors: z.array(z.object({ category: z.string().optional() })).optional(),
});
const single = z.object({ id: z.union([z.string(), z.number()]) });

function pageOf(said: Said | undefined, host: string): ContactPage {
  const { results, paging } = read(page, said, host);
  return { values: results, text: said?.text ?? '', next: paging?.next?.after };
}

function read<T>(shape: z.ZodType<T>, said: Said | undefined, host: string): T {
  const mend = 'correct url of the source';
  if (!said) throw new Invalid(`${host} knows nothing of contacts (404)`, { fix: mend });
  const parsed = shape.safeParse(said.value);
  if (parsed.success) return parsed.data;
  throw new Invalid(`${host}: the answer is not as HubSpot answers about contacts`, { fix: mend });
}

/**
 * Opens what sends each request when its turn comes, and again while HubSpot says that it came too
 * early. Throws RateLimited after `mostWaitMs`, and at once if that is the day.
 */
function openAsking(
  options: HubspotOptions,
  { pace, ...around }: Surroundings & { pace: Pace },
  { accepts, mostWaitMs }: { accepts: readonly number[]; mostWaitMs: number },
): Asking {
  const headers = { authorization: `Bearer ${readToken(options)}` };
  const mend = { credentials: 'the token', request: 'url' };
  const { url, timeoutMs } = options;
  const asking = createAsking({ url, headers, timeoutMs, mend, mostWaitMs }, around);
  const { clock } = around;
  const { host, close } = asking;
  const ask = async (question: CrmRequest, signal: AbortSignal): Promise<Said | undefined> => {
    const { pathname } = new URL(question.address);
    const once = async () => {
      const turnMs = pace.waitMs({ isSearch: pathname === search }, clock.monotonic());
      if (turnMs > 0) await clock.sleep(turnMs, signal);
      const said = await asking.ask({ ...question, accepts: [...accepts, ...later] }, signal);
      if (said) pace.hear(said.headers, clock.monotonic());
      return said;
    };
    const waitMsAfter = (said: Said) =>
      later.includes(said.status) ? laterBy(said, clock.now(), host) : undefined;
    return outwait(once, waitMsAfter, { host, clock, signal }, mostWaitMs);
  };
  return { host, ask, close };
}

/** Returns the token; a file is read again each time. Throws Invalid if it holds none. */
function readToken({ token = '', tokenFile }: HubspotOptions): string {
  if (tokenFile === undefined) return token;
  const text = smallText(tokenFile);
  if (isHeaderText(text.trim())) return text.trim();
  const fix = 'write it alone into it';
  throw new Invalid(`${tokenFile}: the file of the token holds no token`, { fix });
}

const INTERVAL_MS = 10_000;
const SEARCH_MS = 250;
const LEAST_MS = 1_000;
const LOCKED_MS = 2_000;

type Pace = ReturnType<typeof createPace>;

/**
 * Determines how fast requests may be sent to HubSpot. The pace has no clock and does not wait; the
 * caller passes in monotonic milliseconds.
 *
 *   headers state that nothing is left   → no requests until their interval is over
 *   search, which has no such headers    → four per second, of the five that an account has
 *   retry later (429, 423, 477)          → waits as long as stated, or as the policy implies
 *   429 for the day                      → does not wait, because it could take hours
 */
function createPace() {
  let freeAt = Number.NEGATIVE_INFINITY;
  let searchAt = Number.NEGATIVE_INFINITY;
  return {
    waitMs({ isSearch }: { isSearch: boolean }, nowMs: number): number {
      const leaves = Math.max(nowMs, freeAt, isSearch ? searchAt : nowMs);
      if (isSearch) searchAt = leaves + SEARCH_MS;
      return leaves - nowMs;
    },
    hear(headers: Said['headers'], nowMs: number): void {
      if (headers['x-hubspot-ratelimit-remaining'] !== '0') return;
      freeAt = Math.max(freeAt, nowMs + readInterval(headers));
    },
  };
}

/** Returns the milliseconds to wait after such a response. Throws RateLimited for a whole day. */
function laterBy({ status, headers, value }: Said, nowMs: number, host: string): number {
  const text = [fieldAt(value, 'policyName'), fieldAt(value, 'message')].join(' ').toLowerCase();
  if (/\bdaily\b/.test(text)) {
    const fix = 'run less often, or have its limit raised; it begins anew at midnight';
    const what = `${host} has no request left for today, for this account (429)`;
    throw new RateLimited(what, { fix, retryAfterMs: HOUR_MS, route: host });
  }
  const { retryAfterMs } = observe(429, headers, nowMs);
  const ofPolicyMs = /\bsecondly\b/.test(text) ? LEAST_MS : readInterval(headers);
  return Math.max(retryAfterMs ?? (status === 423 ? LOCKED_MS : ofPolicyMs), LEAST_MS);
}

function readInterval(headers: Said['headers']): number {
  const given = headers['x-hubspot-ratelimit-interval-milliseconds'] ?? '';
  return /^\d{1,6}$/.test(given) ? Number(given) : INTERVAL_MS;
}

// Converts a HubSpot contact into a record: `{ id, createdAt, updatedAt, archived, properties }`.
// The id of a contact that was merged leads to the remaining contact, which names it. The engine
// knows an opt-out of the merged contact by the merged id, so the remaining one is yielded again
// under each merged id: the opt-outs carry over, as when an address changes, and the strictest
// counts.

/** The ids of merged contacts, in two formats: `7;8` and `7:1700000000000;8:1700000000000`. */
const mergedProperties = ['hs_merged_object_ids', 'hs_calculated_merged_vids'];

interface Origin {
  where: string;
  /** The text from which it was parsed; it may contain more than this contact. */
  text: string;
  /** Whether archived contacts were requested; not every response states this itself. */
  archived: boolean;
}

function contactRecords(fields: readonly string[]) {
  const records = jsonRecords(fields);
  const under = (id: string | undefined, value: unknown, { where, text, archived }: Origin) => {
    const own = isRecord(value) ? { archived, ...value, ...(id !== undefined && { id }) } : value;
    return records.recordOf(own, where, text);
  };
  return {
    /** Returns the contact, and a copy under the id of each contact merged into it. */
    all(value: unknown, origin: Origin): SourceRecord[] {
      const id = idOf(value);
      if (id === undefined) return [under(id, value, origin)];
      const losers = mergedInto(value).map((loser) =>
        under(loser, value, { ...origin, where: `contact ${loser}, merged into ${id}` }),
      );
      return [under(id, value, { ...origin, where: `contact ${id}` }), ...losers];
    },
    /** Returns the contact that a request for an id brought, under its id or the merged one. */
    one: under,
  };
}

/** Returns the id of a contact, or undefined if it has no id in HubSpot's format. */
function idOf(value: unknown): string | undefined {
  const id = fieldAt(value, 'id');
  const text = typeof id === 'number' ? String(id) : id;
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? text : undefined;
}

function mergedInto(value: unknown): string[] {
  const lists = mergedProperties.map((name) => fieldAt(value, `properties.${name}`));
  const ids = lists
    .flatMap((list) => (typeof list === 'string' ? list.split(';') : []))
    .map((entry) => entry.split(':', 1)[0]?.trim() ?? '')
    .filter((id) => /^\d{1,20}$/.test(id) && id !== idOf(value));
  return [...new Set(ids)];
}
