/**
 * What may name a person crosses Redis only sealed: AES-256-GCM, under a key made of the ledger's
 * (HKDF-SHA-256), which every process that may write a mirror has.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { Invalid } from '../../domain/errors.ts';

export interface Seal {
  close(text: string): string;
  /** Throws Invalid for what was not closed with this key, or was changed since. */
  open(sealed: string): string;
}

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** `key`: the ledger's, hexadecimal. `random`: so many bytes that nobody can guess. */
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
        throw new Invalid(
          'this was sealed with the key of another ledger → give caller and worker the same ledgerKeyFile',
          { cause: error },
        );
      }
    },
  };
}
