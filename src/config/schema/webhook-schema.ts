/** The YAML of the events that a CRM sends: how they are signed, and where they name a record. */
import { z } from 'zod';
import { onMapping, secret, text } from './field-types.ts';

const noSecret =
  'is no secret of Standard Webhooks → copy it as the sender shows it: whsec_ and then base64';

export const webhook = z
  .strictObject({
    format: z.enum(['standard', 'hubspot']).describe('How the CRM signs its events'),
    secret: secret('The secret it signs with'),
    id: text(
      'Dotted path at which an event names the CRM record; data.id, or objectId with hubspot',
    ).optional(),
  })
  .superRefine(({ format, secret: given }, context) => {
    if (format !== 'standard' || typeof given !== 'string' || isBase64(given)) return;
    context.addIssue({ code: 'custom', path: ['secret'], message: noSecret });
  }, onMapping)
  .transform(({ id, ...rest }) => ({ ...rest, id: id ?? ids[rest.format] }))
  .describe('Events from the CRM: each has one person brought in line within a moment');

const ids = { standard: 'data.id', hubspot: 'objectId' };

/** Sources that always can. */
const readers: ReadonlySet<unknown> = new Set(['hubspot', 'salesforce', 'sql', 'tryton']);

/** Whether a single record can be read from a source, whatever else is wrong with it. */
export function readsOne(source: unknown): boolean {
  if (typeof source !== 'object' || source === null) return false;
  if ('type' in source && readers.has(source.type)) return true;
  return 'one' in source && Boolean(source.one);
}

/** As Standard Webhooks writes secrets, with or without `whsec_`. */
export function isBase64(given: string): boolean {
  const text = given.replace(/^whsec_/, '');
  return (
    text !== '' && /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
  );
}
