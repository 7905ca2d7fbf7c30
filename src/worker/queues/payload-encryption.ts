/**
 * Encrypts data that may identify a person before it goes through Redis. It uses AES-256-GCM with a
 * key derived (HKDF-SHA-256) from the key of the do-not-contact list, which every process that may
 * write a mirror has.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { Invalid } from '../../domain/errors.ts';

/** Encrypts and decrypts texts, in Base64. */
export interface Seal {
  close(text: string): string;
  /** Decrypts a text. Throws Invalid if the text was encrypted with another key or was modified. */
  open(sealed: string): string;
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
  return {
    close(text) {
      const nonce = random(nonceBytes);
      const closing = createCipheriv(cipher, secret, nonce);
      const body = Buffer.concat([closing.update(text, 'utf8'), closing.final()]);
      return Buffer.concat([nonce, closing.getAuthTag(), body]).toString('base64');
    },
    open(sealed) {
      const bytes = Buffer.from(sealed, 'base64');
      const body = nonceBytes + tagBytes;
      try {
        const opening = createDecipheriv(cipher, secret, bytes.subarray(0, nonceBytes));
        opening.setAuthTag(bytes.subarray(nonceBytes, body));
        return Buffer.concat([opening.update(bytes.subarray(body)), opening.final()]).toString(
          'utf8',
        );
      } catch (error) {
        throw new Invalid('this was encrypted with the key of another do-not-contact list', {
          fix: 'let the configurations of caller and worker name the same ledgerKeyFile',
          cause: error,
        });
      }
    },
  };
}
