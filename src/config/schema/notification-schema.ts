/** The YAML of what a worker tells of its mirror by itself: where to, and how that is signed. */
import { z } from 'zod';
import { isLoopback } from '../../domain/values/config-value.ts';
import { onMapping, secret } from './field-types.ts';
import { isBase64 } from './webhook-schema.ts';

const noUrl = 'is no web address → write https://HOST/PATH';
const unsafe = 'would tell it unencrypted → use https';
const noSecret =
  'is no secret of Standard Webhooks → write whsec_ and then base64 (openssl rand -base64 32)';

export const notices = z
  .strictObject({
    url: z.string().refine(isTarget, noUrl).describe('Address that each notice is sent to'),
    secret: secret('The secret it is signed with, as Standard Webhooks has it'),
  })
  .superRefine(({ url, secret: given }, context) => {
    const wrong = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (isTarget(url) && /^http:/i.test(url) && !isLoopback(url)) wrong('url', unsafe);
    if (typeof given === 'string' && given !== '' && !isBase64(given)) wrong('secret', noSecret);
  }, onMapping)
  .describe('Where a worker tells that something is wrong with the mirror, and that it is over');

/** What is no text is complained about elsewhere. */
function isTarget(text: unknown): boolean {
  const url = typeof text === 'string' ? URL.parse(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password === '';
}
