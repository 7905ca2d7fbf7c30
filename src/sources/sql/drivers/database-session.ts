/**
 * One connection to a database within one transaction, to read or to write. A reading transaction
 * cannot write and shows one state from beginning to end. What a writing one has not committed when
 * it is closed has not happened. What differs between databases is here and in one file for each.
 */

import type { Clock } from '../../../domain/clock.ts';

/** A value as the driver has it, so that it can be bound again unchanged. */
export type Raw = string | number | bigint | Uint8Array | null;

/** The values that a column holds. any: the database does not say, and rows may differ. */
export type Holds =
  | 'text'
  | 'integer'
  | 'decimal'
  | 'float'
  | 'boolean'
  /** A moment; a moment without a zone; a day. */
  | 'instant'
  | 'time'
  | 'day'
  | 'json'
  | 'bits'
  | 'bytes'
  | 'any';

/** A column of a relation. */
export interface Column {
  name: string;
  holds: Holds;
  /** The type that a value is cast to for comparison; undefined: none is needed. */
  type?: string;
}

/** A connection that reads. */
export interface Session {
  /** The name of the database in messages. */
  readonly name: string;
  /** The database's own clock before the state was fixed, in milliseconds since the epoch. */
  readonly now: number;
  quote(name: string): string;
  /** Returns the placeholder of value `number`, from 1, in a comparison with a column. */
  place(number: number, column: Column): string;
  /** Returns an expression that compares exact bytes, whatever the database takes for equal. */
  exact(quoted: string): string;
  /**
   * Returns the values that a text may stand for in a column; none: no value is written like that.
   */
  meant(text: string, column: Column): Raw[];
  columns(relation: string): Promise<Column[]>;
  /**
   * Runs one statement. Throws Invalid, Unavailable, and the signal's reason when it is aborted.
   */
  rows(statement: string, values: readonly Raw[]): Promise<Raw[][]>;
  /** Ends the connection. Never throws. */
  close(): Promise<void>;
}

/** The surroundings of a session. */
export interface Opening {
  clock: Clock;
  signal: AbortSignal;
  timeoutMs: number;
}

/** Returns the bytes for hexadecimal digits; undefined for another text. */
export function bytesOf(text: string): Buffer | undefined {
  return /^([\da-f]{2})+$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

/** A connection that writes. */
export interface Writing {
  /** Returns the placeholder of value `number`, from 1. */
  place(number: number): string;
  /** Returns a time, given in milliseconds since the epoch, as the database writes it. */
  time(at: number): string;
  /**
   * Runs one statement. Throws Invalid, Unavailable, and the signal's reason when it is aborted.
   */
  run(statement: string, values: readonly Raw[]): Promise<void>;
  /** Runs a command of the transaction: a savepoint, or its end. Throws likewise. */
  command(text: string): Promise<void>;
  /** Ends the connection. Never throws. */
  close(): Promise<void>;
}
