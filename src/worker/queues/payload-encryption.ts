/**
 * Encrypts data that may identify a person before it goes through Redis. It uses AES-256-GCM with a
 * key derived (HKDF-SHA-256) from the key of the do-not-contact list, which every process that may
 * write a mirror has.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { Invalid } from '../../domain/errors.ts';

/** Encrypts and decrypts. Both `open` functions throw Invalid. */
export interface Seal {
  /** Encrypts a text; the result is in Base64. */
  close(text: string): string;
  /** Decrypts a text, unless it was encrypted with another key or was modified. */
  open(sealed: string): string;
  /** Encrypts bytes. They can be decrypted only for the same `purpose`. */
  closeBytes(bytes: Uint8Array, purpose: string): Buffer;
  /** Decrypts bytes, unless the key or the purpose was another one, or they were modified. */
  openBytes(sealed: Uint8Array, purpose: string): Buffer;
}

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Creates a seal. `key` is the key of the do-not-contact list in hexadecimal. `random` returns the
 * given number of unpredictable bytes.
 */
export function sealOf(key: string, random: (bytes: number) => Uint8Array): Seal {
  const secret = Buffer.from(
    hkdfSync('sha256', Buffer.from(key, 'hex'), '', 'crm-mirror seal 1', 32),
  );
  const closeBytes = (bytes: Uint8Array, purpose: string): Buffer => {
    const nonce = random(nonceBytes);
    const closing = createCipheriv(cipher, secret, nonce).setAAD(Buffer.from(purpose));
    const body = Buffer.concat([closing.update(bytes), closing.final()]);
    return Buffer.concat([nonce, closing.getAuthTag(), body]);
  };
  const openBytes = (bytes: Uint8Array, purpose: string): Buffer => {
    const body = nonceBytes + tagBytes;
    try {
      const opening = createDecipheriv(cipher, secret, bytes.subarray(0, nonceBytes));
      opening.setAAD(Buffer.from(purpose));
      opening.setAuthTag(bytes.subarray(nonceBytes, body));
      return Buffer.concat([opening.update(bytes.subarray(body)), opening.final()]);
    } catch (error) {
      throw new Invalid('this was encrypted with the key of another do-not-contact list', {
        fix: 'let the configurations of caller and worker name the same ledgerKeyFile',
        cause: error,
      });
    }
  };
  return {
    close: (text) => closeBytes(Buffer.from(text, 'utf8'), '').toString('base64'),
    open: (sealed) => openBytes(Buffer.from(sealed, 'base64'), '').toString('utf8'),
    closeBytes,
    openBytes,
  };
}
