import { hash } from 'node:crypto';
import type { ProblemCommon } from './problem-causes.ts';

/** The record types that a mirror can keep in step with the source. */
export const recordTypes = ['contact', 'template'] as const;
export type RecordTypeName = (typeof recordTypes)[number];

/** A record on both sides: a trimmed, lower-cased email address, or the key of a template. */
export type Key = string;

/**
 * How a record came to be recorded. created, adopted: the mirror owns it. noted: it does not, but
 * the source's statement about it must outlive the run. No other foreign record is stored.
 */
export type Ownership = 'created' | 'adopted' | 'noted';

/**
 * Whether the source has a record. flagged: a field states that it is deleted. outside: it is out
 * of scope, as if it were missing. An invalid record is always present.
 */
export type Presence = 'present' | 'flagged' | 'outside';

/** What a value of a column is: a date, or anything else. Empty values and serials are neither. */
export interface ColumnShape {
  column: string;
  isDate: boolean;
}

/** One record of the source, in the canonical form of its record type, as it is staged. */
export interface DesiredRow {
  kind: RecordTypeName;
  /** The source's own stable id of the record; '' if it has none. */
  id: string;
  /** Undefined if the record is too broken to tell which contact or template it describes. */
  key: Key | undefined;
  /** The name under which the platform would list it: a contact's key, a template's name. */
  alias: string;
  /** The record's place in the source ("line 17"), for messages. */
  place: string;
  /** The canonical form, as JSON text. */
  body: string;
  fingerprint: string;
  /** Whether it requests something that may not exist yet. Others are not looked up if missing. */
  wants: boolean;
  presence: Presence;
  /** The reason why the record cannot be used; undefined if it can be used. */
  invalid: Fault | undefined;
  /** The values of an invalid record that have no known meaning, for counting. */
  unknown?: readonly UnknownWord[] | undefined;
  /** What the values of the columns are that may hold dates; undefined if all of them are empty. */
  shapes?: readonly ColumnShape[] | undefined;
  /** The row if the serial numbers in these columns are dates; undefined if it has none. */
  asDates?: { columns: readonly string[]; row: DesiredRow } | undefined;
}

/** How often complete readings of the source have lacked an owned record. */
export interface Absence {
  readings: number;
  /** When the first and the last of them were made, by our clock, in epoch milliseconds. */
  firstAt: number;
  lastAt: number;
  /** The time between them in milliseconds, each step measured by the slower of two clocks. */
  ageMs: number;
  /** The same since it became due, or since our last opt-out after that; null if not due. */
  waitedMs: number | null;
}

/** When an absence counts: both conditions have to hold. */
export interface AbsenceDue {
  absentReadings: number;
  /** The minimum time between the first and the last of them, in milliseconds. */
  absentForMs: number;
}

/** States what is wrong and how to fix it, one line each and without personal data. */
export interface Fault extends Partial<ProblemCommon> {
  reason: string;
  fix: string;
  /**
   * True if the address is empty; such a record is skipped if it never had a known address. False
   * if the address field holds something that is no address. Undefined if the address is valid.
   */
  noAddress?: boolean | undefined;
  /** The option whose field contains an unknown word. Such faults are listed by word. */
  option?: string | undefined;
  /** Whether the value that cannot be read may say that the person wants no mail, or is deleted. */
  mayOptOut?: true | undefined;
}

/** The value of a field without a known meaning. It may be personal data. */
export interface UnknownWord {
  option: string;
  /** How to assign a meaning to such a value. */
  fix: string;
  unknown: 'word' | 'future' | 'no single value';
  text: string | undefined;
}

/** One platform record in canonical form, as it was listed or read. */
export interface ObservedRow {
  kind: RecordTypeName;
  id: string;
  /** The name under which the platform lists it: the key of a contact, the name of a template. */
  alias: string;
  body: string;
  fingerprint: string;
  /** In milliseconds since the epoch by the platform's clock; undefined if it does not state it. */
  createdAt: number | undefined;
}

/** One record of the snapshot, in the state that the platform last confirmed. */
export interface RecordedRow extends RecordedBody {
  kind: RecordTypeName;
  /** The platform's id; undefined once the record has vanished there. */
  id: string | undefined;
  ownership: Ownership;
  /** The fingerprint of the observed state in `body`; if undefined, it must be read again. */
  shown: string | undefined;
  /** The fingerprint of the desired state that is done; if undefined, a new decision is needed. */
  desired: string | undefined;
}

export interface RecordedBody {
  key: Key;
  body: string;
  /** When the platform last showed the record, by our clock, in milliseconds since the epoch. */
  seenAt: number;
}

/** Returns a value as JSON with the keys of every object sorted: equal values, equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(isSorted(value) ? value : sorted(value));
}

/** Returns whether all keys are already sorted, as most are; sorting takes longer. */
function isSorted(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return true;
  if (Array.isArray(value)) return value.every(isSorted);
  let before = '';
  // Reads the keys in the order of JSON.stringify, without building a list of them.
  for (const name in value) {
    if (name < before || !isSorted(Reflect.get(value, name))) return false;
    before = name;
  }
  return true;
}

/** Sorts the keys without a replacer for JSON.stringify, because a replacer is slower. */
function sorted(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}

/** Returns 128 bits as hexadecimal digits. Equal canonical forms have equal fingerprints. */
export function fingerprint(canonical: string): string {
  return hash('sha256', canonical, 'hex').slice(0, 32);
}
