/** A mirror of a HubSpot account, its command line within this process, and its events. */
import { createHmac } from 'node:crypto';
import { Account, TOKEN } from '../sources/hubspot-account.ts';
import type { Lines } from '../engine/engine-world.ts';
import { mirrored } from './mirrored-contacts.ts';

export const secret = 'b5c9f1c4-2a6e-4a37-9d02-5f2d1f6a8e10';

export async function hubspotMirror(more: Lines = {}, extra: object = {}) {
  const hubspot = await new Account().open();
  hubspot.put(1, 'ann@example.com').put(2, 'bob@example.com').put(3, 'cid@example.com', null);
  const lines = {
    contacts: {
      source: { type: 'hubspot', token: '${HUBSPOT_TOKEN:-pat-eu1-secret}', url: hubspot.url },
      email: 'properties.email',
      deleted: 'archived',
      channels: [{ id: 'ch_news', subscription: 'properties.newsletter' }],
      ...extra,
    },
    policy: { deletes: 'owned' },
    ...more,
  };
  const world = await mirrored({ lines, hides: [TOKEN, '@example'] });
  return { hubspot, ...world };
}

/** As HubSpot tells of what happened to which objects. */
export async function tell(url: string, happened: [string, number][]): Promise<number> {
  const address = `${url}/webhooks/world`;
  const events = happened.map(([subscriptionType, objectId]) => ({ subscriptionType, objectId }));
  const body = JSON.stringify(events);
  const timestamp = String(Date.now());
  const signed = createHmac('sha256', secret).update(`POST${address}${body}${timestamp}`);
  const headers = {
    'content-type': 'application/json',
    'x-hubspot-request-timestamp': timestamp,
    'x-hubspot-signature-v3': signed.digest('base64'),
  };
  return (await fetch(address, { method: 'POST', headers, body })).status;
}
