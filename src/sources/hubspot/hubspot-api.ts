/**
 * Sends requests to HubSpot (CRM API, version 3, contacts) and returns the responses as values.
 * Each request waits for its turn and for as long as HubSpot demands (request-pace.ts), ten minutes
 * in total.
 */
import { pathSegment, queryValue } from '../../domain/address-part.ts';
import { z } from 'zod';
import { Invalid, RateLimited, Unavailable } from '../../domain/errors.ts';
import { httpDate } from '../../http/rate-limit-headers.ts';
import {
  type Asking,
  createAsking,
  type CrmRequest,
  type Said,
  type Surroundings,
} from '../shared/crm-request.ts';
import { idOf } from './contact-record.ts';
import { laterBy, type Pace } from './request-pace.ts';
import { smallText } from '../shared/files/local-file.ts';
import { type HubspotOptions, isToken } from './options.ts';

/** The maximum number of contacts that HubSpot returns at once. */
const PAGE = 100;
const MOST_WAIT_MS = 10 * 60_000;
const HOUR_MS = 3_600_000;
/** A longer address may be refused (414). Then the values are read by their ids, with a body. */
const LONGEST_ADDRESS = 2_000;

const contacts = '/crm/v3/objects/contacts';
const propertiesOfContacts = '/crm/v3/properties/contacts';
const idProperty = 'hs_object_id';
const search = `${contacts}/search`;

/**
 * The statuses for too many requests, a temporarily locked record, and an account that is being
 * moved.
 */
const later = [429, 423, 477];

/** One page of contacts. */
export interface ContactPage {
  values: unknown[];
  /** The text from which the contacts were parsed. */
  text: string;
  /** The cursor of the next page; undefined on the last page. */
  next: string | undefined;
}

/** The contacts that are requested, and their properties. */
interface Of {
  properties: readonly string[];
  archived: boolean;
}

/**
 * The requests. Each throws the errors of a request, and Invalid for a response of a different
 * shape.
 */
export interface Api {
  readonly host: string;
  /**
   * Returns the names of all contact properties, and the time of the response by HubSpot's own
   * clock.
   */
  names(signal: AbortSignal): Promise<{ names: Set<string>; at: number | undefined }>;
  /** Returns one page of all contacts. */
  list(of: Of & { after: string | undefined }, signal: AbortSignal): Promise<ContactPage>;
  /**
   * Returns the contacts that changed since then, as far as HubSpot's index knows, by ascending ids
   * above `above`.
   */
  changed(since: { fromMs: number; above: string }, signal: AbortSignal): Promise<ContactPage>;
  /**
   * Returns at most one page of contacts by their ids, without those that do not exist. Throws
   * Unavailable if a contact could not be read for another reason.
   */
  some(ids: readonly string[], of: Of, signal: AbortSignal): Promise<ContactPage>;
  /** Returns one contact, or undefined if it does not exist. */
  one(id: string, of: Of, signal: AbortSignal): Promise<ContactPage | undefined>;
  close(): Promise<void>;
}

interface ApiOptions {
  url: string;
  token: string;
  timeoutMs: number;
}

type Ask = (question: CrmRequest, signal: AbortSignal) => Promise<Said | undefined>;

