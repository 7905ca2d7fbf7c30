/**
 * Reads contacts, or templates with their keys, from an HTTP API that lists its records as JSON,
 * all at once or page by page. With `one` it also returns a single record, and with `changes` what
 * changed since a time of the CRM's own clock, taken from its first response; without that, there
 * is no cursor. After the first page, a failure ends the read without a certificate, and keeps its
 * opt-outs.
 */
import { pathSegment, queryValue, isDotSegment } from '../../domain/address-part.ts';
import { Invalid } from '../../domain/errors.ts';
import { createAsking, type Said, type Surroundings, type Asking } from '../shared/crm-request.ts';
import { brokenFlaws, type Flaw, markOf, stoppedBy } from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/record-fields.ts';
import {
  type ListEnd,
  type Listing,
  sessionSource,
  sessionWriteBack,
} from '../shared/session-source.ts';
import type { ReadRequest, ReportResult, Source, SourceRecord, WriteBack } from '../source.ts';
import type { ChangesOptions, HttpOptions, HttpReturnsOptions } from './options.ts';
import {
  countOf,
  createPaging,
  howToReadOn,
  type Next,
  type ReadPage,
  signsIn,
  type Stated,
  TELL_TOTAL,
} from './paging.ts';
import type { Clock } from '../../domain/clock.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import { httpDate } from '../../http/rate-limit-headers.ts';
import { mapLeaves } from '../../domain/stored-json.ts';
import { fieldAt, isRecord } from '../../domain/values/record-field.ts';
import { counted } from '../../domain/values/counted.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';

const mend = { credentials: 'the headers', request: 'url and page' };
const mends = {
  read: mend,
  changes: { ...mend, request: 'changes' },
  one: { ...mend, request: 'one' },
};

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
  const list = (asking: Asking, url: string, request: ReadRequest, ofChanges: boolean) =>
    readList(asking, { ...options, url }, request, { clock, id, ofChanges });
  return sessionSource<Asking>('http', clock, {
    open: (_, part) => createAsking({ ...options, mend: mends[part] }, surroundings),
    async *read(asking, request) {
      const { begunAt, flaws } = yield* list(asking, options.url, request, false);
      return { flaws, ...(changes && { cursor: cursorAfter(changes, begunAt) }) };
    },
    ...(changes && {
      async *changes(asking, since, request): Listing<ListEnd | 'lost'> {
        const sinceMs = Date.parse(since);
        if (Number.isNaN(sinceMs)) return 'lost';
        const { url, format } = changes;
        const seconds = Math.floor(sinceMs / 1000);
        const unix = String(format === 'unix' ? seconds : seconds * 1000);
        const found = yield* list(
          asking,
          url.replaceAll('{since}', () => queryValue(format === 'iso' ? toIso(sinceMs) : unix)),
          request,
          true,
        );
        // If the CRM's clock was set back, changes made before the old time would be missing.
        if (found.isLost || sinceMs > (found.answeredAt ?? sinceMs)) return 'lost';
        return { flaws: found.flaws, cursor: cursorAfter(changes, found.begunAt, sinceMs) };
      },
    }),
    ...(one !== undefined && {
      async one(asking, wanted, { fields, signal }) {
        // An id that would change the path throws Invalid.
        const address = one.replaceAll('{id}', () => pathSegment(wanted));
        const said = await asking.ask({ address }, signal);
        if (said && idOf(said.value, id) !== wanted) {
          const what = 'one answers no record of the id asked for';
          throw new Invalid(`${asking.host}: ${what}`, { fix: 'correct one' });
        }
        const where = 'the record by its id';
        return said && jsonRecords(fields).recordOf(said.value, where, said.text);
      },
    }),
  });
}

// A cursor is a time of the CRM's clock in whole seconds, as in its Date header.

/** Returns the cursor after a read begun then, never before `sinceMs`; undefined if unknown. */
function cursorAfter(
  { overlap }: ChangesOptions,
  begunAt: number | undefined,
  sinceMs = Number.NEGATIVE_INFINITY,
): string | undefined {
  if (begunAt === undefined) return undefined;
  return toIso(Math.max(sinceMs, begunAt - milliseconds(overlap)));
}

/** Formats a time without fractions of a second, because some APIs reject them. */
const toIso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

