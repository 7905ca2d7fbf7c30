/**
 * One connection to a database, within one transaction that cannot write and shows one state of it
 * from beginning to end. What differs between databases is here and in one file for each.
 */

import type { Clock } from '../../../domain/clock.ts';

/** A value as the driver has it, to be bound again just as it came. */
export type Raw = string | number | bigint | Uint8Array | null;

/** What a column holds. any: the database does not say, and every row may hold something else. */
export type Holds =
  | 'text'
  | 'integer'
  | 'decimal'
  | 'float'
  | 'boolean'
  /** A moment; one without a zone; a day. */
  | 'instant'
  | 'time'
  | 'day'
  | 'json'
  | 'bits'
  | 'bytes'
  | 'any';

export interface Column {
  name: string;
  holds: Holds;
  /** What a value of it is compared with, where that has to be said. */
  type?: string;
}

export interface Session {
  /** The database in messages. */
  readonly name: string;
  /** Its own clock when the state it shows was not yet fixed; milliseconds since the epoch. */
  readonly now: number;
  quote(name: string): string;
  /** Where the value of this number, from 1, stands in a statement and is compared to a column. */
  place(number: number, column: Column): string;
  /** By its exact bytes, whatever the database takes for equal. */
  exact(quoted: string): string;
  /** What a text may stand for as a value of a column; none: nothing in it is written so. */
  meant(text: string, column: Column): Raw[];
  columns(relation: string): Promise<Column[]>;
  /** One statement; throws Invalid, Unavailable, and the signal's reason when aborted. */
  rows(statement: string, values: readonly Raw[]): Promise<Raw[][]>;
  /** Never throws. */
  close(): Promise<void>;
}

/** What a session is opened with. */
export interface Opening {
  clock: Clock;
  signal: AbortSignal;
  timeoutMs: number;
}

/** Hexadecimal digits, as bytes are shown: those bytes. */
export function bytesOf(text: string): Buffer | undefined {
  return /^([\da-f]{2})+$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}
