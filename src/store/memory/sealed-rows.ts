/**
 * Encrypts what a row of the request log says about a person, and replaces the person by a keyed
 * hash. Both keys come from the key file, so that the memory alone says nothing.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  randomFillSync,
} from 'node:crypto';
import { z } from 'zod';
import { contactKey } from '../../domain/values/contact-key.ts';
import type { MemoryTables } from './memory-tables.ts';

const optional = z.string().nullable();
const content = z.tuple([z.string(), z.string(), optional, optional, optional, optional, optional]);

/** The encrypted part of a row. */
export interface Content {
  method: string;
  path: string;
  /** The address of the person. */
  person: string | null;
  /** The platform's id of the request. */
  requestId: string | null;
  request: string | null;
  answer: string | null;
  failure: string | null;
}

/** The secrets of one request log. */
export interface Secrets {
  /** Returns the keyed hash that stands for a person's address, or for a contact's id. */
  mark(what: 'person' | 'contact', text: string): Buffer;
  seal(one: Content): Buffer;
  /** Decrypts a row. Throws an error if it was encrypted with another key or was changed. */
  open(sealed: Uint8Array): Content;
}

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const markBytes = 16;
const noncesAtOnce = 256;

/** Derives the secrets of a memory. */
export function secretsOf(keyFor: MemoryTables['keyFor']): Secrets {
  const sealing = createSecretKey(keyFor('request log 1: rows'));
  const marking = keyFor('request log 1: people').toString('hex');
  const nextNonce = nonces();
  return {
    // One call takes a third of the time of an HMAC. The half of the hash that is kept cannot be
    // extended to that of another text.
    mark: (what, text) =>
      hash('sha256', `${marking} ${what} ${contactKey(text)}`, 'buffer').subarray(0, markBytes),
    seal({ method, path, person, requestId, request, answer, failure }) {
      const row = [method, path, person, requestId, request, answer, failure] satisfies z.infer<
        typeof content
      >;
      const nonce = nextNonce();
      const closing = createCipheriv(cipher, sealing, nonce);
      const body = closing.update(JSON.stringify(row), 'utf8');
      closing.final();
      return Buffer.concat([nonce, closing.getAuthTag(), body]);
    },
    open(sealed) {
      const body = nonceBytes + tagBytes;
      const opening = createDecipheriv(cipher, sealing, sealed.subarray(0, nonceBytes));
      opening.setAuthTag(sealed.subarray(nonceBytes, body));
      const text = Buffer.concat([opening.update(sealed.subarray(body)), opening.final()]);
      const read: unknown = JSON.parse(text.toString('utf8'));
      const row = content.parse(read);
      const [method, path, person, requestId, request, answer, failure] = row;
      return { method, path, person, requestId, request, answer, failure };
    },
  };
}

/** Returns a function that returns a new random nonce; it asks for many random bytes at once. */
function nonces(): () => Buffer {
  const pool = Buffer.alloc(nonceBytes * noncesAtOnce);
  let at = pool.length;
  return () => {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    at += nonceBytes;
    return Buffer.from(pool.subarray(at - nonceBytes, at));
  };
}
