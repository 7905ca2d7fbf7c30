/**
 * Reads contacts, or templates with their keys, from an HTTP API. The API lists its records as
 * JSON, all at once or page by page. With `one` it also returns a single record, and with `changes`
 * the records that changed since a given time.
 *
 * completeness-proof.ts explains the certificate. If a request fails after the first page, the read
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
import { certificateOf, holding, withCursor } from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { listed, type ListingResult } from './record-listing.ts';
import type { ChangesOptions, HttpOptions } from './options.ts';
import { createProof, idOf } from './completeness-proof.ts';
import { howToReadOn } from './page-setting.ts';
import { milliseconds } from '../../domain/values/config-value.ts';

const mend = { credentials: 'the headers', request: 'url and page' };
const mendChanges = { ...mend, request: 'changes' };
const mendOne = { ...mend, request: 'one' };

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
      const found = yield* readingOf(options, { ...around, name, request, ofChanges: false });
      keep(name);
      const { certificate, begunAt } = found;
      return since ? withCursor(certificate, since.after(begunAt)) : certificate;
    },
    ...(since && {
      async *changes(cursor, request): AsyncGenerator<SourceRecord[], Certificate | 'lost'> {
        const sinceMs = since.read(cursor);
        if (sinceMs === undefined) return 'lost';
        const name = `http-${clock.now()}`;
        const told = { ...options, url: since.addressAt(sinceMs) };
        const found = yield* readingOf(told, { ...around, name, request, ofChanges: true });
        // If the CRM's clock was set back, changes made before the old time would be missing from
        // the list.
        if (found.lost || sinceMs > (found.answeredAt ?? sinceMs)) return 'lost';
        keep(name);
        return withCursor(found.certificate, since.after(found.begunAt, sinceMs));
      },
    }),
    still,
    ...(one !== undefined && {
      async one(wanted, { fields, signal }) {
        const asking = createAsking({ ...options, mend: mendOne }, surroundings);
        try {
          const said = await asking.ask({ address: addressOf(one, wanted) }, signal);
          return said && single(said, { wanted, id, fields, host: asking.host });
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
  ofChanges: boolean;
}

async function* readingOf(
  options: HttpOptions,
  { name, id, request, ofChanges, ...surroundings }: Reading,
): AsyncGenerator<SourceRecord[], ListingResult & { certificate: Certificate }> {
  const { fields, signal } = request;
  const { clock } = surroundings;
  const asking = createAsking({ ...options, mend: ofChanges ? mendChanges : mend }, surroundings);
  const records = jsonRecords(fields);
  const more = howToReadOn(options);
  const proof = createProof({ id, total: options.total, more });
  try {
    const listing = { asking, records, proof, clock, signal, ofChanges };
    const found = yield* listed(options, listing);
    const flaws = proof.flaws();
    const lack = records.lacking();
    // A record that could not be read may contain the field.
    if (lack !== undefined && flaws.length === 0 && !ofChanges) {
      throw new Invalid(`${asking.host}: ${lack}`);
    }
    return { ...found, certificate: certificateOf(name, flaws) };
  } finally {
    await asking.close();
  }
}

/** Returns the address of one record. Throws Invalid for an id that would change the path. */
function addressOf(one: string, id: string): string {
  return one.replaceAll('{id}', () => pathSegment(id));
}

interface Asked {
  wanted: string;
  id: string;
  fields: readonly string[];
  host: string;
}

/** Returns the record in a response. Throws Invalid if it is not the requested record. */
function single({ value, text }: Said, { wanted, id, fields, host }: Asked): SourceRecord {
  if (idOf(value, id) !== wanted) {
    throw new Invalid(`${host}: one answers no record of the id asked for`, { fix: 'correct one' });
  }
  return jsonRecords(fields).recordOf(value, 'the record by its id', text);
}

/**
 * Cursors of this source. A cursor is a time of the CRM's clock in whole seconds, as in its Date
 * header.
 */
interface ChangeCursor {
  /** Returns the time in a cursor, or undefined if the cursor is not valid. */
  read(cursor: string): number | undefined;
  /** Returns the address of the list of changes since then. */
  addressAt(ms: number): string;
  /**
   * Returns the cursor after a read that began at `begunAt`; it is never before the cursor from
   * which that read continued. Returns undefined if that time is unknown.
   */
  after(begunAt: ListingResult['begunAt'], sinceMs?: number): string | undefined;
}

function createSince({ url, format, overlap }: ChangesOptions): ChangeCursor {
  const overlapMs = milliseconds(overlap);
  return {
    read(cursor) {
      const ms = Date.parse(cursor);
      return Number.isNaN(ms) ? undefined : ms;
    },
    addressAt: (ms) => url.replaceAll('{since}', () => queryValue(written(ms, format))),
    after(begunAt, sinceMs = Number.NEGATIVE_INFINITY) {
      if (begunAt === undefined) return undefined;
      return iso(Math.max(sinceMs, begunAt - overlapMs));
    },
  };
}

function written(ms: number, format: ChangesOptions['format']): string {
  if (format === 'iso') return iso(ms);
  const seconds = Math.floor(ms / 1000);
  return String(format === 'unix' ? seconds : seconds * 1000);
}

/** Formats a time without fractions of a second, because some APIs reject them. */
function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
