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
 * Deleted records are left out if the configuration names no field that shows the deletion.
 */
import type { ConditionResult } from '../../domain/condition.ts';
import type { SourceRecord } from '../source.ts';
import type { Reader } from './record-reader.ts';
import type { Row } from './query-row.ts';

/** The maximum number of merges to follow from one record. */
const MOST_STEPS = 10;

/**
 * Returns the records, each under its own id, in this order. `around` holds other rows that were
 * just read.
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
  return rows.flatMap((row) => recordOf(reader, row, walk(row, known)) ?? []);
}

/**
 * Returns all records that resolve to one of these, directly or over several steps. They change
 * when their target changes, although their own data does not show it.
 */
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

type Way = { chain: Row[] } | { needs: string } | 'lost';

/**
 * Follows a record to the last one of its chain, which replaces it. A circle counts as a chain that
 * is too long.
 */
function walk(from: Row, known: ReadonlyMap<string, Row | null>): Way {
  const chain = [from];
  for (let at = from; chain.length <= MOST_STEPS;) {
    const next = nextOf(at);
    if (next === undefined) return { chain };
    const found = known.get(next);
    if (found === undefined) return { needs: next };
    if (found === null) return 'lost';
    chain.push(found);
    at = found;
  }
  return 'lost';
}

function nextOf({ isDeleted, master, isConverted, contact }: Row): string | undefined {
  if (isDeleted && master !== undefined) return master;
  return isConverted ? contact : undefined;
}

function recordOf(reader: Reader, row: Row, way: Way): SourceRecord | undefined {
  const chain = way !== 'lost' && 'chain' in way ? way.chain : [row];
  const { isDeleted, isConverted } = chain.at(-1) ?? row;
  if (isDeleted ? !reader.fields.includes('IsDeleted') : isConverted) return undefined;
  const attributes = { type: row.object };
  const value = strictestOf(reader, chain);
  return { where: `${row.object} ${row.id}`, value: { attributes, ...value, Id: row.id } };
}

/** Fields that identify the person and do not express consent. */
const naming = new Set(['Id', 'Email', 'IsDeleted']);

/** Returns the fields of the last record, with the opt-out of any record in the chain. */
function strictestOf({ optOuts, optsOut }: Reader, chain: readonly Row[]): Record<string, unknown> {
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
  const out = optsOut && rows.find((values) => mayBeTrue(optsOut.judge(values)));
  if (!out) return last;
  // All fields that the condition reads must be taken together, because a single one could change
  // its result.
  const judged = Object.entries(out).filter(
    ([field]) => optsOut.fields.includes(field) && !naming.has(field),
  );
  return { ...last, ...Object.fromEntries(judged) };
}

/**
 * Returns whether a condition may be true. A condition that cannot be evaluated makes the record
 * invalid, so it opts nobody in either.
 */
function mayBeTrue(verdict: ConditionResult): boolean {
  return 'failsOn' in verdict || verdict.gives !== false;
}
