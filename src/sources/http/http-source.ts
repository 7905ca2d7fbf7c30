/**
 * An HTTP API as a source: it lists its records as JSON, at once or page by page; with `one` it
 * also gives a single one, with `changes` those that changed since a time. Contacts, or templates,
 * each with its key.
 *
 * What its certificate rests on stands in completeness-proof.ts. An answer that cannot be had after
 * the first page ends the reading without one: opt-outs that were read are not lost. What is read
 * cannot be asked whether it still holds; it counts for a quarter of an hour, and every reading is
 * one of its own.
 *
 * Since when changes are wanted is said by the CRM's own clock, as its first answer tells it: where
 * it tells none there is no cursor.
 */
import { Invalid } from '../../domain/errors.ts';
import { createAsking, type Said, type Surroundings } from '../shared/crm-request.ts';
import { certificateOf, withCursor } from '../shared/read-certificate.ts';
import { jsonRecords } from '../shared/json-records.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../source.ts';
import { holding } from '../shared/reading-lifetime.ts';
import { type Listed, listed } from './record-listing.ts';
import type { HttpOptions } from './options.ts';
import { createProof, idOf } from './completeness-proof.ts';
import { createSince } from './change-cursor.ts';

const mend = { credentials: 'the headers', request: 'url and page' };
const mendChanges = { ...mend, request: 'changes' };
const mendOne = { ...mend, request: 'one' };

/** `id`: the field that tells one record from another. */
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
        // Its clock was put back: what happened until then is not told.
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
): AsyncGenerator<SourceRecord[], Listed & { certificate: Certificate }> {
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
    // Who was not read may have it.
    if (lack !== undefined && flaws.length === 0 && !ofChanges) {
      throw new Invalid(`${asking.host}: ${lack}`);
    }
    return { ...found, certificate: certificateOf(name, flaws) };
  } finally {
    await asking.close();
  }
}

/** An id that is empty or dotted would make the address that of something else. */
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

/** Whoever is answered instead of the one that was asked for is not taken for it. */
function single({ value, text }: Said, { wanted, id, fields, host }: Asked): SourceRecord {
  if (idOf(value, id) !== wanted) {
    throw new Invalid(`${host}: one answers no record of the id asked for → correct one`);
  }
  return jsonRecords(fields).recordOf(value, 'the record by its id', text);
}
