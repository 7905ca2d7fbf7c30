/** Reads the people of the export as a run understands them. */
import type { Config } from '../config/config.ts';
import { systemClock } from '../http/system-clock.ts';
import { contactDesire } from '../records/contact/observe/desired-contact.ts';
import { decodeContact } from '../records/contact/observe/contact-rows.ts';
import type { DesiredRow } from '../domain/record.ts';
import type { Subscription } from '../platform/request-schemas.ts';
import { contactSource } from '../cli/compose/source-registry.ts';

export async function readPeople(
  { contacts }: Config,
  signal: AbortSignal,
): Promise<readonly DesiredRow[]> {
  if (!contacts) throw new Error('the example configuration has no contacts');
  const source = contactSource(contacts);
  const desire = contactDesire(contacts, systemClock.now);
  const rows: DesiredRow[] = [];
  for await (const batch of source.read({ fields: [contacts.id, contacts.email], signal })) {
    for (const record of batch) {
      if ('value' in record) rows.push(desire(record.value, record.where));
    }
  }
  return rows;
}

/** Returns what a record says of each channel. */
export function wishesOf(row: Pick<DesiredRow, 'body'>): Record<string, Subscription | null> {
  return decodeContact.desired(row).value.channels;
}
