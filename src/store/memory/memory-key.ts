/**
 * The key file of a memory: one or more private keys (Ed25519, PEM), one after the other. From the
 * first, whose 32 bytes never change, the key for each purpose is derived; the last signs the
 * checkpoints of the audit log, so that one more key in the file takes over from the one before. A
 * key that was made with a memory names it in a line below; others may be new, or shared.
 */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomFillSync,
  sign,
  verify,
} from 'node:crypto';
import { existsSync } from 'node:fs';
import { readSmallFile } from '../../domain/values/config-file.ts';
import { createKeyFile, privateKeyIn } from '../../domain/values/ed25519-key.ts';

export interface MemoryKey {
  /** 32 bytes as hexadecimal digits; only for `keyFor`. */
  secret: string;
  signing: SigningKey;
  /** The path of the memory that it was made with; undefined if somebody else made it. */
  madeFor?: string | undefined;
}

export interface SigningKey {
  /** Identifies the key: 16 hexadecimal digits of the hash of the public key. */
  id: string;
  publicKey: string;
  sign(text: string): Buffer;
}

const note = '# Made by crm-mirror for ';
const block = /-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g;

/**
 * Returns the keys in `file`; undefined if there is no file, or something else in it. Throws file
 * system errors.
 */
export function readMemoryKey(file: string): MemoryKey | undefined {
  if (!existsSync(file)) return undefined;
  const text = readSmallFile(file).toString('utf8');
  const blocks = text.match(block) ?? [];
  const keys = blocks.map((pem) => privateKeyIn(Buffer.from(pem)));
  const isEach = keys.every((key) => key !== undefined);
  const [first, last] = [keys[0], keys.at(-1)];
  const made = text.split('\n').find((line) => line.startsWith(note));
  return isEach && first && last
    ? { ...keysOf(first, last), madeFor: made?.slice(note.length) }
    : undefined;
}

/** Writes a new key for the memory at `path` to the file (0600), whole or not at all. */
export function createMemoryKey(file: string, path: string): MemoryKey {
  const key = createKeyFile(file, `${note}${path}\n`);
  return keysOf(key, key);
}

/** Returns a new key that no file has. */
export function newMemoryKey(): MemoryKey {
  const { privateKey } = generateKeyPairSync('ed25519');
  return keysOf(privateKey, privateKey);
}

function keysOf(first: KeyObject, last: KeyObject): MemoryKey {
  // An Ed25519 key in this form ends with its 32 bytes.
  const secret = first.export({ type: 'pkcs8', format: 'der' }).toString('hex').slice(-64);
  const publicKey = createPublicKey(last).export({ type: 'spki', format: 'pem' }).toString();
  const signText = (text: string): Buffer => sign(null, Buffer.from(text), last);
  return { secret, signing: { id: keyId(publicKey), publicKey, sign: signText } };
}

/** Returns a key of 32 bytes for one purpose, which says nothing about the secret. */
export function keyFor(purpose: string, secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(secret, 'hex'), '', purpose, 32));
}

/** Returns the id of a public key in PEM form. */
export function keyId(publicKey: string): string {
  return createHash('sha256').update(publicKey).digest('hex').slice(0, 16);
}

/** Returns whether the signature of the text was made with the key that belongs to `publicKey`. */
export function isSigned(text: string, signature: Buffer, publicKey: string): boolean {
  try {
    return verify(null, Buffer.from(text), createPublicKey(publicKey), signature);
  } catch {
    return false;
  }
}

/** Returns a source of `size` random bytes, which asks for many at once, because that is faster. */
export function randomBytesOf(size: number): () => Buffer {
  const pool = Buffer.alloc(256 * size);
  let at = pool.length;
  return () => {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    at += size;
    return Buffer.from(pool.subarray(at - size, at));
  };
}
