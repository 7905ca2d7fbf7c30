/** Names the organization to which limits belong. */
import { createHmac } from 'node:crypto';

/**
 * Returns the name under which processes share limits. It is the same for all processes that use
 * the same key of the same platform, and reveals neither of them: it is half of the HMAC-SHA-256 of
 * the URL under the API key.
 */
export function organizationOf({ url, apiKey }: { url: string; apiKey: string }): string {
  const text = `crm-mirror budget 1\n${url}`;
  return createHmac('sha256', apiKey).update(text).digest('hex').slice(0, 32);
}
