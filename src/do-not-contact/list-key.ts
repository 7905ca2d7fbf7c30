/** The key that the ledger's hashes are made with: 32 random bytes, hexadecimal, in a file. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { createHmac, createSecretKey } from 'node:crypto';
import { readSmallFile } from '../domain/values/config-file.ts';

/** The key in `file`; undefined when there is no file, or no key in it. */
export function readKey(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const text = readSmallFile(file).toString('utf8').trim().toLowerCase();
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

const mostKnown = 1_000;

/**
 * What stands for a text in the ledger; `what` keeps an id from ever equalling an address. One
 * person is asked for several times in a row: what was made last is known by heart.
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
