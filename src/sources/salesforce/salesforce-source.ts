/**
 * Reads the contacts of a Salesforce organization, its leads, or both, through the REST API, and
 * through the Bulk API if there are many.
 *
 * Deleted records stay in the recycle bin for 15 days. They are read only if the configuration
 * names `IsDeleted`. Three kinds of record no longer represent a person of their own, but refer to
 * one:
 *
 * - Of two merged records, one is deleted and names the other. It is yielded with the fields of the
 *   remaining record under its own id. To the engine it is a person whose address changed, so that
 *   everything recorded about the person moves along. It is also a second record with the same
 *   address, and the strictest record of an address counts. The person has opted out if either
 *   record says so.
 * - The remaining record may itself have been merged or deleted, so the chain is followed. If it
 *   leads nowhere, the merged record counts as a deleted person.
 * - A converted lead became a contact, and is yielded with the fields of that contact under its own
 *   id in the same way. If contacts are not read, or that contact is excluded, the lead is not
 *   yielded.
 *
 * These records do not change when the remaining record changes, so `changes` looks them up.
 *
 * The certificate depends on the count that each query reports, compared with the number of
 * distinct ids. If a request fails after the first record, the read ends without a certificate. The
 * cursor is the start time of the read by the organization's own clock, minus the overlap.
 */
import type { Condition, ConditionResult } from '../../domain/condition.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import { type Flaw, markedCursors, markOf, stoppedBy } from '../shared/read-certificate.ts';
import {
  type ListEnd,
  type Listing,
  sessionSource,
  sessionWriteBack,
} from '../shared/session-source.ts';
import type { ReadRequest, Source, SourceRecord, WriteBack } from '../source.ts';
import { createGrants, createSession, type Session, errorOf, refusalOf } from './salesforce-api.ts';
import {
  longId,
  objectOf,
  createReader,
  type OptOutField,
  type Reader,
  type Shape,
  describeShapes,
  bulkRows,
  firstPage,
  rowsFrom,
  type Row,
} from './salesforce-records.ts';
import type { SalesforceOptions, SalesforceReturnsOptions } from './options.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import type { Clock } from '../../domain/clock.ts';
import { pathSegment } from '../../domain/address-part.ts';

const SHAPES_HOLD_MS = 10 * 60_000;

/** A field that may state an opt-out in addition to Salesforce's own field, or a condition. */
type OptOut = OptOutField | { readonly when: Condition };

export function salesforceSource(
  options: SalesforceOptions,
  { unsubscribed, ...surroundings }: Surroundings & { unsubscribed: readonly OptOut[] },
): Source {
  const { clock } = surroundings;
  const openReader = createReaders(options, unsubscribed, clock);
  const grants = createGrants(options, surroundings);
  return sessionSource('salesforce', clock, {
    open: ({ signal }) => createSession(options, grants, signal, surroundings),
    async *read(session, request): Listing {
      const { signal } = request;
      const reader = await openReader(session, request, 'asked now');
      const all = async function* (shape: Shape): Rows {
        const query = { shape, where: [options.where], order: 'Id' };
        const first = await firstPage(session, query);
        if (first.total <= options.bulkAbove) return yield* rowsFrom(session, query, first);
        return yield* bulkRows(session, query, clock, signal);
      };
      const flaws = yield* listRecords(reader, all, async () => []);
      const cursors = createCursors(options, request.fields);
      return { flaws, cursor: cursors.after(session.startedAt()) };
    },
    async *changes(session, since, request): Listing<ListEnd | 'lost'> {
      const cursors = createCursors(options, request.fields);
      const reader = await openReader(session, request, 'asked now');
      const time = cursors.read(since, session.startedAt());
      if (time === undefined) return 'lost';
      const changed = async function* (shape: Shape): Rows {
        const where = [`SystemModstamp >= ${time}`, options.where];
        const query = { shape, where, order: 'SystemModstamp, Id' };
        return yield* rowsFrom(session, query, await firstPage(session, query));
      };
      const flaws = yield* listRecords(reader, changed, async (rows) => standIns(reader, rows));
      return { flaws, cursor: cursors.after(session.startedAt(), since) };
    },
    async one(session, wanted, request) {
      const id = longId(wanted);
      const object = id && objectOf(id);
      if (id === undefined || !options.objects.some((name) => name === object)) return undefined;
      const reader = await openReader(session, request, 'as known');
      const [record] = await settle(reader, await reader.lookUp([id]));
      return record;
    },
  });
}

