/**
 * The key that signs the checkpoints of the audit log: Ed25519, in a PEM file that only its owner
 * reads. The public key stands in the log itself and can be given to an auditor.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { existsSync } from 'node:fs';
import { Invalid } from '../../domain/errors.ts';
import { readSmallFile } from '../../domain/values/config-file.ts';
import { createKeyFile, privateKeyIn } from '../../domain/values/ed25519-key.ts';

/** A key that signs. */
export interface SigningKey {
  /** Identifies the key: 16 hexadecimal digits of the hash of the public key. */
  id: string;
  /** The public key in PEM form. */
  publicKey: string;
  sign(text: string): Buffer;
}

/**
 * Returns the key in `file`; creates it (0600) if there is no file, or an empty one, as a full disk
 * leaves it. Throws Invalid.
 */
export function signingKey(file: string): SigningKey {
  return existingKey(file) ?? signerOf(createKeyFile(file));
}

/** Returns the key in `file`; undefined if there is none yet. Throws Invalid. */
export function existingKey(file: string): SigningKey | undefined {
  const pem = existsSync(file) ? readSmallFile(file) : Buffer.of();
  if (pem.length === 0) return undefined;
  const key = privateKeyIn(pem);
  if (key) return signerOf(key);
  throw new Invalid(`${file}: this is no key for signing the audit log (Ed25519, PEM)`, {
    fix: 'restore it, or move it away: a new one is made, and the log says so',
  });
}

function signerOf(key: KeyObject): SigningKey {
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
  return { id: keyId(publicKey), publicKey, sign: (text) => sign(null, Buffer.from(text), key) };
}

/** Returns the id of a public key. */
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
