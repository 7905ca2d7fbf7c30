/**
 * What a mirror reads instead of each record of the CRM (docs/values-and-conditions.md), for what
 * neither a column nor a condition can say.
 */

/** The fields that every record must have for this; the least that HubSpot and Salesforce give. */
export const reads = ['Record ID', 'Email', 'Newsletter consent'];

const words: Record<string, string> = { ja: 'yes', nein: 'no', oui: 'yes', non: 'no' };

/** The same for the same, and a record for every one: whom to leave out, `include` says. */
export default function map(record: Record<string, unknown>): Record<string, unknown> {
  const said = String(record['Newsletter consent']).trim().toLowerCase();
  return { ...record, id: record['Record ID'], news: words[said] ?? said };
}
