/** The YAML of the worker's own server: health, metrics, status, and the CRM's events. */
import { z } from 'zod';
import { isLoopback } from '../../domain/values/config-value.ts';
import { number, onMapping, secret, text, whole } from './field-types.ts';

const noUrl = 'is no web address → write https://HOST, as the CRM calls it';

export const server = z
  .strictObject({
    host: text('Address to listen on').default('127.0.0.1'),
    port: number(whole(0, 65_535), 'Port to listen on').prefault(8080),
    token: secret('Token that everything but health and webhooks asks for').optional(),
    publicUrl: z
      .string()
      .refine(isBase, noUrl)
      .transform((url) => url.replace(/\/+$/, ''))
      .describe('Address under which the CRM reaches this server, where a proxy stands before it')
      .optional(),
  })
  .superRefine(({ host, token }, context) => {
    if (token !== undefined || isOwn(host)) return;
    const message =
      'is missing, and host is not this machine alone → add token: ${OPS_TOKEN}, or use host: 127.0.0.1';
    context.addIssue({ code: 'custom', path: ['token'], message });
  }, onMapping)
  .describe("The worker's own server: health, metrics, status page, webhooks");

/** What is no text is complained about elsewhere. */
function isOwn(host: unknown): boolean {
  if (typeof host !== 'string') return true;
  return isLoopback(`http://${host.includes(':') ? `[${host}]` : host}`);
}

function isBase(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text);
}
