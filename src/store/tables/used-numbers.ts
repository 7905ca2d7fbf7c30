/**
 * Remembers the numbers of the commands and events that were accepted, so that none is accepted
 * twice, by whatever process. They are part of the snapshot, and go wherever the mirror goes.
 */
import type { Statements } from '../database/prepared-statements.ts';

/** The numbers that were used. */
export interface UsedNumbers {
  has(number: string): boolean;
  /**
   * Uses a number that is valid until `expiresAt`, in milliseconds since the epoch. Returns false
   * if it was used before. Forgets those that expired long before `now`.
   */
  use(number: string, expiresAt: number, now: number): boolean;
}

/** How long an expired number is kept: the clock may have been ahead. */
const keptMs = 30 * 86_400_000;

/** Prepares the statements. */
export function usedNumbersIn(db: Statements): UsedNumbers {
  const has = db.prepare<[string], { one: 1 }>('select 1 one from used_number where number = ?');
  const use = db.prepare<[string, number]>(
    'insert or ignore into used_number (number, expires_at) values (?, ?)',
  );
  const forget = db.prepare<[number]>('delete from used_number where expires_at < ?');
  return {
    has: (number) => has.get(number) !== undefined,
    use(number, expiresAt, now) {
      forget.run(now - keptMs);
      return use.run(number, expiresAt).changes > 0;
    },
  };
}
