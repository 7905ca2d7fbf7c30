/**
 * A source each of whose records goes through a function first. One that it fails on, or gives
 * nothing for, is broken as a row is that cannot be read: whoever it is about is not taken for
 * gone, and without her the reading has no certificate. So nobody's opt-out is lost in it unseen;
 * whom a mirror is not about is for `include` to say, which keeps them.
 */
import { Invalid } from '../../domain/errors.ts';
import type { MapRecord } from '../../domain/record-mapping.ts';
import { brokenFlaw } from './read-certificate.ts';
import { jsonRecords, type JsonRecords } from './json-records.ts';
import type { Certificate, Source, SourceRecord } from '../source.ts';

export interface Mapping {
  /** For messages. */
  name: string;
  map: MapRecord;
  /** What of the records that go in must be there. */
  reads: readonly string[];
}

/** Fields are asked for of what comes out. */
export function mappedSource(source: Source, mapping: Mapping): Source {
  const { reads: fields } = mapping;
  const { changes, one, still } = source;
  return {
    async *read({ fields: wanted, signal }) {
      const through = createThrough(mapping, wanted);
      const certificate = yield* through.all(source.read({ fields, signal }));
      const told = through.certify(certificate);
      if (told.complete) through.demand();
      return told;
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
    const made = mapOne(map, found, records);
    if ('broken' in made) broken.push(found.where);
    return made;
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
      const [first] = broken;
      if (first === undefined) return found;
      const fix = `have ${name} allow for them`;
      const flaw = brokenFlaw('record', { count: broken.length, first, fix });
      const { reading } = found;
      if (found.complete) return { complete: false, reading, ...flaw };
      return { ...found, why: `${found.why}; ${flaw.why}`, fix: `${found.fix}; ${flaw.fix}` };
    },
    /** Throws Invalid where no record has a field that is asked for. */
    demand() {
      const lack = records.lacking();
      if (lack !== undefined) throw new Invalid(`${name}: after it ${lack}`);
    },
  };
}

/** What it throws may quote the record: it is not repeated. */
function mapOne(
  map: MapRecord,
  { where, value }: Extract<SourceRecord, { value: unknown }>,
  records: JsonRecords,
): SourceRecord {
  try {
    const made: unknown = map(value);
    const isNone = typeof made !== 'object' || made === null || made instanceof Promise;
    if (!isNone) return records.recordOf(made, where, '\\u0000');
    const fix = 'have it give a record; whom the mirror is not about, contacts.include says';
    return { where, broken: 'is one for which contacts.map gives no record', fix };
  } catch (error) {
    const what = error instanceof Error ? error.name : 'something';
    const fix = 'have the map allow for such a record, or mend it in the CRM';
    return { where, broken: `is one on which contacts.map fails (${what})`, fix };
  }
}
