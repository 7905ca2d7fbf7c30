/**
 * Checks that a delivery to a webhook comes from the CRM, by means of a signature over the body and
 * the time, which is valid for five minutes:
 *
 *   standard   Standard Webhooks: webhook-id, webhook-timestamp, webhook-signature
 *   hubspot    X-HubSpot-Signature-v3 over method, address, body and X-HubSpot-Request-Timestamp
 */
import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { isSame } from '../../console/access/access-rules.ts';

export interface Signing {
  format: 'standard' | 'hubspot';
  secret: string;
}

export interface Delivery {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** `delivery` is the same for one that is sent again, by the CRM or by another sender. */
export type SignatureVerdict = { delivery: string } | { refused: 'unsigned' | 'old' | 'forged' };

const toleranceMs = 5 * 60_000;

/** Checks the signature of a delivery. `now` is in milliseconds since the epoch. */
export function verify(signing: Signing, delivery: Delivery, now: number): SignatureVerdict {
  const signed = signing.format === 'standard' ? standard(delivery) : hubspot(delivery);
  if (!signed) return { refused: 'unsigned' };
  if (!(Math.abs(now - signed.at) <= toleranceMs)) return { refused: 'old' };
  return signed.isBy(signing.secret) ? { delivery: signed.delivery } : { refused: 'forged' };
}

/** Signs a body as Standard Webhooks says. `at` is in milliseconds since the epoch. */
export function sign(secret: string, id: string, { body, at }: { body: string; at: number }) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, new Date(at), body),
  };
}

interface Signed {
  /** The time in milliseconds since the epoch; NaN if the header contains no time. */
  at: number;
  isBy(secret: string): boolean;
  delivery: string;
}

/** A delivery that is sent again has the same id, but a different time and signature. */
function standard({ headers, body }: Delivery): Signed | undefined {
  const named = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;
  const [id, timestamp, signature] = named.map((name) => only(headers[name]));
  if (!id || !timestamp || !signature) return undefined;
  const text = body.toString('utf8');
  return {
    at: instantOf(timestamp) * 1000,
    isBy: (secret) => {
      const single: Record<string, string> = {};
      for (const [name, value] of Object.entries(headers)) single[name] = only(value) ?? '';
      try {
        new Webhook(secret).verify(text, single, { jsonParse: false });
        return true;
      } catch (error) {
        if (error instanceof WebhookVerificationError) return false;
        throw error;
      }
    },
    // The identity includes the body, because a sender may reuse an id for different events, none
    // of which may be lost.
    delivery: `${id}\n${text}`,
  };
}

function hubspot({ method, url, headers, body }: Delivery): Signed | undefined {
  const timestamp = only(headers['x-hubspot-request-timestamp']);
  const signature = only(headers['x-hubspot-signature-v3']);
  if (!timestamp || !signature) return undefined;
  return {
    at: instantOf(timestamp),
    isBy(secret) {
      // HubSpot signs the URL with these characters unescaped.
      const escaped = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi;
      const text = Buffer.concat([
        Buffer.from(method + url.replace(escaped, decodeURIComponent)),
        body,
        Buffer.from(timestamp),
      ]);
      return isSame(signature, createHmac('sha256', secret).update(text).digest('base64'));
    },
    delivery: signature,
  };
}

function instantOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

function only(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
