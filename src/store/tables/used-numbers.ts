import type { Statements } from '../database/prepared-statements.ts';

/** How long an expired number is kept: the clock may have been ahead. */
const keptMs = 30 * 86_400_000;

/**
 * Remembers the numbers of the commands and events that were accepted, so that none is accepted
 * twice, by whatever process. They are part of the snapshot, and go wherever the mirror goes.
 */
export function usedNumbersIn(db: Statements) {
  const use = db.run<[number: string, expiresAt: number]>(
    'insert or ignore into used_number (number, expires_at) values (?, ?)',
  );
  const forget = db.run<[before: number]>('delete from used_number where expires_at < ?');
  return {
    has: db.has<[number: string]>('select 1 from used_number where number = ?'),
    /**
     * Uses a number that is valid until `expiresAt`, in milliseconds since the epoch. Returns false
     * if it was used before. Forgets those that expired long before `now`.
     */
    use(number: string, expiresAt: number, now: number): boolean {
      forget(now - keptMs);
      return use(number, expiresAt) > 0;
    },
  };
}
