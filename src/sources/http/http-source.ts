/**
 * Reads contacts, or templates with their keys, from an HTTP API. The API lists its records as
 * JSON, all at once or page by page. With `one` it also returns a single record, and with `changes`
 * the records that changed since a given time.
 *
 * The end of this file explains the certificate. If a request fails after the first page, the read
 * ends without a certificate, and the opt-outs read so far are kept. The API cannot report whether
 * its data has changed, so a read stays valid for a quarter of an hour, and each read has a new
 * name.
 *
 * The start time for `changes` is a time of the CRM's own clock, taken from its first response. If
 * that response states no time, there is no cursor.
 */
import { pathSegment, queryValue } from '../../domain/address-part.ts';
import { Invalid } from '../../domain/errors.ts';
import { createAsking, type Said, type Surroundings } from '../shared/crm-request.ts';
import {
  certificateOf,
  holding,
  withCursor,
  stoppedBy,
  type Flaw,
  brokenFlaw,
  markOf,
} from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import type { ChangesOptions, HttpOptions } from './options.ts';
import { howToReadOn, createPaging, type Next, type ReadPage } from './paging.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import { httpDate } from '../../http/rate-limit-headers.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import { signsIn, countOf, type Stated } from './more-signs.ts';
import { counted } from '../../domain/values/counted.ts';

const mend = { credentials: 'the headers', request: 'url and page' };
const mendChanges = { ...mend, request: 'changes' };
const mendOne = { ...mend, request: 'one' };

const BATCH_RECORDS = 500;
const MOST_PAGES = 100_000;
const GONE = 410;
const NO_CONTENT = 204;

/** Returns the source of an HTTP API; `id` is the path of a record's id. */
export function httpSource(
  options: HttpOptions,
  { id, ...surroundings }: Surroundings & { id: string },
): Source {
  const { clock } = surroundings;
  const { one, changes } = options;
  const since = changes && createSince(changes);
  const { keep, still } = holding(clock);
  const around = { ...surroundings, id };
  return {
    async *read(request) {
      const name = `http-${clock.now()}`;
      const found = yield* readList(options, { ...around, name, request, ofChanges: false });
      keep(name);
      const { certificate, begunAt } = found;
      return since ? withCursor(certificate, since.after(begunAt)) : certificate;
    },
    ...(since && {
      async *changes(cursor, request): AsyncGenerator<SourceRecord[], Certificate | 'lost'> {
        const sinceMs = since.read(cursor);
        if (sinceMs === undefined) return 'lost';
        const name = `http-${clock.now()}`;
        const ofChanges = { ...options, url: since.addressAt(sinceMs) };
        const found = yield* readList(ofChanges, { ...around, name, request, ofChanges: true });
        // If the CRM's clock was set back, changes made before the old time would be missing from
        // the list.
        if (found.isLost || sinceMs > (found.answeredAt ?? sinceMs)) return 'lost';
        keep(name);
        return withCursor(found.certificate, since.after(found.begunAt, sinceMs));
      },
    }),
    still,
    ...(one !== undefined && {
      async one(wanted, { fields, signal }) {
        const asking = createAsking({ ...options, mend: mendOne }, surroundings);
        try {
          // An id that would change the path throws Invalid.
          const address = one.replaceAll('{id}', () => pathSegment(wanted));
          const said = await asking.ask({ address }, signal);
          if (said && idOf(said.value, id) !== wanted) {
            const what = 'one answers no record of the id asked for';
            throw new Invalid(`${asking.host}: ${what}`, { fix: 'correct one' });
          }
          const records = jsonRecords(fields);
          return said && records.recordOf(said.value, 'the record by its id', said.text);
        } finally {
          await asking.close();
        }
      },
    }),
  };
}

interface Reading extends Surroundings {
  name: string;
  id: string;
  request: ReadRequest;
  /** Whether it lists changes: it may no longer exist, and its paging was proven before. */
  ofChanges: boolean;
}

/** How a list was read. Times are of the CRM's clock in epoch milliseconds, if it states any. */
interface ListingResult {
  certificate: Certificate;
  /** Whether the list of changes no longer exists. */
  isLost: boolean;
  /** The earliest time whose state the first response may show. */
  begunAt?: number;
  /** The time at which the first response was sent. */
  answeredAt?: number;
}

