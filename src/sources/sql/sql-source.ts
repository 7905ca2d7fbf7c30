/**
 * Reads contacts from a table or query of a database: PostgreSQL, MySQL, MariaDB or SQLite. Each
 * read uses one transaction that cannot write, so that it shows a single state.
 *
 * A read was complete if its last page was not full, the number of rows equals the database's own
 * count in the same state, each row has a unique key and id, and each row could be read. A failure
 * after the first page ends the read without a certificate, and the opt-outs read so far are kept.
 *
 * With `updatedAt`, `changes` reads the rows that were written since the time in the cursor,
 * according to that column and the database's clock. A row becomes visible to others only when its
 * transaction ends, some time after it was written; the overlap covers that delay. A row that
 * becomes visible even later is found by the next full run, and so are rows that do not state when
 * they were changed.
 */
import type { Clock } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import { milliseconds } from '../../domain/values/config-value.ts';
import { counted } from '../../domain/values/counted.ts';
import { brokenFlaws, type Flaw, markedCursors, stoppedBy } from '../shared/read-certificate.ts';
import { jsonRecords, quoted } from '../shared/record-fields.ts';
import { type Listing, sessionSource } from '../shared/session-source.ts';
import type { ReadRequest, ReportResult, Source, SourceRecord, WriteBack } from '../source.ts';
import { openSession, type Reach } from './database.ts';
import {
  type Column,
  isNoValue,
  isRefused,
  type Raw,
  type Session,
} from './drivers/database-session.ts';
import { namedIn, placeOf, type SqlOptions } from './options.ts';
import {
  type Count,
  countRows,
  describeRelation,
  keylessRows,
  readPages,
  rowReader,
  rowsWith,
} from './relation-pages.ts';

/** Returns the source of a database; `id` is the column of a record's id. */
export function sqlSource(
  options: SqlOptions,
  { clock, id }: { clock: Clock; id: string },
): Source {
  return sessionSource<Session>('sql', clock, {
    open: ({ signal }) => openSession(options, { signal, clock }),
    isOneState: true,
    read: (session, request) => readList(session, options, id, request),
    async one(session, wanted, { fields }) {
      const relation = await describeRelation(session, options, fields, id);
      const column = relation.columns[relation.at.id];
      const values = column ? session.meant(wanted, column) : [];
      if (values.length === 0) return undefined;
      const rows = await rowsWith(session, relation, values).catch((error: unknown) => {
        if (isNoValue(error)) return [];
        throw error;
      });
      const read = rowReader(relation, jsonRecords(fields), options.zone);
      const where = 'the row by its id';
      // Ids that the database considers equal despite different case or spaces do not match here.
      const found = rows.map((row) => read(row, where)).filter((one) => one.id === wanted);
      if (found.length < 2) return found[0]?.record;
      const fix = 'give every person one row, and an id of its own';
      return { where, broken: `is one of ${found.length} with this id`, fix };
    },
    ...(options.updatedAt !== undefined && {
      async *changes(session: Session, since: string, request: ReadRequest) {
        const sinceMs = Date.parse(cursorsOf(options).timeIn(since) ?? '');
        // If the clock was set back, it is unknown what was written meanwhile.
        if (!(sinceMs >= 0) || session.now < sinceMs) return 'lost' as const;
        return yield* readList(session, options, id, { ...request, sinceMs });
      },
    }),
  });
}

async function* readList(
  session: Session,
  options: SqlOptions,
  id: string,
  { fields, sinceMs }: { fields: readonly string[]; sinceMs?: number },
): Listing {
  const relation = await describeRelation(session, options, fields, id);
  const column = relation.columns[relation.at.updatedAt ?? -1];
  const { zone, pageSize } = options;
  const changes = column && { session, from: relation.from, column, zone };
  // A full read checks the column too: one that cannot be compared is reported now.
  const since = changes && (await comparableTime(changes, sinceMs ?? session.now));
  const isWhole = sinceMs === undefined;
  // Earlier by the overlap, for rows that become visible later; never before the last cursor.
  const afterMs = Math.max(sinceMs ?? 0, session.now - milliseconds(options.overlap), 0);
  const cursor = column && cursorsOf(options).at(new Date(afterMs).toISOString());
  if (!isWhole && since === undefined) return { flaws: [], cursor };
  const paged = { session, relation, pageSize, since: isWhole ? undefined : since };
  const json = jsonRecords(fields);
  const read = rowReader(relation, json, zone);
  const count = await countRows(paged);
  const proof = createProof(count);
  let number = 0;
  const toBatch = (rows: readonly Raw[][]) =>
    rows.map((row) => {
      number += 1;
      const { record, key, id: rowId } = read(row, `row ${number}`);
      proof.add(record, key, rowId);
      return record;
    });
  try {
    for await (const rows of readPages(paged)) {
      yield toBatch(rows);
      if (number > count.rows) break;
    }
    const keyless = number > count.rows ? [] : await keylessRows(paged);
    if (keyless.length > 0) yield toBatch(keyless);
  } catch (error) {
    proof.stop(stoppedBy(error, number > 0, `after row ${number}`));
  }
  const flaws = proof.flaws();
  const lack = json.lacking();
  if (isWhole && lack !== undefined && flaws.length === 0) {
    throw new Invalid(`${session.name}: ${lack}`);
  }
  return { flaws, cursor };
}

