/**
 * A value of the database as a record has it:
 *
 *   numbers   decimal text, with all its digits and no zeros at the end: 12.50 is "12.5"
 *   booleans  true and false
 *   moments   ISO 8601 in UTC; without a zone of their own, with that of the options, or none
 *   a day     ISO 8601
 *   no time   MySQL's 0000-00-00 and PostgreSQL's infinity: null
 *   JSON      what it says
 *   bytes     hexadecimal digits; bits: the number they are
 *   others    the text the database writes
 */
import { parseJson } from '../../domain/values/lossless-json.ts';
import type { Column, Raw } from './drivers/read-session.ts';

const time = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(Z|\+00(?::?00)?)?$/;

export function shown(raw: Raw, { holds, type = '' }: Column, zone: string | undefined): unknown {
  if (raw === null) return null;
  if (raw instanceof Uint8Array) return holds === 'bits' ? numberOf(raw) : hex(raw);
  const text = String(raw);
  if (typeof raw !== 'string') return shortest(text);
  if (holds === 'any') return dynamic(text, type, zone);
  if (holds === 'boolean') return text === 't' || text === 'true';
  if (holds === 'decimal' || holds === 'float') return shortest(text);
  if (holds === 'instant') return isNever(text) ? null : moment(text, 'Z');
  if (holds === 'time') return isNever(text) ? null : moment(text, suffix(zone));
  if (holds === 'day') return isNever(text) ? null : text;
  if (holds === 'json') return parseJson(text) ?? text;
  if (holds === 'bytes') return text.replace(/^\\x/, '');
  return text;
}

/** SQLite only knows what the column was declared as. */
function dynamic(text: string, declared: string, zone: string | undefined): unknown {
  if (/^(datetime|timestamp)/i.test(declared)) return moment(text, suffix(zone ?? 'UTC'));
  return /^jsonb?$/i.test(declared) ? (parseJson(text) ?? text) : text;
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

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function numberOf(bits: Uint8Array): string {
  return String(BigInt(`0x0${hex(bits)}`));
}
