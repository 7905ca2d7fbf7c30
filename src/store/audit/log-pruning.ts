/**
 * Removes old entries from the audit log. The clock alone does not decide what is old: if it jumps
 * ahead by years, the whole log would go. The log counts time by its own checkpoints, of which each
 * run that writes makes one: between two of them, at most 31 days count. So a jump ages the log by
 * 31 days, however far it goes. After a pause of more than 31 days, entries stay longer.
 */
import type { Statements } from '../database/prepared-statements.ts';
import type { StoredEntry } from './hash-chain.ts';

/** The most time that counts between two checkpoints. */
const mostBetweenMs = 31 * 86_400_000;

/** Which entries to remove, and how to say so. Times are in milliseconds since the epoch. */
export interface Pruning {
  before: number;
  at: number;
  /** Appends the entry that names the last one that is removed. */
  note(removed: { at: number; upTo: number; hash: string }): void;
}

/**
 * Removes the entries before `before`, as far as the checkpoints show that this much time has
 * passed. Returns how many. The last entry always stays, because the next one follows its hash.
 */
export function pruneIn(statements: Statements, pruning: Pruning): number {
  const { prepare } = statements;
  const { before, at, note } = pruning;
  const upTo = prepare<[number, number], Pick<StoredEntry, 'seq' | 'hash'>>(
    `select seq, hash from entry
     where seq < ifnull((select min(seq) from entry where body ->> 1 >= ?), seq + 1)
       and seq < (select max(seq) from entry) and seq <= ? order by seq desc limit 1`,
  ).get(before, lastAged(statements, pruning));
  if (!upTo) return 0;
  note({ at, upTo: upTo.seq, hash: upTo.hash.toString('hex') });
  prepare<[number]>('delete from checkpoint where seq <= ?').run(upTo.seq);
  prepare<[number]>('delete from run where seq <= ?').run(upTo.seq);
  return prepare<[number]>('delete from entry where seq <= ?').run(upTo.seq).changes;
}

/** Returns the number of the last entry that is old enough by the time that counts. */
function lastAged({ prepare }: Statements, { before, at }: Pruning): number {
  const signed = prepare<[], { seq: number; at: number }>(
    'select seq, at from checkpoint order by seq desc',
  );
  let age = 0;
  let later = at;
  for (const { seq, at: earlier } of signed.iterate()) {
    age += Math.min(Math.max(later - earlier, 0), mostBetweenMs);
    if (age >= at - before) return seq;
    later = earlier;
  }
  return 0;
}
