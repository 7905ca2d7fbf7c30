/** Reads a list over HTTP page by page, and reports to the proof how it ended. */
import { httpDate } from '../../http/rate-limit-headers.ts';
import type { Clock } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import type { Asking, Said } from '../shared/crm-request.ts';
import { stoppedBy } from '../shared/read-certificate.ts';
import type { JsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';
import type { HttpOptions } from './options.ts';
import { signsIn } from './more-signs.ts';
import { createPaging, type Next, type Paging } from './paging.ts';
import type { ListingProof } from './completeness-proof.ts';
import { unfinished } from './unfinished-list.ts';

const BATCH_RECORDS = 500;
const MOST_PAGES = 100_000;
const GONE = 410;
const NO_CONTENT = 204;

/** The parts needed to read a list. */
export interface RecordListing {
  asking: Asking;
  records: JsonRecords;
  proof: ListingProof;
  clock: Clock;
  signal: AbortSignal;
  /**
   * Whether the list contains changes. Such a list may no longer exist, and its paging has been
   * proven before.
   */
  ofChanges: boolean;
}

/**
 * Describes how a list was read. Times are the CRM's own in milliseconds since the epoch, or
 * undefined if it states none.
 */
export interface ListingResult {
  /** Whether the list of changes no longer exists. */
  lost: boolean;
  /** The earliest time whose state the first response may show. */
  begunAt: number | undefined;
  /** The time at which the first response was sent. */
  answeredAt: number | undefined;
}

/** Yields the records in batches. Throws the error that prevents the first response. */
export async function* listed(
  options: HttpOptions,
  listing: RecordListing,
): AsyncGenerator<SourceRecord[], ListingResult> {
  const { asking, proof, clock, ofChanges } = listing;
  const paging = createPaging(options, { host: asking.host, proven: ofChanges });
  let address = paging.first;
  let begun: ListingResult = { lost: false, begunAt: undefined, answeredAt: undefined };
  for (let number = 1; number <= MOST_PAGES; number += 1) {
    const askedAt = clock.monotonic();
    const at = { ...listing, options, paging, address, number };
    const turn = await turnAt(at).catch((error: unknown) => {
      proof.stop(stoppedBy(error, { hasBegun: number > 1, where: `at page ${number}` }));
    });
    if (!turn) return begun;
    if (turn === 'lost') return { ...begun, lost: true };
    if (number === 1) begun = timesOf(turn.answeredAt, clock.monotonic() - askedAt);
    for (let start = 0; start < turn.batch.length; start += BATCH_RECORDS) {
      yield turn.batch.slice(start, start + BATCH_RECORDS);
    }
    if ('end' in turn.next) {
      if (turn.next.end === 'unmarked') proof.endUnmarked(turn.next.flaw);
      if (turn.next.end === 'wrong') proof.stop(turn.next.flaw);
      return begun;
    }
    ({ address } = turn.next);
  }
  proof.stop({ why: `the list has more than ${MOST_PAGES} pages`, fix: 'have larger pages' });
  return begun;
}

interface At extends RecordListing {
  options: HttpOptions;
  paging: Paging;
  address: string;
  number: number;
}

interface Turn {
  batch: SourceRecord[];
  /** The location of the next page. */
  next: Next;
  answeredAt: number | undefined;
}

async function turnAt(at: At): Promise<Turn | 'lost'> {
  const { asking, paging, address, number, signal, ofChanges } = at;
  const accepts = ofChanges ? [GONE, NO_CONTENT] : [NO_CONTENT];
  const said = await asking.ask({ address, accepts }, signal);
  if (said?.status === GONE || (ofChanges && !said && number === 1)) return 'lost';
  const answeredAt = httpDate(said?.headers['date']);
  if (!said) {
    const { missing: flaw } = paging;
    if (number > 1 && flaw) return { batch: [], next: { end: 'unmarked', flaw }, answeredAt };
    throw new Invalid(`${asking.host} has no such page (404)`, {
      fix: 'correct url and page of the source',
    });
  }
  const list = listIn(said, at);
  const signs = signsIn(said, at.options.records);
  at.proof.hear(said.value, signs.total);
  const batch = list.map((value, index) => {
    const where = `page ${number}, record ${index + 1}`;
    const record = at.records.recordOf(value, where, said.text);
    if ('broken' in record) at.proof.addBroken(where);
    return record;
  });
  const fresh = list.filter((value) => at.proof.add(value)).length;
  const page = { value: said.value, size: list.length, fresh, signs };
  const next = paging.after(page);
  const flaw = 'end' in next ? unfinished(page, { number, options: at.options }) : undefined;
  if (!flaw || !('end' in next) || next.end === 'wrong') return { batch, next, answeredAt };
  return { batch, next: { end: 'wrong', flaw }, answeredAt };
}

/**
 * Returns the list in a response. A 204, or null in its place, is an empty list; after the first
 * page, which proves the path, an object without the list is one, too.
 */
function listIn({ status, value }: Said, { options: { records }, asking, number }: At): unknown[] {
  const list = records === undefined ? value : fieldAt(value, records);
  if (Array.isArray(list)) return list;
  if (status === NO_CONTENT || value === null || list === null) return [];
  if (number > 1 && isEmpty(value, records)) return [];
  if (records === undefined) {
    throw new Invalid(`${asking.host}: the answer is no list`, {
      fix: 'name with records where in it the list stands',
    });
  }
  throw new Invalid(`${asking.host}: there is no list at records in the answer`, {
    fix: 'correct records of the source',
  });
}

/** Returns whether nothing stands where the list would be, and no message about a failure. */
function isEmpty(value: unknown, records: string | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Object.keys(value).length === 0) return true;
  const parent = records?.includes('.')
    ? fieldAt(value, records.replace(/\.[^.]*$/, ''))
    : undefined;
  return typeof parent === 'object' && parent !== null && Object.keys(parent).length === 0;
}

/**
 * Returns the times of the first response. A slow response may show the state at the time of the
 * request.
 */
function timesOf(answeredAt: number | undefined, tookMs: number): ListingResult {
  const begunAt = answeredAt === undefined ? undefined : answeredAt - Math.max(0, tookMs);
  return { lost: false, begunAt, answeredAt };
}
