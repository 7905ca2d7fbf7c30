/**
 * An HTTP API as a source: it lists its records as JSON, at once or page by page; with `one` it
 * also gives a single one. Contacts, or templates, each with its key.
 *
 * What its certificate rests on stands in proof.ts. An answer that cannot be had after the first
 * page ends the reading without one: opt-outs that were read are not lost. What is read cannot be
 * asked whether it still holds; it counts for a quarter of an hour, and every reading is one of its
 * own.
 */
import { Interrupted, Invalid, isExpected } from '../../model/errors.ts';
import { fieldAt } from '../../model/field.ts';
import { createAsking, type Asking, type Said, type Surroundings } from '../asking.ts';
import { certificateOf, type Flaw } from '../certificate.ts';
import { jsonRecords, type JsonRecords } from '../json.ts';
import type { Source, SourceRecord } from '../source.ts';
import type { HttpOptions } from './options.ts';
import { createPaging, type Next, type Paging } from './paging.ts';
import { createProof, idOf, type Proof } from './proof.ts';

const BATCH_RECORDS = 500;
const MOST_PAGES = 100_000;
const HOLDS_MS = 15 * 60_000;
const mend = { credentials: 'the headers', request: 'url and page' };

/** `id`: the field that tells one record from another. */
export function httpSource(
  options: HttpOptions,
  { id, ...surroundings }: Surroundings & { id: string },
): Source {
  const { clock } = surroundings;
  let latest: { reading: string; at: number } | undefined;
  const { one, total } = options;
  return {
    async *read({ fields, signal }) {
      const reading = `http-${clock.now()}`;
      const asking = createAsking({ ...options, mend }, surroundings);
      const records = jsonRecords(fields);
      const proof = createProof({ id, total });
      try {
        yield* batchesOf(options, { asking, records, proof, signal });
        const flaws = proof.flaws();
        const lack = records.lacking();
        // Who was not read may have it.
        if (lack !== undefined && flaws.length === 0) throw new Invalid(`${asking.host}: ${lack}`);
        latest = { reading, at: clock.now() };
        return certificateOf(reading, flaws);
      } finally {
        await asking.close();
      }
    },
    still(reading) {
      if (latest?.reading !== reading) return false;
      const ageMs = clock.now() - latest.at;
      return ageMs >= 0 && ageMs < HOLDS_MS;
    },
    ...(one !== undefined && {
      async one(wanted, { fields, signal }) {
        const asking = createAsking({ ...options, mend }, surroundings);
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

interface Reading {
  asking: Asking;
  records: JsonRecords;
  proof: Proof;
  signal: AbortSignal;
}

/** Page by page, in batches of bearable size. How it ended is told to the proof. */
async function* batchesOf(
  options: HttpOptions,
  reading: Reading,
): AsyncGenerator<SourceRecord[], void> {
  const { asking, proof } = reading;
  const paging = createPaging(options, asking.host);
  let address = paging.first;
  for (let number = 1; number <= MOST_PAGES; number += 1) {
    const at = { ...reading, options, paging, address, number };
    const turn = await turnAt(at).catch((error: unknown) => {
      if (number === 1 || !isExpected(error) || error instanceof Interrupted) throw error;
      proof.stop(stoppedBy(error, number));
    });
    if (!turn) return;
    for (let start = 0; start < turn.batch.length; start += BATCH_RECORDS) {
      yield turn.batch.slice(start, start + BATCH_RECORDS);
    }
    if ('end' in turn.next) {
      if (turn.next.end === 'unmarked') proof.endUnmarked(turn.next.flaw);
      if (turn.next.end === 'wrong') proof.stop(turn.next.flaw);
      return;
    }
    ({ address } = turn.next);
  }
  proof.stop({ why: `the list has more than ${MOST_PAGES} pages`, fix: 'have larger pages' });
}

interface At extends Reading {
  options: HttpOptions;
  paging: Paging;
  address: string;
  number: number;
}

/** One page: its records, and where the next one is. */
async function turnAt(at: At): Promise<{ batch: SourceRecord[]; next: Next }> {
  const { options, asking, paging, address, number, signal } = at;
  const said = await asking.ask({ address }, signal);
  if (!said) {
    const { missing: flaw } = paging;
    if (number > 1 && flaw) return { batch: [], next: { end: 'unmarked', flaw } };
    throw new Invalid(`${asking.host} has no such page (404) → correct url and page of the source`);
  }
  at.proof.hear(said.value);
  const list = options.records === undefined ? said.value : fieldAt(said.value, options.records);
  if (!Array.isArray(list)) throw new Invalid(`${asking.host}: ${noList(options)}`);
  const batch = list.map((value, index) => {
    const where = `page ${number}, record ${index + 1}`;
    const record = at.records.recordOf(value, where, said.text);
    if ('broken' in record) at.proof.addBroken(where);
    return record;
  });
  const fresh = list.filter((value) => at.proof.add(value)).length;
  const { value, headers } = said;
  const linked = /;\s*rel="?next\b/i.test(headers['link'] ?? '');
  return { batch, next: paging.after({ value, size: list.length, fresh, linked }) };
}

function noList({ records }: HttpOptions): string {
  return records === undefined
    ? 'the answer is no list → name with records where in it the list stands'
    : 'there is no list at records in the answer → correct records of the source';
}

function stoppedBy(error: Error, number: number): Flaw {
  const [what = '', fix = 'read it again'] = error.message.split(' → ');
  return { why: `reading stopped at page ${number}: ${what}`, fix };
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
