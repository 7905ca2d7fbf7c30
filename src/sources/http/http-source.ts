/**
 * An HTTP API as a source of contacts, or of templates with their keys. It lists its records as
 * JSON, at once or page by page; with `one` it also gives a single record, with `changes` those
 * that changed since a time.
 *
 * completeness-proof.ts explains the certificate. When an answer cannot be had after the first
 * page, the reading ends without a certificate, and opt-outs that were read are not lost. The API
 * cannot be asked whether it has changed, so a reading counts for a quarter of an hour, and each
 * has a new name.
 *
 * The time since which changes are wanted is one of the CRM's own clock, taken from its first
 * answer. If that names none there is no cursor.
 */
import { Invalid } from '../../domain/errors.ts';
import { createAsking, type Said, type Surroundings } from '../shared/crm-request.ts';
import { certificateOf, holding, withCursor } from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { listed, type ListingResult } from './record-listing.ts';
import type { ChangesOptions, HttpOptions } from './options.ts';
import { createProof, idOf } from './completeness-proof.ts';
import { milliseconds } from '../../domain/values/config-value.ts';

const mend = { credentials: 'the headers', request: 'url and page' };
const mendChanges = { ...mend, request: 'changes' };
const mendOne = { ...mend, request: 'one' };

/** Returns the source of an HTTP API; `id`: the path of a record's id. */
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
        // The CRM's clock was put back: changes up to then would not be listed.
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
  const proof = createProof({ id, total: options.total });
  try {
    const listing = { asking, records, proof, clock, signal, ofChanges };
    const found = yield* listed(options, listing);
    const flaws = proof.flaws();
    const lack = records.lacking();
    // A record that was not read may have the field.
    if (lack !== undefined && flaws.length === 0 && !ofChanges) {
      throw new Invalid(`${asking.host}: ${lack}`);
    }
    return { ...found, certificate: certificateOf(name, flaws) };
  } finally {
    await asking.close();
  }
}

/**
 * Returns the address of one record. An empty or dotted id would make it the address of something
 * else.
 */
function addressOf(one: string, id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new Invalid('an id that is empty or dotted names no record');
  return one.replaceAll('{id}', () => encodeURIComponent(id));
}

interface Asked {
  wanted: string;
  id: string;
  fields: readonly string[];
  host: string;
}

/** Returns the record of an answer. Throws Invalid when it is another record than was asked for. */
function single({ value, text }: Said, { wanted, id, fields, host }: Asked): SourceRecord {
  if (idOf(value, id) !== wanted) {
    throw new Invalid(`${host}: one answers no record of the id asked for`, { fix: 'correct one' });
  }
  return jsonRecords(fields).recordOf(value, 'the record by its id', text);
}

/**
 * Cursors of this source: a time of the CRM's clock in whole seconds, as its Date header has it.
 */
interface ChangeCursor {
  /** Returns the time in a cursor; undefined when it is none. */
  read(cursor: string): number | undefined;
  /** Returns the address of the list of what changed since then. */
  addressAt(ms: number): string;
  /**
   * Returns the cursor after a reading that began at `begunAt`, never before the one it continued
   * from; undefined when that time is unknown.
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
    addressAt: (ms) => url.replaceAll('{since}', () => encodeURIComponent(written(ms, format))),
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

/** Returns a time without a fraction of a second, because not every API reads one. */
function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
