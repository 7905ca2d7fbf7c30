/**
 * Converts a row into a record. Values of the database become:
 *
 *   numbers   decimal text, with all digits and no zeros at the end: 12.50 is "12.5"
 *   booleans  true and false
 *   times     ISO 8601 in UTC; a time without a zone gets the zone of the options, or stays without
 *   days      ISO 8601
 *   no time   null, for MySQL's 0000-00-00 and PostgreSQL's infinity
 *   JSON      its value
 *   bytes     hexadecimal digits
 *   bits      the number that they encode
 *   others    the text that the database writes
 */
import { textOf } from '../../domain/values/record-field.ts';
import type { JsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';
import type { Relation } from './relation-pages.ts';
import type { Column, Raw } from './drivers/database-session.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';

/** Creates the converter of rows into records, with key and id as texts, or ''. */
export function rowReader(
  { columns, at }: Relation,
  json: JsonRecords,
  zone: string | undefined,
): (row: readonly Raw[], where: string) => { record: SourceRecord; key: string; id: string } {
  const escaped = String.raw`\u0000`;
  /** Returns whether a value may contain a NUL, directly or within JSON. */
  const mayHoldNul = (raw: Raw) =>
    typeof raw === 'string' && (raw.includes('\0') || raw.includes(escaped));
  return (row, where) => {
    const values = columns.map((column, place) => convert(row[place] ?? null, column, zone));
    const value = Object.fromEntries(columns.map(({ name }, place) => [name, values[place]]));
    return {
      record: json.recordOf(value, where, row.some(mayHoldNul) ? escaped : ''),
      key: textOf(values[at.key]) ?? '',
      id: textOf(values[at.id]) ?? '',
    };
  };
}

const time = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(Z|\+00(?::?00)?)?$/;

function convert(raw: Raw, { holds, type = '' }: Column, zone: string | undefined): unknown {
  if (raw === null) return null;
  if (raw instanceof Uint8Array) {
    const digits = Buffer.from(raw).toString('hex');
    return holds === 'bits' ? String(BigInt(`0x0${digits}`)) : digits;
  }
  const text = String(raw);
  if (typeof raw !== 'string') return shortest(text);
  if (holds === 'any') {
    // SQLite only knows the declared type of a column.
    if (/^(datetime|timestamp)/i.test(type)) return moment(text, suffix(zone ?? 'UTC'));
    return /^jsonb?$/i.test(type) ? (parseJson(text) ?? text) : text;
  }
  if (holds === 'boolean') return text === 't' || text === 'true';
  if (holds === 'decimal' || holds === 'float') return shortest(text);
  if (holds === 'instant') return isNever(text) ? null : moment(text, 'Z');
  if (holds === 'time') return isNever(text) ? null : moment(text, suffix(zone));
  if (holds === 'day') return isNever(text) ? null : text;
  if (holds === 'json') return parseJson(text) ?? text;
  if (holds === 'bytes') return text.replace(/^\\x/, '');
  return text;
}

function moment(text: string, zone: string): string {
  const [, day, hours, own] = time.exec(text) ?? [];
  return day === undefined ? text : `${day}T${hours}${own === undefined ? zone : 'Z'}`;
}

function suffix(zone: string | undefined): string {
  return zone === 'UTC' ? 'Z' : (zone ?? '');
}

function isNever(text: string): boolean {
  return text.startsWith('0000-00-00') || text === 'infinity';
}

function shortest(text: string): string {
  return /^-?\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, '') : text;
}
