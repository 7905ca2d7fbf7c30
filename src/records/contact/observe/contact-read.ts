/** What the platform shows of one person now. */
import type { Change } from '../../../domain/change.ts';
import type { RecordedRow } from '../../../domain/record.ts';
import type { Platform } from '../../../platform/api-client.ts';
import type { SendOutcome } from '../../record-type.ts';
import type { FoundRecord } from '../../listing-page.ts';
import { stale } from '../../send-outcome.ts';
import type { ObservedContactRow } from './contact-rows.ts';
import { contactKey, observe } from './observed-contact.ts';

export interface ReadAccess {
  platform: Platform['contacts'];
  /** Those that are looked at: the configured ones, and those they took over from. */
  channels: ReadonlySet<string>;
}

/** Only a 404 says that a contact is gone, and that of its address only a search says something. */
export async function find(
  access: ReadAccess,
  { key, id = '' }: RecordedRow,
  signal: AbortSignal,
): Promise<FoundRecord> {
  const contact = await access.platform.retrieve(id, { signal });
  if (contact) return { is: 'alone', rows: [observe(contact, access.channels)] };
  return { is: 'whole', rows: await search(access, key, signal) };
}

/** Whom an opt-out by its id is meant for it reaches under any address. */
export async function read(
  access: ReadAccess,
  change: Change,
  signal: AbortSignal,
): Promise<ObservedContactRow[]> {
  const { key, target, op } = change;
  if (target === undefined) return search(access, key, signal);
  if (op === 'opt_out') return byId(access, target, signal);
  const row = await retrieve(access, { key, target }, signal);
  return row ? [row] : [];
}

/** Undefined also when it is there under another address: then it is another person's mailbox. */
export async function retrieve(
  access: ReadAccess,
  { key, target = '' }: Pick<Change, 'key' | 'target'>,
  signal: AbortSignal,
): Promise<ObservedContactRow | undefined> {
  const contact = await access.platform.retrieve(target, { signal });
  const isTheirs = contact && contactKey(contact.email) === key;
  return isTheirs ? observe(contact, access.channels) : undefined;
}

async function byId({ platform, channels }: ReadAccess, id: string, signal: AbortSignal) {
  const contact = await platform.retrieve(id, { signal });
  return contact ? [observe(contact, channels)] : [];
}

/** Whom a search does not show may still be there by the id that is recorded, renamed or not. */
export async function readAll(
  access: ReadAccess,
  { key, id }: Pick<RecordedRow, 'key' | 'id'>,
  signal: AbortSignal,
): Promise<ObservedContactRow[]> {
  const rows = await search(access, key, signal);
  if (id === undefined || rows.some((row) => row.id === id)) return rows;
  return [...rows, ...(await byId(access, id, signal))];
}

/** Everybody of exactly this address; the platform's own search may match more. */
export async function search(
  access: ReadAccess,
  key: string,
  signal: AbortSignal,
): Promise<ObservedContactRow[]> {
  const found: ObservedContactRow[] = [];
  for await (const contact of access.platform.all({ search: key }, { signal })) {
    if (contactKey(contact.email) === key) found.push(observe(contact, access.channels));
  }
  return found;
}

/**
 * A contact that is not what it was planned on proves nothing else of its address: that is asked.
 * `known`: what was read by its id just now.
 */
export async function anew(
  access: ReadAccess,
  { key, op, target }: Change,
  { why, signal, known }: { why: string; signal: AbortSignal; known?: ObservedContactRow[] },
): Promise<SendOutcome> {
  const renamed = known?.filter(({ alias }) => alias !== key) ?? [];
  const id = op === 'opt_out' && !known ? target : undefined;
  return stale([...(await readAll(access, { key, id }, signal)), ...renamed], why);
}