/** How a list was read. Times are of the CRM's clock in epoch milliseconds, if it states any. */
interface ListingResult {
  flaws: readonly Flaw[];
  isLost: boolean;
  /** The earliest time whose state the first response may show. */
  begunAt?: number;
  answeredAt?: number;
}

/**
 * Yields the records page by page. Throws the error that prevents the first response. A list of
 * changes (`ofChanges`) may no longer exist, and its paging was proven before.
 */
async function* readList(
  asking: Asking,
  options: HttpOptions,
  request: ReadRequest,
  { clock, id, ofChanges }: { clock: Clock; id: string; ofChanges: boolean },
): Listing<ListingResult> {
  const { fields, signal } = request;
  const records = jsonRecords(fields);
  const proof = createProof(id, options.total, howToReadOn(options));
  const paging = createPaging(options, asking.host, ofChanges);
  const readPage = async (address: string, number: number): Promise<Page | 'lost'> => {
    const accepts = ofChanges ? [GONE, NO_CONTENT] : [NO_CONTENT];
    const said = await asking.ask({ address, accepts }, signal);
    const isAbsent = !said || isNothing(said, options);
    if (said?.status === GONE || (ofChanges && isAbsent && number === 1)) return 'lost';
    const answeredAt = httpDate(said?.headers['date']);
    if (!said) {
      const { missing: flaw } = paging;
      if (number > 1 && flaw) return { batch: [], next: { end: 'unmarked', flaw }, answeredAt };
      const fix = 'correct url and page of the source';
      throw new Invalid(`${asking.host} has no such page (404)`, { fix });
    }
    const list = isAbsent && number > 1 ? [] : findList(said, options, asking.host);
    const signs = signsIn(said, options.records);
    if (list.length === 0 && signs.error !== undefined) {
      const fix = 'see why in the CRM, or correct url and page of the source';
      const what = `the answer has no record and states an error (${signs.error})`;
      throw new Invalid(`${asking.host}: ${what}`, { fix });
    }
    proof.hear(said.value, signs.total);
    const batch = list.map((value, index) => {
      const where = `page ${number}, record ${index + 1}`;
      const record = records.recordOf(value, where, said.text);
      if ('broken' in record) proof.addBroken(where);
      return record;
    });
    const fresh = list.filter((value) => proof.add(value)).length;
    const page = { value: said.value, size: list.length, fresh, signs };
    const fix = TELL_TOTAL;
    const ended: Next = { end: 'unmarked', flaw: { why: `page ${number} holds no list`, fix } };
    const next = isAbsent ? ended : paging.after(page);
    const flaw = 'end' in next ? findContinuation(page, number, options) : undefined;
    if (!flaw || !('end' in next) || next.end === 'wrong') return { batch, next, answeredAt };
    return { batch, next: { end: 'wrong', flaw }, answeredAt };
  };
  let times: { begunAt?: number; answeredAt?: number } = {};
  let isLost = false;
  let address: string | undefined = paging.first;
  for (let number = 1; address !== undefined; number += 1) {
    if (number > MOST_PAGES) {
      const why = `the list has more than ${MOST_PAGES} pages`;
      proof.stop({ why, fix: 'have larger pages' });
      break;
    }
    const askedAt = clock.monotonic();
    const page: Page | 'lost' | void = await readPage(address, number).catch((error: unknown) => {
      proof.stop(stoppedBy(error, number > 1, `at page ${number}`));
    });
    isLost = page === 'lost';
    if (!page || page === 'lost') break;
    const { batch, next, answeredAt }: Page = page;
    if (number === 1 && answeredAt !== undefined) {
      // A slow response may show the state at the time of the request.
      const tookMs = Math.max(0, clock.monotonic() - askedAt);
      times = { begunAt: answeredAt - tookMs, answeredAt };
    }
    for (let start = 0; start < batch.length; start += BATCH_RECORDS)
      yield batch.slice(start, start + BATCH_RECORDS);
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
  return { ...times, isLost, flaws };
}

interface Page {
  batch: SourceRecord[];
  next: Next;
  answeredAt: number | undefined;
}

/** Returns whether nothing is where the list would be: 204, null, or an object without fields. */
function isNothing({ status, value }: Said, { records }: HttpOptions): boolean {
  if (status === NO_CONTENT) return true;
  const list = records === undefined ? value : fieldAt(value, records);
  const parent = records?.includes('.') && fieldAt(value, records.replace(/\.[^.]*$/, ''));
  return [value, parent, list].some(
    (one) => one === null || (isRecord(one) && Object.keys(one).length === 0),
  );
}

function findList({ value }: Said, { records }: HttpOptions, host: string): unknown[] {
  const list = records === undefined ? value : fieldAt(value, records);
  if (Array.isArray(list)) return list;
  if (records === undefined) {
    const fix = 'name with records where in it the list stands';
    throw new Invalid(`${host}: the answer is no list`, { fix });
  }
  const fix = 'correct records of the source';
  throw new Invalid(`${host}: there is no list at records in the answer`, { fix });
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

/** Gathers the proof. `id` and `total` are paths; `more` says how to read all records. */
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
      if (stopped) return [stopped];
      const fixBroken = 'mend those records in the CRM';
      const flaws = brokenFlaws('record', broken.length, broken[0], fixBroken);
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

// Reports opt-outs to an HTTP API: one request per report, with the report's id as Idempotency-Key.
// An API that supports this header processes each report once. Even without it, writing the same
// opt-out twice changes nothing.
//
//   2xx                        reported
//   2xx that states an error   the CRM does not accept this report: rejected
//   404, 410                   the CRM does not have this person: rejected
//   400, 409, 413, 422         the CRM does not accept this report: rejected
//   anything else              handled as for a read (crm-request.ts); the run sends no further
//                              reports

const MOST_WAIT_MS = 20_000;
const done = [200, 201, 202, 203, 204, 205, 206, 207, 208, 226];
const gone = [404, 410];
const accepts = [...done, ...gone, 400, 409, 413, 422];
const mendReturns = { credentials: 'the headers', request: 'url, method and body', of: 'returns' };

export function httpReturns(options: HttpReturnsOptions, surroundings: Surroundings): WriteBack {
  const { url } = options;
  const needsId = (url + JSON.stringify(options.body ?? '')).includes('{id}');
  const { host } = new URL(url);
  return sessionWriteBack({
    takes: ({ crmId }) => !needsId || crmId !== '',
    look: () => `reported to ${host}, by ${options.method}`,
    open: () =>
      createAsking({ ...options, mend: mendReturns, mostWaitMs: MOST_WAIT_MS }, surroundings),
    report: async (asking, one, signal) => report(asking, one, options, signal),
  });
}

async function report(
  asking: Asking,
  { id, email, crmId, channel, cause, by }: OptOutReport,
  { url, method, body }: HttpReturnsOptions,
  signal: AbortSignal,
): Promise<ReportResult> {
  const at = new Date(by).toISOString();
  const values = new Map(Object.entries({ return: id, id: crmId, email, channel, cause, at }));
  const valueOf = (name: string) => values.get(name) ?? '';
  const [path = '', query] = url.split(/(?=\?)/, 2);
  const inPath = [...path.matchAll(place)].map(([, name = '']) => valueOf(name));
  if (inPath.some(isDotSegment)) {
    const reason = 'an id of dots makes the address that of something else';
    return { is: 'rejected', reason, fix: 'give the record another id, or name it in body' };
  }
  const said = await asking.ask(
    {
      address:
        filled(path, (name) => pathSegment(valueOf(name))) +
        filled(query ?? '', (name) => queryValue(valueOf(name))),
      method,
      headers: { 'idempotency-key': id },
      // The texts of the JSON are filled in, and not its field names.
      json: mapLeaves(body, (leaf) => (typeof leaf === 'string' ? filled(leaf, valueOf) : leaf)),
      accepts,
    },
    signal,
  );
  const status = said?.status ?? 404;
  const error = said && done.includes(status) ? signsIn(said, '').error : undefined;
  if (done.includes(status) && error === undefined) return { is: 'told' };
  const isGone = gone.includes(status);
  const reason = isGone ? 'does not have this person' : 'refused it';
  const fix = isGone
    ? 'is url of returns the address of a record?'
    : 'correct url and body of returns, or the record in the CRM';
  const stated = error === undefined ? '' : `, it states an error: ${error}`;
  return { is: 'rejected', reason: `the CRM ${reason} (${status}${stated})`, fix };
}

const place = /\{(\w+)\}/g;

function filled(text: string, valueOf: (name: string) => string): string {
  return text.replaceAll(place, (_, name: string) => valueOf(name));
}
