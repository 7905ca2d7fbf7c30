/**
 * The key that signs the checkpoints of the audit log: Ed25519, in a PEM file that only its owner
 * reads. The public key stands in the log itself and can be given to an auditor.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { Invalid } from '../domain/errors.ts';
import { readSmallFile } from '../domain/values/config-file.ts';

/** A key that signs. */
export interface SigningKey {
  /** Identifies the key: 16 hexadecimal digits of the hash of the public key. */
  id: string;
  /** The public key in PEM form. */
  publicKey: string;
  sign(text: string): Buffer;
}

/** Returns the key in `file`; creates both (0600) if there is no file. Throws Invalid. */
export function signingKey(file: string): SigningKey {
  if (!existsSync(file)) create(file);
  const key = privateKeyIn(file);
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

function create(file: string): void {
  const { privateKey } = generateKeyPairSync('ed25519');
  const opened = openSync(file, 'wx', 0o600);
  try {
    writeSync(opened, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

function privateKeyIn(file: string): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(readSmallFile(file));
  } catch (error) {
    if (error instanceof Invalid) throw error;
  }
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new Invalid(`${file}: this is no key for signing the audit log (Ed25519, PEM)`, {
    fix: 'restore it, or move it away: a new one is made, and the log says so',
  });
}
