import { hash } from 'node:crypto';

/** The kinds of record a mirror keeps equal. */
export type RecordTypeName = 'contact' | 'template';

/**
 * What names a record on both sides: a contact's trimmed lower-cased email, a template's source
 * key.
 */
export type Key = string;

/**
 * How a record came to be recorded. created, adopted: it is ours. noted: it is not, and stands here
 * only so that what the source has it say outlives the run; any other foreign one is not recorded.
 */
export type Ownership = 'created' | 'adopted' | 'noted';

/**
 * How a source names a record. flagged: it says itself that the record is gone. outside: out of
 * scope, as if it were not named. An invalid record is present, whatever it says.
 */
export type Presence = 'present' | 'flagged' | 'outside';

/** One record of the source, in the canonical form of its kind, as it is staged. */
export interface DesiredRow {
  kind: RecordTypeName;
  /** The source's own stable id of the record; '' when it has none. */
  id: string;
  /** Undefined when the record is too broken to tell whom it is about. */
  key: Key | undefined;
  /**
   * The name under which the platform would list it: the key of a contact, the name of a template.
   */
  alias: string;
  /** Where in the source it stands ("line 17"), for messages. */
  place: string;
  body: string;
  fingerprint: string;
  /**
   * Whether it asks for something to exist that may not: without it an absent record needs no look.
   */
  wants: boolean;
  presence: Presence;
  invalid: Fault | undefined;
  /** Values of an invalid one that have no known meaning; they are counted as it is read. */
  unknown?: readonly UnknownWord[] | undefined;
}

/** In how many readings of the source, all of them whole, a record of ours was not named. */
export interface Absence {
  readings: number;
  /** When the first and the last of them were made, by our clock; milliseconds since the epoch. */
  firstAt: number;
  lastAt: number;
  /** Time between them, added up from reading to reading by the slower of two clocks. */
  ageMs: number;
  /**
   * The same since the absence was due, or since our last opt-out after that; null: it is not due.
   */
  waitedMs: number | null;
}

/** From when on it counts that the source has not named a record. */
export interface AbsenceDue {
  /** Readings of the source that have to have missed it … */
  absentReadings: number;
  /** … and the least time between the first and the last of them. */
  absentForMs: number;
}

/** Why something is not right and how to mend it; one line each, free of personal data. */
export interface Fault {
  reason: string;
  fix: string;
  /** Whether it is that the record has no address: one that was never known is skipped. */
  noAddress?: boolean | undefined;
  /** The option whose field holds an unknown word: such are listed by word, not by record. */
  option?: string | undefined;
}

/** The value of a field that has no known meaning. It may hold personal data. */
export interface UnknownWord {
  /** The option of the configuration that names the field. */
  option: string;
  /** How such a value is given a meaning. */
  fix: string;
  unknown: 'word' | 'future' | 'no single value';
  /** Undefined: a list or an object. */
  text: string | undefined;
}

/** One record of the platform, in canonical form, as it was listed or read. */
export interface ObservedRow {
  kind: RecordTypeName;
  id: string;
  alias: string;
  body: string;
  fingerprint: string;
  /** Milliseconds since the epoch by the platform's clock, when it says so. */
  createdAt: number | undefined;
}

/** One record of the snapshot: what was last seen acknowledged. */
export interface RecordedRow {
  kind: RecordTypeName;
  key: Key;
  /** The platform's id; undefined once it vanished there. */
  id: string | undefined;
  ownership: Ownership;
  body: string;
  /** Fingerprint of the observed state that `body` knows; undefined = look again. */
  shown: string | undefined;
  /**
   * Fingerprint of the desired state for which nothing was left to do; undefined = decide again.
   */
  desired: string | undefined;
  /** When the platform last showed it to us, by our clock. */
  seenAt: number;
}

/** JSON text with the keys of every object sorted, so that equal values are equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(isSorted(value) ? value : sorted(value));
}

/** Most are made in that order: asked for every record, this takes less than sorting again. */
function isSorted(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return true;
  if (Array.isArray(value)) return value.every(isSorted);
  let before = '';
  // In the order in which JSON.stringify writes them; without making a list of them first.
  for (const name in value) {
    if (name < before || !isSorted(Reflect.get(value, name))) return false;
    before = name;
  }
  return true;
}

/** By hand: a replacer of JSON.stringify takes longer. */
function sorted(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}

/** Names a canonical form: equal forms have equal fingerprints. 128 bits, hexadecimal. */
export function fingerprint(canonical: string): string {
  return hash('sha256', canonical, 'hex').slice(0, 32);
}
