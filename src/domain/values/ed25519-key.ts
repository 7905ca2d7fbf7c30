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
  try {
    const key = text.includes('-----BEGIN') ? createPublicKey(text) : keyOfBase64(text);
    if (key.asymmetricKeyType !== 'ed25519') return undefined;
    return key.export({ type: 'spki', format: 'der' }).toString('base64');
  } catch {
    return undefined;
  }
}

/** Returns whether a text, base64 or PEM, contains a private key of any kind. */
export function isPrivateKey(text: string): boolean {
  if (/PRIVATE KEY/.test(text)) return true;
  try {
    createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' });
    return true;
  } catch {
    return false;
  }
}

/** Returns the public key that belongs to a private key, as base64 (SPKI). */
export function publicKeyOf(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
}

/** Returns whether a base64 signature of a text was made with the key of a `publicKeyIn` text. */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  try {
    const key = keyOfBase64(publicKey);
    return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
}

function keyOfBase64(text: string): KeyObject {
  return createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' });
}

/** Returns a new private key, which it writes to a file (0600, PEM). Throws file system errors. */
export function createKeyFile(file: string): KeyObject {
  const { privateKey } = generateKeyPairSync('ed25519');
  writeWhole(file, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  return privateKey;
}

/** Returns the private key of a text in PEM form; undefined if it is none for Ed25519. */
export function privateKeyIn(pem: Buffer): KeyObject | undefined {
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}