/**
 * Creates readers. A full read requests the fields of each object, because the response also tells
 * the start time; for a single record, those of a few minutes ago are enough.
 */
function createReaders(
  { objects, where }: SalesforceOptions,
  unsubscribed: readonly OptOut[],
  clock: Clock,
) {
  const own = unsubscribed.flatMap((one) => ('field' in one ? [one] : []));
  const isOwn = own.some(({ field }) => field === standardOptOut.field);
  const optOuts = [...(isOwn ? [] : [standardOptOut]), ...own];
  const optsOut = joinConditions(unsubscribed.flatMap((one) => ('when' in one ? [one.when] : [])));
  let known: { fields: string; at: number; shapes: Shape[] } | undefined;
  return async (session: Session, { fields }: ReadRequest, how: 'asked now' | 'as known') => {
    const names = fields.join(' ');
    const isYoung = known?.fields === names && clock.now() - known.at < SHAPES_HOLD_MS;
    if (!known || !isYoung || how === 'asked now') {
      const shapes = await describeShapes(session, objects, fields);
      known = { fields: names, at: clock.now(), shapes };
    }
    const { shapes } = known;
    return createReader({ session, shapes, where, fields, optOuts, optsOut });
  };
}

/** Returns a condition that is true if one is, and else has no result if one has none. */
function joinConditions(conditions: readonly Condition[]): Condition | undefined {
  const [first, ...others] = conditions;
  if (!first || others.length === 0) return first;
  return {
    text: conditions.map(({ text }) => `(${text})`).join(' || '),
    fields: [...new Set(conditions.flatMap(({ fields }) => fields))],
    judge(record) {
      const results = conditions.map((one) => one.judge(record));
      const isTrue = (one: ConditionResult) => 'gives' in one && one.gives === true;
      const isFalse = (one: ConditionResult) => 'gives' in one && one.gives === false;
      return results.find(isTrue) ?? results.find((one) => !isFalse(one)) ?? { gives: false };
    },
  };
}

const standardOptOut: OptOutField = {
  field: 'HasOptedOutOfEmail',
  says: (value) => (value === true || value === 'true' ? 'yes' : 'no'),
};

const MOST_AGE_MS = 14 * 86_400_000;

/**
 * Creates cursors: a time of the organization's clock and a mark of what was read. One older than
 * 15 days would miss deleted records, which leave the recycle bin by then.
 */
function createCursors(options: SalesforceOptions, fields: readonly string[]) {
  const { url, objects, where = '', overlap } = options;
  const overlapMs = milliseconds(overlap);
  const what = [new URL(url).host, objects.toSorted(), where, fields.toSorted()];
  const marked = markedCursors(what, 12);
  const timeIn = (cursor: string) => {
    const time = marked.timeIn(cursor) ?? '';
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(time) ? time : undefined;
  };
  return {
    /** Returns the cursor after a read that began then; never one before `since`. */
    after(startedAtMs: number | undefined, since?: string): string | undefined {
      if (startedAtMs === undefined) return since;
      const from = new Date(startedAtMs - overlapMs).toISOString().replace(/\.\d+Z$/, 'Z');
      const before = since === undefined ? '' : (timeIn(since) ?? '');
      return marked.at(before > from ? before : from);
    },
    /** Returns the time in a cursor, or undefined if it is of other settings or too old. */
    read(cursor: string, nowMs: number | undefined): string | undefined {
      const time = timeIn(cursor);
      const ageMs = time === undefined ? 0 : (nowMs ?? 0) - Date.parse(time);
      return ageMs > MOST_AGE_MS ? undefined : time;
    },
  };
}

const BATCH_RECORDS = 500;

type Rows = AsyncGenerator<Row[], number>;

/**
 * Yields the records of all objects, each as that to which it resolves, and returns the flaws of
 * the read. `besides` returns further rows that must be read because of the given ones.
 */
