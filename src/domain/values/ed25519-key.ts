/** Ed25519 keys as text: a public key in a configuration, and a private key in a file. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  verify,
} from 'node:crypto';
import { writeWhole } from './config-file.ts';

/** Returns a public key, given as base64 (SPKI) or PEM, as base64; undefined if it is none. */
export function publicKeyIn(text: string): string | undefined {
  if (isPrivateKey(text)) return undefined;
  const isPem = text.includes('-----BEGIN');
  const key = attempt(() => (isPem ? createPublicKey(text) : keyOfBase64(text)));
  if (key?.asymmetricKeyType !== 'ed25519') return undefined;
  return key.export({ type: 'spki', format: 'der' }).toString('base64');
}

/** Returns whether a text, base64 or PEM, contains a private key of any kind. */
export function isPrivateKey(text: string): boolean {
  const der = { key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' } as const;
  return /PRIVATE KEY/.test(text) || attempt(() => createPrivateKey(der)) !== undefined;
}

/** Returns the public key that belongs to a private key, as base64 (SPKI). */
export function publicKeyOf(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
}

/** Returns whether a base64 signature of a text was made with the key of a `publicKeyIn` text. */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  const bytes = Buffer.from(signature, 'base64');
  return attempt(() => verify(null, Buffer.from(text), keyOfBase64(publicKey), bytes)) === true;
}

function keyOfBase64(text: string): KeyObject {
  return createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' });
}

/**
 * Returns a new private key, which it writes to a file (0600, PEM), with `note` below it. Throws
 * file system errors.
 */
export function createKeyFile(file: string, note = ''): KeyObject {
  const { privateKey } = generateKeyPairSync('ed25519');
  writeWhole(file, `${privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()}${note}`);
  return privateKey;
}

/** Returns the private key of a text in PEM form; undefined if it is none for Ed25519. */
export function privateKeyIn(pem: Buffer): KeyObject | undefined {
  const key = attempt(() => createPrivateKey(pem));
  return key?.asymmetricKeyType === 'ed25519' ? key : undefined;
}

/** Returns a result; undefined if the work throws, as it does for what is no key. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