/** Creates what gathers the facts that prove a read complete, by the database's own counts. */
function createProof(count: Count) {
  const broken: string[] = [];
  let rows = 0;
  let unnamed = 0;
  let twice = 0;
  let last: string | undefined;
  let stopped: Flaw | undefined;
  return {
    add(record: SourceRecord, key: string, id: string): void {
      rows += 1;
      if (key === last) twice += 1;
      last = key;
      if (id === '') unnamed += 1;
      if ('broken' in record) broken.push(record.where);
    },
    stop: (flaw: Flaw) => void (stopped = flaw),
    flaws(): Flaw[] {
      if (stopped) return [stopped];
      const read = `${counted(rows, 'row')} ${rows === 1 ? 'was' : 'were'} read`;
      const miscounted = {
        why: `${read}, and the database counts ${count.rows}`,
        fix: 'name as key a column whose values are unique, whatever their case',
      };
      return [
        ...numbered(count.rows - count.keys, 'without a key', 'give each one, or name another key'),
        ...numbered(unnamed, 'without an id', 'give each one in the CRM'),
        ...numbered(twice, 'with the key of another one', 'name as key a column that is unique'),
        ...numbered(
          count.ids - count.different,
          'with the id of another one',
          'have query give one row for each person',
        ),
        ...brokenFlaws('row', broken.length, broken[0], 'mend them'),
        ...(twice === 0 && rows !== count.rows ? [miscounted] : []),
      ];
    },
  };
}

function numbered(count: number, what: string, fix: string): Flaw[] {
  return count > 0 ? [{ why: `${counted(count, 'row')} ${what}`, fix }] : [];
}

// The rows that changed since a time: that time as the change column writes it, so that an index
// can be used, and the cursor for it.

/** Recognizes by its magnitude whether a number counts microseconds, milliseconds or seconds. */
const scales: readonly [from: number, perMs: number][] = [
  [1e14, 1000],
  [1e11, 1],
  [1e8, 0.001],
];
const LEAST = 1e8;

const text = /^\d{4}-\d\d-\d\d(?:([ T])\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]00:?00)?)?$/;

interface Changes {
  session: Session;
  from: string;
  column: Column;
  zone: string | undefined;
}

/** Returns the value to compare with; undefined if no row has a time. Throws Invalid. */
async function comparableTime(changes: Changes, atMs: number): Promise<Raw | undefined> {
  const { column, zone, session } = changes;
  const { holds } = column;
  if (holds === 'instant') return local(atMs, 'UTC', 19);
  if (holds === 'time' || holds === 'day') {
    if (zone === undefined) {
      const fix = 'say with zone of the source in which it is: UTC, or an offset such as +01:00';
      throw new Invalid(`${session.name}: ${quoted(column.name)} has no time zone`, { fix });
    }
    return local(atMs, zone, holds === 'day' ? 10 : 19);
  }
  const [lowest = null, highest = null] = await readBounds(changes);
  if (lowest === null || highest === null || Number(highest) === 0) return undefined;
  const isNumber = holds !== 'any' || typeof lowest !== 'string';
  if (holds !== 'any' && !/^(integer|decimal|float)$/.test(holds)) throw odd(changes);
  if (!isNumber) {
    // The smallest notation: a space sorts before a T, and a day before any time of that day. Some
    // rows of mixed notations are read once too often; none is missed.
    const forms = [lowest, highest].map((value) => text.exec(String(value)));
    const [first, last] = forms;
    if (!first || !last || typeof highest !== 'string') throw odd(changes);
    const isDay = first[1] === undefined || last[1] === undefined;
    const isUtc = first[2] !== undefined && last[2] !== undefined;
    const at = local(atMs, isUtc ? 'UTC' : (zone ?? 'UTC'), isDay ? 10 : 19);
    return forms.every((form) => form?.[1] === 'T') ? at.replace(' ', 'T') : at;
  }
  // Zeros and similar values that mean "never" are left out.
  const bounds = await readBounds(changes, LEAST);
  const [perMs, other] = bounds.map((value) => scales.find(([from]) => Number(value) >= from)?.[1]);
  if (perMs === undefined || perMs !== other) throw odd(changes);
  const number = Math.floor(atMs * perMs);
  if (holds === 'any') return BigInt(number);
  return holds === 'float' ? number : String(number);
}

