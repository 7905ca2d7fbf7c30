/**
 * Represents one connection to a database within one transaction, to read or to write. A reading
 * transaction cannot write and shows a single state from beginning to end. In a writing
 * transaction, everything that is not committed at closing is discarded. Differences between
 * databases are handled here and in one file per database.
 */
import { z } from 'zod';
import type { Clock } from '../../../domain/clock.ts';

/** A value in the driver's representation, so that it can be bound again unchanged. */
export type Raw = string | number | bigint | Uint8Array | null;

const raw = z.union([z.string(), z.number(), z.bigint(), z.instanceof(Uint8Array), z.null()]);
export const rawRows = z.array(z.array(raw));

/** The kind of values. `any` means that the database does not declare it and rows may differ. */
export type Holds =
  | 'text'
  | 'integer'
  | 'decimal'
  | 'float'
  | 'boolean'
  /** In order: a point in time, a local time without a zone, a day. */
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
  /** The type to which a value is cast for comparison; undefined if no cast is needed. */
  type?: string;
}

export interface Session {
  /** The name of the database in messages. */
  readonly name: string;
  /** The time of the database's clock before the state was fixed, in epoch milliseconds. */
  readonly now: number;
  quote(name: string): string;
  /** Returns the placeholder for value `number` (from 1) in a comparison with a column. */
  place(number: number, column: Column): string;
  /** Returns an expression that compares exact bytes, whatever the database considers equal. */
  exact(quoted: string): string;
  /** Returns the values that a text may represent in a column; empty if no value has this form. */
  meant(text: string, column: Column): Raw[];
  columns(relation: string): Promise<Column[]>;
  /** Runs one statement. Throws Invalid, Unavailable, and the signal's reason if it is aborted. */
  rows(statement: string, values: readonly Raw[]): Promise<Raw[][]>;
  /** Closes the connection. Never throws. */
  close(): Promise<void>;
}

export interface Opening {
  clock: Clock;
  signal: AbortSignal;
  timeoutMs: number;
}

/** Converts hexadecimal digits to bytes. Returns undefined for any other text. */
export function bytesOf(text: string): Buffer | undefined {
  return /^([\da-f]{2})+$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

export interface Writing {
  /** Returns the placeholder for value `number` (from 1). */
  place(number: number): string;
  /** Converts a time in milliseconds since the epoch to the database's notation. */
  time(at: number): string;
  /** Runs one statement. Throws Invalid, Unavailable, and the signal's reason if it is aborted. */
  run(statement: string, values: readonly Raw[]): Promise<void>;
  /** Runs a command of the transaction, such as a savepoint or its end. Throws the same errors. */
  command(text: string): Promise<void>;
  /** Closes the connection. Never throws. */
  close(): Promise<void>;
}
