/**
 * The key of the hashes in the do-not-contact list: 32 random bytes as hexadecimal digits, in a
 * file.
 */
import { existsSync } from 'node:fs';
import { createHmac, createSecretKey, hkdfSync } from 'node:crypto';
import { readSmallFile, writeWhole } from '../../domain/values/config-file.ts';

/** The files of a list. */
export interface LedgerPlace {
  path: string;
  /** The file of its key, created on first use. */
  keyFile: string;
  /** How long a lock is waited for, in milliseconds; by default five seconds. */
  timeoutMs?: number | undefined;
}

/** Returns the key in `file`, or undefined if there is no file or it contains no key. */
export function readKey(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const text = readSmallFile(file).toString('utf8').trim().toLowerCase();
  return /^[0-9a-f]{64}$/.test(text) ? text : undefined;
}

/** Returns a key of 32 bytes for another purpose, which says nothing about the list's key. */
export function keyFor(purpose: string, key: string): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(key, 'hex'), '', purpose, 32));
}

/** Writes a new key to the file (0600), atomically. */
export function writeKey(file: string, key: string): void {
  writeWhole(file, `${key}\n`);
}

const mostKnown = 1_000;

/**
 * Returns a function that hashes a text for the list. `what` ensures that the hash of an id never
 * equals that of an address. The last hashes are cached, because the same person is queried several
 * times in a row.
 */
export function hasher(key: string): (what: string, text: string) => string {
  const secret = createSecretKey(Buffer.from(key, 'hex'));
  const known = new Map<string, string>();
  return (what, text) => {
    const name = `${what} ${text}`;
    const found = known.get(name);
    if (found !== undefined) return found;
    const made = createHmac('sha256', secret).update(name).digest('hex');
    if (known.size >= mostKnown) known.clear();
    known.set(name, made);
    return made;
  };
}
