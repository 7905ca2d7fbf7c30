/** Addresses of the web in a configuration, and the headers that are sent there. */
import { z } from 'zod';
import { isLoopback } from '../../domain/values/config-value.ts';

/** What this client says itself. */
const own = [
  'connection',
  'content-length',
  'expect',
  'host',
  'transfer-encoding',
  'upgrade',
  'user-agent',
];

export const headers = z
  .record(z.string(), z.string())
  .superRefine((given, context) => {
    for (const [name, value] of Object.entries(given)) {
      const message = headerFault(name, value);
      if (message) context.addIssue({ code: 'custom', path: [name], message });
    }
  })
  .describe('Headers of every request; a secret better as ${NAME} than in the file');

function headerFault(name: string, value: string): string | undefined {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return 'is no name of a header → correct it';
  if (own.includes(name.toLowerCase())) return 'is written by crm-mirror itself → remove it';
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)) return undefined;
  return 'is empty or holds what a header cannot carry → write it in plain letters, on one line';
}

export function addressFault(address: string, allowHttp: boolean): string | undefined {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol)) return 'is no web address → write https://HOST/…';
  if (url.username || url.password) return 'holds a user or password → move it to headers';
  if (url.hash) return 'holds a fragment → end it before the #';
  if (url.protocol === 'https:' || isLoopback(address) || allowHttp) return undefined;
  return 'would send people and secrets unencrypted → use https, or add allowHttp: true';
}
