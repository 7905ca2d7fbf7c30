/**
 * Encrypts what goes through Redis and may identify a person, or makes a worker act. Redis vouches
 * for nothing: who can write it can store a text again, in another place or for another mirror.
 * So each purpose has a key of its own, derived (HKDF-SHA-256) from the key of the memory, which
 * every process that may write a mirror has. A text can be opened only for the purpose,
 * the mirror and the matter that it was sealed for (AES-256-GCM, additional data). A text that
 * makes a worker act also contains a number, which is accepted once (store/tables/
 * used-numbers.ts), and the time until which it is valid.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Invalid } from '../../domain/errors.ts';
import { parseJson } from '../../domain/stored-json.ts';
import { keyFor, readMemoryKey } from '../../store/memory/memory-key.ts';

/** No text that a caller or a CRM chooses is sealed as a command; it is only a part of one. */
export type Purpose = 'command' | 'progress' | 'outcome' | 'event' | 'delivery' | 'link';

/** The purpose of a text, and the matter it belongs to, such as the number of a command. */
export interface Use {
  purpose: Purpose;
  about?: string;
}

export type Seal = ReturnType<typeof sealOf>;

/** A purpose whose texts make a worker act. */
export type OrderKind = 'command' | 'event';

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const numberBytes = 16;

/** A command until its caller seals it anew, an event as long as an erasure may be tried again. */
const validMs = { command: 120_000, event: 90 * 86_400_000 } as const;

const orderSchema = z.object({
  /** Distinguishes this text from every other one, also from one with the same content. */
  number: z.string(),
  /** Until when it is valid, in milliseconds since the epoch. */
  expiresAt: z.number(),
  text: z.string(),
});
export type Order = z.infer<typeof orderSchema>;

export interface SealOptions {
  /** 32 bytes as hexadecimal digits: the secret of a memory. */
  key: string;
  mirror: string;
  random(bytes: number): Uint8Array;
}

/** Undefined if the key of the memory is missing. Without `random`, it can only decrypt. */
export function sealIn(
  { mirror, memory }: Config,
  random: SealOptions['random'] = () => new Uint8Array(),
): Seal | undefined {
  const key = readMemoryKey(memory.keyFile)?.secret;
  return key === undefined ? undefined : sealOf({ key, mirror, random });
}

/** Encrypts and decrypts the texts of one mirror. All `open` functions throw Invalid. */
export function sealOf({ key, mirror, random }: SealOptions) {
  const keyOf = (purpose: Purpose): Buffer => keyFor(`crm-mirror seal 2 ${purpose}`, key);
  const dataOf = ({ purpose, about = '' }: Use): Buffer =>
    Buffer.from(JSON.stringify([purpose, mirror, about]));
  const close = (text: string, use: Use): string => {
    const nonce = random(nonceBytes);
    const closing = createCipheriv(cipher, keyOf(use.purpose), nonce).setAAD(dataOf(use));
    const body = Buffer.concat([closing.update(text, 'utf8'), closing.final()]);
    return Buffer.concat([nonce, closing.getAuthTag(), body]).toString('base64');
  };
  const open = (sealed: string, use: Use): string => {
    const bytes = Buffer.from(sealed, 'base64');
    const body = nonceBytes + tagBytes;
    try {
      const nonce = bytes.subarray(0, nonceBytes);
      const opening = createDecipheriv(cipher, keyOf(use.purpose), nonce, {
        authTagLength: tagBytes,
      });
      opening.setAAD(dataOf(use));
      opening.setAuthTag(bytes.subarray(nonceBytes, body));
      const text = Buffer.concat([opening.update(bytes.subarray(body)), opening.final()]);
      return text.toString('utf8');
    } catch (error) {
      throw new Invalid(
        'this was encrypted with the key of another memory, or for something else',
        {
          fix: 'let the configurations of caller and worker name the same memoryKeyFile',
          cause: error,
        },
      );
    }
  };
  return {
    /** The result is in Base64. */
    close,
    /** Decrypts a text, unless it was sealed for something else, with another key, or modified. */
    open,
    /** With the number of an earlier order, it is the same one, valid for longer. */
    closeOrder(text: string, purpose: OrderKind, now: number, earlier?: string) {
      const number = earlier ?? Buffer.from(random(numberBytes)).toString('hex');
      const order: Order = { number, expiresAt: now + validMs[purpose], text };
      return { sealed: close(JSON.stringify(order), { purpose }), number };
    },
    /** Throws Invalid if it has expired or has another number, which the caller accepts once. */
    openOrder(sealed: string, purpose: OrderKind, now: number, number?: string): Order {
      const order = orderSchema.parse(parseJson(open(sealed, { purpose })));
      if (now <= order.expiresAt && order.number === (number ?? order.number)) return order;
      throw new Invalid(
        `this ${purpose} was valid until ${new Date(order.expiresAt).toISOString()}`,
        { fix: 'compare the clocks of the machines, and give it again' },
      );
    },
  };
}
