/** The key that the ledger's hashes are made with: 32 random bytes, hexadecimal, in a file. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

/** The key in `file`; undefined when there is no file, or no key in it. */
export function readKey(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, 'utf8').trim().toLowerCase();
  return /^[0-9a-f]{64}$/.test(text) ? text : undefined;
}

/** Writes a new key to the file (0600): whole, or not at all. */
export function writeKey(file: string, key: string): void {
  const part = `${file}.part`;
  rmSync(part, { force: true });
  const opened = openSync(part, 'wx', 0o600);
  try {
    writeSync(opened, `${key}\n`);
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
  renameSync(part, file);
}

/** What stands for a text in the ledger; `what` keeps an id from ever equalling an address. */
export function keyedHash(secret: KeyObject, what: string, text: string): string {
  return createHmac('sha256', secret).update(`${what} ${text}`).digest('hex');
}

/** A key made ready once: that takes longer than a hash. */
export function secretOf(key: string): KeyObject {
  return createSecretKey(Buffer.from(key, 'hex'));
}
