import { hash } from 'node:crypto';

/** The record types that a mirror keeps equal. */
export type RecordTypeName = 'contact' | 'template';

/**
 * Names a record on both sides: a contact's trimmed, lower-cased email address, or the source key
 * of a template.
 */
export type Key = string;

/**
 * How a record came to be recorded. created, adopted: the mirror owns it. noted: it is foreign, and
 * stored only because the source's statement about it must outlive the run; other foreign records
 * are not stored.
 */
export type Ownership = 'created' | 'adopted' | 'noted';

/**
 * How a source names a record. flagged: the record itself says that it is gone. outside: it is out
 * of scope, and treated as if the source did not name it. An invalid record is always present.
 */
export type Presence = 'present' | 'flagged' | 'outside';

/** One record of the source, in the canonical form of its record type, as it is staged. */
export interface DesiredRow {
  kind: RecordTypeName;
  /** The source's own stable id of the record; '' when it has none. */
  id: string;
  /** Undefined when the record is too broken to tell which contact or template it is. */
  key: Key | undefined;
  /**
   * The name that the platform would list the record under: the key of a contact, the name of a
   * template.
   */
  alias: string;
  /** Where the record stands in the source ("line 17"), for messages. */
  place: string;
  /** The canonical form, as JSON text. */
  body: string;
  fingerprint: string;
  /**
   * Whether the record asks for something that may not exist yet. A record without this that is
   * missing on the platform is not looked up.
   */
  wants: boolean;
  presence: Presence;
  /** The reason why the record cannot be used; undefined: it can. */
  invalid: Fault | undefined;
  /**
   * The values of an invalid record that have no known meaning. They are counted as they are read.
   */
  unknown?: readonly UnknownWord[] | undefined;
}

/** How often the source did not name an owned record. Only readings of the whole source count. */
export interface Absence {
  /** The number of readings in a row that did not name the record. */
  readings: number;
  /**
   * When the first and the last of these readings were made, by our clock, in milliseconds since
   * the epoch.
   */
  firstAt: number;
  lastAt: number;
  /**
   * The time between them in milliseconds: the sum over the readings, each by the slower of two
   * clocks.
   */
  ageMs: number;
  /**
   * The same since the absence became due, or since our last opt-out after that; null: it is not
   * due.
   */
  waitedMs: number | null;
}

/** When an absence counts: both conditions have to hold. */
export interface AbsenceDue {
  /** The number of readings that did not name the record, at least. */
  absentReadings: number;
  /** The milliseconds between the first and the last of them, at least. */
  absentForMs: number;
}

/** Says what is wrong and how to mend it: one line each, without personal data. */
export interface Fault {
  reason: string;
  fix: string;
  /**
   * Whether the fault is a missing address. Such a record is skipped if it never had a known
   * address.
   */
  noAddress?: boolean | undefined;
  /**
   * The option whose field holds an unknown word. Such faults are listed by word, not by record.
   */
  option?: string | undefined;
}

/** The value of a field that has no known meaning. It may be personal data. */
export interface UnknownWord {
  /** The option of the configuration that names the field. */
  option: string;
  /** How to give such a value a meaning. */
  fix: string;
  unknown: 'word' | 'future' | 'no single value';
  /** The value as text; undefined for a list or an object. */
  text: string | undefined;
}

/** One record of the platform, in canonical form, as it was listed or read. */
export interface ObservedRow {
  kind: RecordTypeName;
  id: string;
  /** The name that the platform lists it under: the key of a contact, the name of a template. */
  alias: string;
  body: string;
  fingerprint: string;
  /**
   * Milliseconds since the epoch by the platform's clock; undefined when the platform does not say.
   */
  createdAt: number | undefined;
}

/** One record of the snapshot, in the state that the platform last confirmed. */
export interface RecordedRow {
  kind: RecordTypeName;
  key: Key;
  /** The platform's id; undefined once the record vanished there. */
  id: string | undefined;
  ownership: Ownership;
  body: string;
  /**
   * The fingerprint of the observed state that `body` contains; undefined: look at the record
   * again.
   */
  shown: string | undefined;
  /**
   * The fingerprint of the desired state for which nothing was left to do; undefined: decide again.
   */
  desired: string | undefined;
  /** When the platform last showed the record, by our clock, in milliseconds since the epoch. */
  seenAt: number;
}

/** The types of a record type's rows: as they are stored, or with their bodies decoded. */
export interface Rows {
  desired: DesiredRow;
  observed: ObservedRow;
  recorded: RecordedRow;
}

/**
 * Returns a value as JSON text with the keys of every object sorted, so that equal values give
 * equal texts.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(isSorted(value) ? value : sorted(value));
}

/**
 * Returns whether all keys are sorted already. Most records are, and checking takes less time than
 * sorting.
 */
function isSorted(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return true;
  if (Array.isArray(value)) return value.every(isSorted);
  let before = '';
  // Reads the keys in the order in which JSON.stringify writes them, without making a list of them.
  for (const name in value) {
    if (name < before || !isSorted(Reflect.get(value, name))) return false;
    before = name;
  }
  return true;
}

/** Sorts the keys by hand, because a replacer of JSON.stringify takes longer. */
function sorted(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}

/**
 * Returns the fingerprint of a canonical form: 128 bits as hexadecimal digits. Equal forms have
 * equal fingerprints.
 */
export function fingerprint(canonical: string): string {
  return hash('sha256', canonical, 'hex').slice(0, 32);
}