async function* listRecords(
  reader: Reader,
  rowsOf: (shape: Shape) => Rows,
  besides: (rows: Row[]) => Promise<Row[]>,
): AsyncGenerator<SourceRecord[], Flaw[]> {
  const flaws: Flaw[] = [];
  let hasBegun = false;
  async function* listObject(shape: Shape): AsyncGenerator<SourceRecord[], void> {
    const seen = new Set<number>();
    const rows = rowsOf(shape);
    let step = await rows.next();
    for (; !step.done; step = await rows.next()) {
      for (const { id } of step.value) seen.add(markOf(id));
      yield* batchesOf(await settle(reader, step.value));
      yield* batchesOf(await settle(reader, await besides(step.value), step.value));
    }
    if (seen.size === step.value) return;
    const read = `${seen.size} different ${shape.object}s were read`;
    const why = `${read}, and Salesforce counts ${step.value}`;
    flaws.push({ why, fix: 'read it again when the CRM is quieter' });
  }
  for (const shape of reader.shapes) {
    try {
      for await (const batch of listObject(shape)) {
        hasBegun = true;
        yield batch;
      }
    } catch (error) {
      return [...flaws, stoppedBy(error, hasBegun, `among the ${shape.object}s`)];
    }
  }
  return flaws;
}

function batchesOf(records: SourceRecord[]): SourceRecord[][] {
  const count = Math.ceil(records.length / BATCH_RECORDS);
  return Array.from({ length: count }, (_, at) =>
    records.slice(at * BATCH_RECORDS, (at + 1) * BATCH_RECORDS),
  );
}

// Reports opt-outs to Salesforce, on the contact or lead itself: for all mail in Salesforce's own
// field HasOptedOutOfEmail, and for a channel in the checkbox configured for it.
//
//   204                            reported
//   ENTITY_IS_DELETED              reported: nobody can receive mail under that id
//   404                            the organization does not have this record: rejected
//   400 about the record itself    rejected, with the code
//   anything else                  handled as for a read (salesforce-api.ts); no more
//                                  reports in this run

const ofRecord = new Set([
  'CANNOT_UPDATE_CONVERTED_LEAD',
  'DUPLICATES_DETECTED',
  'FIELD_CUSTOM_VALIDATION_EXCEPTION',
  'FIELD_FILTER_VALIDATION_EXCEPTION',
  'FIELD_INTEGRITY_EXCEPTION',
  'INSUFFICIENT_ACCESS_OR_READONLY',
  'MALFORMED_ID',
  'NOT_FOUND',
  'REQUIRED_FIELD_MISSING',
]);

export function salesforceReturns(
  options: SalesforceOptions,
  { fields = {} }: SalesforceReturnsOptions,
  surroundings: Surroundings,
): WriteBack {
  const grants = createGrants(options, surroundings);
  return sessionWriteBack({
    takes: ({ crmId, channel }) =>
      pathOf(crmId) !== undefined && (channel === '*' || Object.hasOwn(fields, channel)),
    look: () => `reported to ${new URL(options.url).host}, in its records`,
    open: (signal) => createSession(options, grants, signal, surroundings),
    async report(session, { crmId, channel }) {
      const json =
        channel === '*' ? { HasOptedOutOfEmail: true } : { [fields[channel] ?? '']: false };
      const accepts = [204, 400, 403, 404];
      const path = pathOf(crmId) ?? '';
      const said = await session.ask({ path, json, method: 'PATCH', accepts });
      if (said.status < 300) return { is: 'told' };
      const refusal = refusalOf(said);
      const { status, code } = refusal;
      if (code === 'ENTITY_IS_DELETED') return { is: 'told' };
      if (!ofRecord.has(code)) throw errorOf(refusal, session.host);
      const reason =
        status === 404
          ? 'the organization does not have this record (404)'
          : `Salesforce refused it (${status} ${code})`;
      const fix = 'correct the record there, or what its user may write';
      return { is: 'rejected', reason, fix };
    },
  });
}

function pathOf(crmId: string): string | undefined {
  const id = longId(crmId);
  const object = id && objectOf(id);
  return object && `/sobjects/${pathSegment(object)}/${pathSegment(id)}`;
}

const MOST_STEPS = 10;

/**
 * Finds the record that replaces a merged record or a converted lead. The records that a batch
 * needs are requested together.
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
async function settle(
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
async function standIns(reader: Reader, rows: readonly Row[]): Promise<Row[]> {
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
function strictestValues({ optOuts, optsOut }: Reader, chain: readonly Row[]) {
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
  // All fields that the condition reads go together: a single one could change its result.
  const judged = Object.entries(out).filter(
    ([field]) => optsOut.fields.includes(field) && !naming.has(field),
  );
  return { ...last, ...Object.fromEntries(judged) };
}
