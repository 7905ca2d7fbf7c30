/**
 * Defines the scope of one read of an organization, reads single records by their ids, and resolves
 * merged and converted records to those that stand for them.
 */
import type { Condition, ConditionResult } from '../../domain/condition.ts';
import { type ObjectName, objectOf } from './protocol/record-ids.ts';
import { firstPage, isOneOf, rowsFrom, type Row } from './query-pages.ts';
import type { Session } from './api-session.ts';
import type { Shape } from './field-selection.ts';
import type { SourceRecord } from '../source.ts';

/** Limits the ids in one query, because an address may have 16 KB. */
const IDS_AT_ONCE = 250;

/** A field that may state an opt-out. If `says` gives unknown, the record is not trusted. */
export interface OptOutField {
  field: string;
  says(value: unknown): 'yes' | 'no' | 'unknown';
}

export type Reader = ReturnType<typeof createReader>;

interface ReaderOptions {
  session: Session;
  shapes: readonly Shape[];
  fields: readonly string[];
  /** The fields that may state an opt-out from all mail. */
  optOuts: readonly OptOutField[];
  /** A condition that states an opt-out from all mail if it is true. */
  optsOut: Condition | undefined;
  where: string | undefined;
}

export function createReader({ session, shapes, where, ...rest }: ReaderOptions) {
  const find = async (shape: Shape, field: string, ids: readonly string[]): Promise<Row[]> => {
    const found: Row[] = [];
    for (let from = 0; from < ids.length; from += IDS_AT_ONCE) {
      const some = ids.slice(from, from + IDS_AT_ONCE);
      const query = { shape, where: [isOneOf(field, some), where] };
      const pages = rowsFrom(session, query, await firstPage(session, query));
      for await (const rows of pages) found.push(...rows);
    }
    return found;
  };
  const ofObject = (ids: readonly string[], object: ObjectName) =>
    ids.filter((id) => objectOf(id) === object);
  return {
    session,
    shapes,
    ...rest,
    where,
    /** Returns records by their long ids, without those that do not exist or are excluded. */
    async lookUp(ids: readonly string[]): Promise<Row[]> {
      const found: Row[] = [];
      for (const shape of shapes) {
        found.push(...(await find(shape, 'Id', ofObject(ids, shape.object))));
      }
      return found;
    },
    /** Returns the records merged into one of these, and the leads converted to one of them. */
    async lookUpThose(ids: readonly string[]): Promise<Row[]> {
      const found: Row[] = [];
      const contacts = ofObject(ids, 'Contact');
      const isWithContacts = shapes.some(({ object }) => object === 'Contact');
      for (const shape of shapes) {
        found.push(...(await find(shape, 'MasterRecordId', ofObject(ids, shape.object))));
        if (shape.object === 'Lead' && isWithContacts) {
          found.push(...(await find(shape, 'ConvertedContactId', contacts)));
        }
      }
      return found;
    },
  };
}

/** The maximum number of merges to follow from one record. */
const MOST_STEPS = 10;

/**
 * Finds the record that replaces a merged record or a converted lead; salesforce-source.ts explains
 * why. The records that a batch needs are requested together.
 *
 *   record               leads to                          result
 *   independent          ·                                 its own fields
 *   deleted              ·                                 its own fields, deleted
 *   merged, converted    an independent or deleted one     the fields of that one, under its own id
 *   merged               nothing, or a circle              its own fields, deleted
 *   converted            nothing, or a circle              none, because it is no longer a lead
 *
 * Deleted records are left out if the configuration names no field that shows the deletion. Returns
 * the records, each under its own id, in this order. `around` holds other rows that were just read.
 */
export async function settle(
  reader: Reader,
  rows: readonly Row[],
  around: readonly Row[] = [],
): Promise<SourceRecord[]> {
  const known = new Map<string, Row | null>([...around, ...rows].map((row) => [row.id, row]));
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const walks = rows.map((row) => walk(row, known));
    const wanted = walks.flatMap((way) => (way !== 'lost' && 'needs' in way ? [way.needs] : []));
    if (wanted.length === 0) break;
    const ids = [...new Set(wanted)];
    for (const id of ids) known.set(id, null);
    for (const row of await reader.lookUp(ids)) known.set(row.id, row);
  }
  return rows.flatMap((row) => {
    const way = walk(row, known);
    const chain = way !== 'lost' && 'chain' in way ? way.chain : [row];
    const { isDeleted, isConverted } = chain.at(-1) ?? row;
    if (isDeleted ? !reader.fields.includes('IsDeleted') : isConverted) return [];
    const values = strictestValues(reader, chain);
    const value = { attributes: { type: row.object }, ...values, Id: row.id };
    return [{ where: `${row.object} ${row.id}`, value }];
  });
}

/** Returns the records that resolve to these, which change with them without showing it. */
export async function standIns(reader: Reader, rows: readonly Row[]): Promise<Row[]> {
  const found = new Map<string, Row>();
  let ids = rows.map(({ id }) => id);
  for (let step = 0; step < MOST_STEPS && ids.length > 0; step += 1) {
    const known = new Set([...rows.map(({ id }) => id), ...found.keys()]);
    const fresh = (await reader.lookUpThose(ids)).filter(({ id }) => !known.has(id));
    for (const row of fresh) found.set(row.id, row);
    ids = fresh.map(({ id }) => id);
  }
  return [...found.values()];
}

/** Follows a record to the last of its chain. A circle counts as a chain too long. */
function walk(
  from: Row,
  known: ReadonlyMap<string, Row | null>,
): { chain: Row[] } | { needs: string } | 'lost' {
  const chain = [from];
  for (let at = from; chain.length <= MOST_STEPS;) {
    const contact = at.isConverted ? at.contact : undefined;
    const next = at.isDeleted && at.master !== undefined ? at.master : contact;
    if (next === undefined) return { chain };
    const found = known.get(next);
    if (found === undefined) return { needs: next };
    if (found === null) return 'lost';
    chain.push(found);
    at = found;
  }
  return 'lost';
}

/** Fields that identify the person and do not express consent. */
const naming = new Set(['Id', 'Email', 'IsDeleted']);

/** Returns the fields of the last record, with the opt-out of any record in the chain. */
function strictestValues(
  { optOuts, optsOut }: Reader,
  chain: readonly Row[],
): Record<string, unknown> {
  const stated = optOuts.flatMap(({ field, says }): [string, unknown][] => {
    const values = chain.map((each) => each.values[field]);
    const value =
      values.find((one) => says(one) === 'yes') ?? values.find((one) => says(one) === 'unknown');
    return value === undefined ? [] : [[field, value]];
  });
  const rows = chain.map(({ values }) => ({
    ...values,
    ...Object.fromEntries(stated.filter(([field]) => field in values)),
  }));
  const last: Record<string, unknown> = rows.at(-1) ?? {};
  // A condition that cannot be evaluated makes the record invalid, so it opts nobody in either.
  const mayBeTrue = (verdict: ConditionResult) => 'failsOn' in verdict || verdict.gives !== false;
  const out = optsOut && rows.find((values) => mayBeTrue(optsOut.judge(values)));
  if (!out) return last;
  // All fields that the condition reads must be taken together, because a single one could change
  // its result.
  const judged = Object.entries(out).filter(
    ([field]) => optsOut.fields.includes(field) && !naming.has(field),
  );
  return { ...last, ...Object.fromEntries(judged) };
}