/** Yields the records page by page. Throws the error that prevents the first response. */
async function* readList(
  options: HttpOptions,
  { name, id, request, ofChanges, ...surroundings }: Reading,
): AsyncGenerator<SourceRecord[], ListingResult> {
  const { fields, signal } = request;
  const { clock } = surroundings;
  const asking = createAsking({ ...options, mend: ofChanges ? mendChanges : mend }, surroundings);
  const records = jsonRecords(fields);
  const proof = createProof(id, options.total, howToReadOn(options));
  const paging = createPaging(options, asking.host, ofChanges);
  const readPage = async (address: string, number: number): Promise<Page | 'lost'> => {
    const accepts = ofChanges ? [GONE, NO_CONTENT] : [NO_CONTENT];
    const said = await asking.ask({ address, accepts }, signal);
    if (said?.status === GONE || (ofChanges && !said && number === 1)) return 'lost';
    const answeredAt = httpDate(said?.headers['date']);
    if (!said) {
      const { missing: flaw } = paging;
      if (number > 1 && flaw) return { batch: [], next: { end: 'unmarked', flaw }, answeredAt };
      const fix = 'correct url and page of the source';
      throw new Invalid(`${asking.host} has no such page (404)`, { fix });
    }
    const list = findList(said, options, asking.host, number);
    const signs = signsIn(said, options.records);
    proof.hear(said.value, signs.total);
    const batch = list.map((value, index) => {
      const where = `page ${number}, record ${index + 1}`;
      const record = records.recordOf(value, where, said.text);
      if ('broken' in record) proof.addBroken(where);
      return record;
    });
    const fresh = list.filter((value) => proof.add(value)).length;
    const page = { value: said.value, size: list.length, fresh, signs };
    const next = paging.after(page);
    const flaw = 'end' in next ? findContinuation(page, number, options) : undefined;
    if (!flaw || !('end' in next) || next.end === 'wrong') return { batch, next, answeredAt };
    return { batch, next: { end: 'wrong', flaw }, answeredAt };
  };
  let times: { begunAt?: number; answeredAt?: number } = {};
  let isLost = false;
  let address: string | undefined = paging.first;
  try {
    for (let number = 1; address !== undefined; number += 1) {
      if (number > MOST_PAGES) {
        const why = `the list has more than ${MOST_PAGES} pages`;
        proof.stop({ why, fix: 'have larger pages' });
        break;
      }
      const askedAt = clock.monotonic();
      const page: Page | 'lost' | void = await readPage(address, number).catch((error: unknown) => {
        proof.stop(stoppedBy(error, { hasBegun: number > 1, where: `at page ${number}` }));
      });
      isLost = page === 'lost';
      if (!page || page === 'lost') break;
      const { batch, next, answeredAt }: Page = page;
      if (number === 1 && answeredAt !== undefined) {
        // A slow response may show the state at the time of the request.
        const tookMs = Math.max(0, clock.monotonic() - askedAt);
        times = { begunAt: answeredAt - tookMs, answeredAt };
      }
      for (let start = 0; start < batch.length; start += BATCH_RECORDS) {
        yield batch.slice(start, start + BATCH_RECORDS);
      }
      if ('end' in next && next.end === 'unmarked') proof.endUnmarked(next.flaw);
      if ('end' in next && next.end === 'wrong') proof.stop(next.flaw);
      address = 'end' in next ? undefined : next.address;
    }
    const flaws = proof.flaws();
    const lack = records.lacking();
    // A record that could not be read may contain the field.
    if (lack !== undefined && flaws.length === 0 && !ofChanges) {
      throw new Invalid(`${asking.host}: ${lack}`);
    }
    return { ...times, isLost, certificate: certificateOf(name, flaws) };
  } finally {
    await asking.close();
  }
}

interface Page {
  batch: SourceRecord[];
  next: Next;
  answeredAt: number | undefined;
}

/** Returns the list: an empty one for 204, null, and for an object without it after page one. */
function findList(
  { status, value }: Said,
  { records }: HttpOptions,
  host: string,
  number: number,
): unknown[] {
  const list = records === undefined ? value : fieldAt(value, records);
  if (Array.isArray(list)) return list;
  if (status === NO_CONTENT || value === null || list === null) return [];
  if (number > 1 && isEmpty(value, records)) return [];
  if (records === undefined) {
    throw new Invalid(`${host}: the answer is no list`, {
      fix: 'name with records where in it the list stands',
    });
  }
  throw new Invalid(`${host}: there is no list at records in the answer`, {
    fix: 'correct records of the source',
  });
}

/** Returns whether nothing stands where the list would be, and no message about a failure. */
function isEmpty(value: unknown, records: string | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Object.keys(value).length === 0) return true;
  const parent = records?.includes('.') && fieldAt(value, records.replace(/\.[^.]*$/, ''));
  return typeof parent === 'object' && parent !== null && Object.keys(parent).length === 0;
}

/** Returns the flaw of a list whose last page, of this number, says that there is more. */
function findContinuation(
  { size, fresh, signs }: ReadPage,
  number: number,
  options: HttpOptions,
): Flaw | undefined {
  // A page that came again says what it said before.
  if (size > 0 && fresh === 0) return undefined;
  const { more, pages } = signs;
  // A sign may be of the paging itself: its cursor, or a number that counts on.
  const { cursor, number: byNumber } = options.page ?? {};
  const isCursor = cursor !== undefined && more && `${cursor}.`.startsWith(`${more.path}.`);
  const isNumber = byNumber !== undefined && size === 0 && /^\d+$/.test(more?.place?.text ?? '');
  const sign = more?.isFlag || !(isCursor || isNumber) ? more : undefined;
  if (!sign && (pages === undefined || pages.count <= number)) return undefined;
  const read = `${pages?.path} is ${pages?.count}, and ${counted(number, 'page')} came`;
  const why = `the answer says that more pages follow: ${sign?.says ?? read}`;
  return { why, fix: howToReadOn(options, sign) };
}