/** Opens a connection to the API. */
export function createApi(options: ApiOptions, around: Surroundings & { pace: Pace }): Api {
  const { url, token, timeoutMs } = options;
  const headers = { authorization: `Bearer ${token}` };
  const mend = { credentials: 'the token', request: 'url' };
  const asking = createAsking({ url, headers, timeoutMs, mend }, around);
  const { host } = asking;
  const ask = patient(asking, around);
  const at = (path: string, query: Record<string, string>) =>
    `${new URL(path, url).href}?${new URLSearchParams(query).toString()}`;
  const posted = (path: string, content: object): CrmRequest => ({
    address: new URL(path, url).href,
    body: { type: 'application/json', text: JSON.stringify(content) },
  });
  const some: Api['some'] = async (ids, { properties, archived }, signal) => {
    const path = `${contacts}/batch/read?archived=${queryValue(String(archived))}`;
    const inputs = ids.map((id) => ({ id }));
    const said = await ask(posted(path, { properties, inputs }), signal);
    const { errors = [] } = read(batch, said, host);
    // A nonexistent contact is not a failure, but one that could not be read must not count as
    // removed.
    if (errors.some(({ category }) => category !== 'OBJECT_NOT_FOUND')) {
      const what = 'could not read all the contacts it was asked for';
      throw new Unavailable(`${host} ${what} (${said?.status})`, { acted: 'maybe' });
    }
    return pageOf(said, host);
  };
  return {
    host,
    async names(signal) {
      const said = await ask({ address: at(propertiesOfContacts, { archived: 'false' }) }, signal);
      const { results } = read(named, said, host);
      const when = httpDate(said?.headers['date']);
      return { names: new Set(results.map(({ name }) => name)), at: when };
    },
    async list({ after, ...of }, signal) {
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
    async changed(since, signal) {
      return pageOf(await ask(posted(search, searchFor(since)), signal), host);
    },
    some,
    async one(id, of, signal) {
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
    close: () => asking.close(),
  };
}

function queryOf({ properties, archived }: Of): Record<string, string> {
  return { properties: properties.join(','), archived: String(archived) };
}

/**
 * Builds a search that sorts by id and always requests the first contacts above the last id. This
 * works however many contacts changed in the same millisecond, despite HubSpot's limit of 10,000
 * results per search, and although a contact that changes meanwhile would move in an order by time.
 */
function searchFor({ fromMs, above }: { fromMs: number; above: string }): object {
  return {
    filterGroups: [
      {
        filters: [
          { propertyName: 'lastmodifieddate', operator: 'GTE', value: String(fromMs) },
          { propertyName: idProperty, operator: 'GT', value: above },
        ],
      },
    ],
    sorts: [{ propertyName: idProperty, direction: 'ASCENDING' }],
    properties: [idProperty],
    limit: PAGE,
  };
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

/** Sends a request when its turn comes, and repeats it if HubSpot says that it came too early. */
function patient(asking: Asking, { pace, clock }: Surroundings & { pace: Pace }): Ask {
  const { host } = asking;
  return async (question, signal) => {
    const { pathname } = new URL(question.address);
    for (let waitedMs = 0; ;) {
      const turnMs = pace.waitMs({ isSearch: pathname === search }, clock.monotonic());
      if (turnMs > 0) await clock.sleep(turnMs, signal);
      const said = await asking.ask({ ...question, accepts: [403, ...later] }, signal);
      if (said) pace.hear(said.headers, clock.monotonic());
      if (said?.status === 403) throw forbidden(host, pathname);
      if (!said || !later.includes(said.status)) return said;
      const waitMs = laterBy(said, clock.now());
      if (waitMs === 'day') throw spent(host);
      waitedMs += waitMs;
      if (waitedMs > MOST_WAIT_MS) throw impatient(host, said.status, waitMs);
      await clock.sleep(waitMs, signal);
    }
  };
}

function forbidden(host: string, path: string): Invalid {
  const what = path === propertiesOfContacts ? 'schemas' : 'objects';
  const mend = `give its app the scope crm.${what}.contacts.read`;
  return new Invalid(`${host} does not allow this with the token (403)`, { fix: mend });
}

function spent(host: string): RateLimited {
  const what = `${host} has no request left for today, for this account (429)`;
  const mend = 'run less often, or have its limit raised; it begins anew at midnight';
  return new RateLimited(what, { fix: mend, retryAfterMs: HOUR_MS, route: host });
}

function impatient(host: string, status: number, retryAfterMs: number): RateLimited {
  const what = `${host} asks to wait (${status}), and 10 minutes were not enough`;
  const mend = 'run less often, or have its limit raised';
  return new RateLimited(what, { fix: mend, retryAfterMs, route: host });
}

/**
 * Returns the token. A file is read again each time, so that the token can be changed at any time.
 * Throws Invalid if the file contains no token.
 */
export async function tokenOf({
  token = '',
  tokenFile,
}: Pick<HubspotOptions, 'token' | 'tokenFile'>): Promise<string> {
  if (tokenFile === undefined) return token;
  const text = smallText(tokenFile);
  if (isToken(text.trim())) return text.trim();
  throw new Invalid(`${tokenFile}: the file of the token holds no token`, {
    fix: 'write it alone into it',
  });
}
