/** The source of options as they stand in a configuration, in virtual time, and people for it. */
import { expect } from 'vitest';
import { salesforceOptions } from '../../../../src/sources/salesforce/options.ts';
import { salesforceSource } from '../../../../src/sources/salesforce/salesforce-source.ts';
import { longId } from '../../../../src/sources/salesforce/protocol/record-ids.ts';
import type { Certificate, SourceRecord } from '../../../../src/sources/source.ts';
import { readAll, virtualClock } from '../source-reading.ts';
import { onNet, ORIGIN, type Org, type Person } from './salesforce-org.ts';

export const auth = { clientId: '3MVG9.id', clientSecret: 'sk_secret' };
export const fields = ['Id', 'Email', 'HasOptedOutOfEmail', 'IsDeleted'];
const never = new AbortController().signal;

/** The long id of the nth contact or lead. */
export const contactId = (n: number) => longId(`0035g00000${String(n).padStart(5, 'A')}`)!;
export const leadId = (n: number) => longId(`00Q5g00000${String(n).padStart(5, 'A')}`)!;

export function contact(n: number, rest: object = {}): Person {
  const standing = { HasOptedOutOfEmail: false, IsDeleted: false, MasterRecordId: null };
  const SystemModstamp = '2026-01-01T00:00:00.000+0000';
  return { Id: contactId(n), Email: `c${n}@example.com`, SystemModstamp, ...standing, ...rest };
}

export function lead(n: number, rest: object = {}): Person {
  const own = { Id: leadId(n), Email: `l${n}@example.com`, IsConverted: false };
  return { ...contact(n), ...own, ConvertedContactId: null, ...rest };
}

type OptOuts = Parameters<typeof salesforceSource>[1]['unsubscribed'];

export function sourceOf(options: object = {}, ...unsubscribed: OptOuts) {
  const clock = virtualClock();
  const parsed = salesforceOptions.parse({ type: 'salesforce', url: ORIGIN, auth, ...options });
  return { source: salesforceSource(parsed, { clock, random: () => 1, unsubscribed }), clock };
}

/** Reads people of an organization that is behind its address. */
export async function readFrom(org: Org, options: object = {}, asked: readonly string[] = fields) {
  onNet(org);
  const { source, clock } = sourceOf(options);
  return { source, clock, ...(await readAll(source, asked)) };
}

export async function changesOf(
  source: ReturnType<typeof sourceOf>['source'],
  since: string,
  asked: readonly string[] = fields,
) {
  const reading = source.changes(since, { fields: asked, signal: never });
  const records: SourceRecord[] = [];
  let step = await reading.next();
  for (; !step.done; step = await reading.next()) records.push(...step.value);
  const values = records.flatMap((record) => ('value' in record ? [record.value] : []));
  return { values, certificate: step.value };
}

export function one(source: ReturnType<typeof sourceOf>['source'], id: string, asked = fields) {
  return source.one(id, { fields: asked, signal: never });
}

export function cursorIn(certificate: Certificate | 'lost'): string {
  expect(certificate).toMatchObject({ complete: true });
  return (typeof certificate === 'object' && certificate.complete && certificate.cursor) || '';
}
