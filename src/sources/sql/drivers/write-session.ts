/**
 * One connection to a database, within one transaction that writes: what is not committed when it
 * is closed has not happened. What differs between databases is in one file for each.
 */
import type { Raw } from './read-session.ts';

export interface Writing {
  /** Where the value of this number, from 1, stands in a statement. */
  place(number: number): string;
  /** A moment as the database takes it, of milliseconds since the epoch. */
  time(at: number): string;
  /** One statement; throws Invalid, Unavailable, and the signal's reason when aborted. */
  run(statement: string, values: readonly Raw[]): Promise<void>;
  /** A command of the transaction: a savepoint, or its end. Throws likewise. */
  command(text: string): Promise<void>;
  /** Never throws. */
  close(): Promise<void>;
}