/** Creates cursors: a time of the CRM's clock in whole seconds, as in its Date header. */
function createSince({ url, format, overlap }: ChangesOptions) {
  const overlapMs = milliseconds(overlap);
  return {
    /** Returns the time in a cursor, or undefined if the cursor is not valid. */
    read(cursor: string): number | undefined {
      const ms = Date.parse(cursor);
      return Number.isNaN(ms) ? undefined : ms;
    },
    /** Returns the address of the list of changes since then. */
    addressAt(ms: number): string {
      const seconds = Math.floor(ms / 1000);
      const unix = String(format === 'unix' ? seconds : seconds * 1000);
      return url.replaceAll('{since}', () => queryValue(format === 'iso' ? iso(ms) : unix));
    },
    /** Returns the cursor after a read begun then, never before `sinceMs`; undefined if unknown. */
    after(begunAt: number | undefined, sinceMs = Number.NEGATIVE_INFINITY): string | undefined {
      return begunAt === undefined ? undefined : iso(Math.max(sinceMs, begunAt - overlapMs));
    },
  };
}

/** Formats a time without fractions of a second, because some APIs reject them. */
function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

// Decides whether a read over HTTP was complete:
//
//   `total` is configured      → exactly as many distinct records as the largest total stated.
//                                A total that changes meanwhile is harmless by itself, and one
//                                that counts a page proves nothing
//   `total` is not configured  → the end was marked: no next cursor after one, or an empty page;
//                                and no response states a total above the records read
//   always                     → no error, every record read, and no other flaw
//
// Records are distinguished by their id, or without one by their entire content.

/**
 * Creates what gathers the facts that prove a listing complete. `id` and `total` are the paths of a
 * record's id and of the total number of records; `more` is what to do to read all records.
 */
function createProof(id: string, total: string | undefined, more: string) {
  const seen = new Set<number>();
  const broken: string[] = [];
  let records = 0;
  let answers = 0;
  let stated: Stated | undefined;
  let largest: number | undefined;
  let unmarked: Flaw | undefined;
  let stopped: Flaw | undefined;
  return {
    add(value: unknown): boolean {
      const before = seen.size;
      records += 1;
      const text = idOf(value, id);
      return seen.add(markOf(text === '' ? `record ${toText(value)}` : `id ${text}`)).size > before;
    },
    addBroken: (where: string) => void broken.push(where),
    /** Reads the total from a response; `found` is one that was found without configuration. */
    hear(answer: unknown, found: Stated | undefined): void {
      answers += 1;
      if (found && found.count > (stated?.count ?? 0)) stated = found;
      const count = total === undefined ? undefined : countOf(fieldAt(answer, total));
      if (count !== undefined) largest = Math.max(count, largest ?? 0);
    },
    /** Notes that the list ended without an end mark. A total outweighs this flaw. */
    endUnmarked: (flaw: Flaw) => void (unmarked = flaw),
    /** Notes that the list ended early, regardless of any total. */
    stop: (flaw: Flaw) => void (stopped = flaw),
    flaws(): Flaw[] {
      const flaws: Flaw[] = [];
      if (stopped) return [stopped];
      if (broken.length > 0) {
        const fix = 'mend those records in the CRM';
        flaws.push(brokenFlaw('record', { count: broken.length, first: broken[0], fix }));
      }
      if (total === undefined) {
        // Within one response, two records with the same id cannot stand for a missing one.
        const count = answers > 1 ? seen.size : records;
        if (unmarked) return [...flaws, unmarked];
        if (!stated || stated.count <= count) return flaws;
        const { path } = stated;
        const came = `${path} is ${stated.count}, and ${counted(count, 'record')} came`;
        const fix = `${more}; if ${path} counts something else, name the total of the source`;
        return [...flaws, { why: `the answer says that more pages follow: ${came}`, fix }];
      }
      if (largest === undefined) {
        const fix = 'correct total of the source, or remove it';
        return [...flaws, { why: 'no answer tells the total', fix }];
      }
      if (seen.size === largest) return flaws;
      const read = `${seen.size} different records were read`;
      if (seen.size > largest) {
        const fix = 'read it again; is total of the source the number of all, not of a page?';
        return [...flaws, { why: `${read}, more than the total of ${largest}`, fix }];
      }
      const again = 'read it again when the CRM is quieter, in an order that does not change';
      const fix = answers > 1 ? again : more;
      return [...flaws, { why: `${read}, and the CRM counts ${largest}`, fix }];
    },
  };
}

function idOf(value: unknown, path: string): string {
  const id = fieldAt(value, path);
  return typeof id === 'string' || typeof id === 'number' ? String(id).trim() : '';
}

function toText(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return 'nested too deeply to be told from others';
  }
}
