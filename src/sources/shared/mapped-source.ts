/**
 * Passes a source's records through a function. A record for which it throws or returns nothing is
 * broken, like a row that cannot be read, so it cannot silently hide an opt-out. To exclude records
 * from a mirror, use `include`, which does not drop them.
 */
import { Invalid } from '../../domain/errors.ts';
import type { MapRecord } from '../../domain/record-mapping.ts';
import { brokenFlaws, certificateOf } from './read-certificate.ts';
import { jsonRecords } from './record-fields.ts';
import type { Certificate, Source, SourceRecord } from '../source.ts';

export interface Mapping {
  name: string;
  map: MapRecord;
  reads: readonly string[];
}

/** Returns a source of mapped records. The fields in a request are those after the mapping. */
export function mappedSource(source: Source, mapping: Mapping): Source {
  const { reads: fields } = mapping;
  const { changes, one, still } = source;
  return {
    async *read({ fields: wanted, ...request }) {
      const through = createThrough(mapping, wanted);
      const certificate = yield* through.all(source.read({ ...request, fields }));
      const certified = through.certify(certificate);
      if (certified.complete) through.demand();
      return certified;
    },
    ...(still && { still: (reading) => still(reading) }),
    ...(changes && {
      async *changes(since, { fields: wanted, signal }) {
        const through = createThrough(mapping, wanted);
        const end = yield* through.all(changes(since, { fields, signal }));
        return end === 'lost' ? end : through.certify(end);
      },
    }),
    ...(one && {
      async one(id, { fields: wanted, signal }) {
        const found = await one(id, { fields, signal });
        return found && createThrough(mapping, wanted).record(found);
      },
    }),
  };
}

function createThrough({ name, map }: Mapping, wanted: readonly string[]) {
  const records = jsonRecords(wanted);
  const broken: string[] = [];
  const record = (found: SourceRecord): SourceRecord => {
    if ('broken' in found) return found;
    const made = mapOne(found.value, found.where);
    if ('broken' in made) broken.push(found.where);
    return made;
  };
  /** The reason does not repeat an error of the function, because that may quote the record. */
  const mapOne = (value: Record<string, unknown>, where: string): SourceRecord => {
    try {
      const made: unknown = map(value);
      const isNone = typeof made !== 'object' || made === null || made instanceof Promise;
      if (!isNone) return records.recordOf(made, where, '\\u0000');
      const fix = 'have it return a record; to leave records out, use contacts.include';
      return { where, broken: 'is one for which contacts.map gives no record', fix };
    } catch (error) {
      const what = error instanceof Error ? error.name : 'something';
      const fix = 'have the map allow for such a record, or mend it in the CRM';
      return { where, broken: `is one on which contacts.map fails (${what})`, fix };
    }
  };
  return {
    record,
    async *all<T>(reading: AsyncGenerator<SourceRecord[], T>): AsyncGenerator<SourceRecord[], T> {
      const ends: T[] = [];
      async function* kept() {
        ends.push(yield* reading);
      }
      for await (const batch of kept()) yield batch.map(record);
      const [end] = ends;
      if (end === undefined) throw new Error('a reading ended without its end');
      return end;
    },
    certify(found: Certificate): Certificate {
      const fix = `have ${name} allow for them`;
      const flaws = brokenFlaws('record', broken.length, broken[0], fix);
      if (flaws.length === 0) return found;
      return certificateOf(found.reading, found.complete ? flaws : [found, ...flaws]);
    },
    demand() {
      const lack = records.lacking();
      if (lack !== undefined) throw new Invalid(`${name}: after it ${lack}`);
    },
  };
}
