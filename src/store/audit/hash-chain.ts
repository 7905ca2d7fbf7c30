/**
 * The chain of the audit log: the hash of an entry covers its number, its person, its text and the
 * hash of the entry before it. So an entry cannot be changed, removed or moved without changing the
 * hash of every later one, and a signed checkpoint fixes the hash of all entries up to its own.
 */
import { hash } from 'node:crypto';

/** A stored entry. */
export interface StoredEntry {
  /** The number of the entry; they follow each other without a gap. */
  seq: number;
  /** The person's mark, 16 bytes; null if the entry concerns nobody. */
  person: Buffer | null;
  /** The text of the entry (audit-entry.ts). */
  body: string;
  /** 32 bytes. */
  hash: Buffer;
}

/** The hash before the first entry. */
export const firstHash = Buffer.alloc(32);

const nobody = Buffer.alloc(16);

/** Returns the hash of an entry that follows the one with the hash `before`. */
export function hashOf(
  before: Buffer,
  { seq, person, body }: Pick<StoredEntry, 'seq' | 'person' | 'body'>,
): Buffer {
  const about = person ?? nobody;
  return hash('sha256', Buffer.concat([before, about, Buffer.from(`${seq}\n${body}`)]), 'buffer');
}