function odd({ session, column }: Changes): Invalid {
  const what = `${quoted(column.name)} holds no times that can be compared`;
  const fix = 'name with updatedAt a column that does, or make it one in query';
  return new Invalid(`${session.name}: ${what}`, { fix });
}

async function readBounds({ session, from, column }: Changes, above?: number): Promise<Raw[]> {
  const name = session.quote(column.name);
  const condition = above === undefined ? '' : ` where ${name} > ${above}`;
  const text = `select min(${name}), max(${name}) from ${from}${condition}`;
  const [row = []] = await session.rows(text, []);
  return row;
}

/** Returns the first digits of a time in a zone: 10 for the day, 19 up to the second. */
function local(atMs: number, zone: string, digits: number): string {
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):(\d\d)$/.exec(zone) ?? [];
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  return new Date(atMs + offsetMs).toISOString().replace('T', ' ').slice(0, digits);
}

/** Another table or column has other cursors. */
function cursorsOf({ url, table, query, updatedAt, zone }: SqlOptions) {
  const place = placeOf(url);
  const where = 'reason' in place ? place : { ...place, password: undefined };
  return markedCursors([where, table, query, updatedAt, zone], 16);
}

// Reports an opt-out by a statement with bound values. A batch is one transaction, of which a
// refused report is rolled back. A statement with an unknown outcome is repeated.

const AT_ONCE = 100;
const changesRows = /^(\s|--.*\n|\/\*[^]*?\*\/)*(with|update|delete|insert|replace|merge)\b/i;
/** An insert that a repeated statement leaves out. */
const mayDoNothing = /\b(on\s+conflict|ignore|insert\b[^]*\bnot\s+exists)\b/i;

/** Returns a write-back that runs a statement with named parameters in the database of `reach`. */
export function sqlReturns(
  statement: string,
  reach: Reach,
  { clock }: { clock: Clock },
): WriteBack {
  const pieces = namedIn(statement);
  const needsId = pieces.some((piece) => typeof piece === 'object' && piece.name === 'id');
  return {
    most: AT_ONCE,
    reportsTogether: true,
    takes: ({ crmId }) => !needsId || crmId !== '',
    async *tell(batch, signal, repeated = new Set()) {
      const results: ReportResult[] = [];
      try {
        const writing = await openSession(reach, { signal, clock }, 'write');
        try {
          for (const one of batch) results.push(await report(writing, pieces, one, repeated));
          await writing.command('commit');
        } finally {
          await writing.close();
        }
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        const [{ code, reason }] = error.problems;
        if (code === 'database-access') throw error;
        // The fix points to the statement instead of the source.
        const fix = 'correct statement of returns, or the rights of its user';
        throw new Invalid(reason.replace('permit to read this', 'permit this'), { fix });
      }
      yield* results;
    },
    look() {
      const place = placeOf(reach.url);
      if ('reason' in place) {
        throw new Invalid(`url of returns ${place.reason}`, { fix: place.fix });
      }
      const isFile = place.system === 'sqlite';
      return `reported to ${isFile ? place.path : `${place.host}/${place.database}`}, by a statement`;
    },
  };
}

async function report(
  writing: Session,
  pieces: ReturnType<typeof namedIn>,
  { id, email, crmId, channel, cause, by }: OptOutReport,
  repeated: ReadonlySet<string>,
): Promise<ReportResult> {
  const at = writing.time(by);
  const values = { return: id, id: crmId, email, channel, cause, at };
  const bound: string[] = [];
  const text = pieces.map((piece) => {
    if (typeof piece === 'string') return piece;
    bound.push(values[piece.name]);
    return writing.place(bound.length);
  });
  const statement = text.join('');
  let count: number;
  await writing.command('savepoint one');
  try {
    count = await writing.run(statement, bound);
  } catch (error) {
    if (!isRefused(error) && !isNoValue(error)) throw error;
    await writing.command('rollback to savepoint one');
    const reason = `the database does not take it (${error.databaseCode})`;
    return { is: 'rejected', reason, fix: 'correct the record there, or statement of returns' };
  }
  await writing.command('release savepoint one');
  // What an earlier attempt has changed may not match again.
  const mustChange = changesRows.test(statement) && !repeated.has(id);
  if (count > 0 || !mustChange || mayDoNothing.test(statement)) return { is: 'told' };
  const fix = 'is the id of the record in the table of statement of returns?';
  return { is: 'rejected', reason: 'the statement changed no row', fix };
}
