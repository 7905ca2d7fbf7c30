/** From a CRM record to what it wants (README, configuration: contacts). */
import { canonicalJson, fingerprint, type DesiredRow, type Fault } from '../../model/record.ts';
import { email as emailForm, type Subscription } from '../../platform/request.ts';
import { readConsentAt } from './consent-at.ts';
import { contactKey } from './observe.ts';
import type { DesiredContact } from './record.ts';

/** Which field of a CRM record says what: column names or dotted paths. */
export interface ContactFields {
  id: string;
  email: string;
  deleted?: string | undefined;
  unsubscribed?: string | undefined;
  /** When the person last stated their will (ISO 8601). */
  consentAt?: string | undefined;
  channels: readonly { id: string; subscription: string }[];
}

const yes = new Set(['true', 'yes', 'y', '1', 'opt_in', 'subscribed']);
const no = new Set(['false', 'no', 'n', '0', 'opt_out', 'unsubscribed']);
const untrue = new Set(['', 'false', 'no', 'n', '0']);

/** The names a source must know, each once. */
export function fieldNames(fields: ContactFields): string[] {
  const { deleted, unsubscribed, consentAt } = fields;
  const optional = [deleted, unsubscribed, consentAt].filter((name) => name !== undefined);
  const channels = fields.channels.map((channel) => channel.subscription);
  return [...new Set([fields.id, fields.email, ...optional, ...channels])];
}

/**
 * One CRM record in canonical form. An invalid one keeps the opt-outs it states, and nothing else.
 */
export function desireContact(
  fields: ContactFields,
  value: Record<string, unknown>,
  place: string,
): DesiredRow {
  const faults: Fault[] = [];
  const id = text(at(value, fields.id));
  if (id === unreadable) faults.push(noSingleValue(fields.id));
  const address = contactKey(text(at(value, fields.email)));
  const key = isAddress(address) ? address : undefined;
  if (id === '') faults.push(blank(fields.id));
  if (!key) faults.push(address === '' ? blank(fields.email) : notAnAddress(fields.email));
  const channels = wishes(fields, value, faults);
  const consentAt = statedAt(fields, value, faults);
  if (faults.length > 0) dropOptIns(channels);
  const wanted: DesiredContact = { gone: truthy(value, fields.deleted), channels, consentAt };
  const body = canonicalJson(wanted);
  return {
    kind: 'contact',
    id: id === unreadable ? '' : id,
    key,
    alias: address,
    place,
    body,
    fingerprint: fingerprint(body),
    wants: !wanted.gone && Object.values(channels).includes('opt_in'),
    invalid: faults[0],
  };
}

/** Invisible characters and a scheme ("mailto:") would make a second person of somebody known. */
function isAddress(text: string): boolean {
  return emailForm.safeParse(text).success && !/[\p{Cc}\p{Cf}:]/u.test(text);
}

type Wishes = Record<string, Subscription | null>;

function wishes(fields: ContactFields, value: Record<string, unknown>, faults: Fault[]): Wishes {
  const leaves = truthy(value, fields.unsubscribed);
  const entries = fields.channels.map(({ id, subscription }): [string, Subscription | null] => {
    const word = text(at(value, subscription)).toLowerCase();
    const known = word === '' || yes.has(word) || no.has(word);
    if (!known) faults.push(notAConsent(subscription));
    if (leaves || no.has(word)) return [id, 'opt_out'];
    return [id, yes.has(word) ? 'opt_in' : null];
  });
  return Object.fromEntries(entries);
}

function statedAt(
  { consentAt: field }: ContactFields,
  value: Record<string, unknown>,
  faults: Fault[],
): number | null {
  const time = field === undefined ? null : readConsentAt(text(at(value, field)));
  if (time !== undefined) return time;
  faults.push({
    reason: `"${field}" is no time that can be told`,
    fix: 'write it with its zone (2026-03-01T12:00:00Z), or as a day (2026-03-01), or leave it empty',
  });
  return null;
}

function dropOptIns(channels: Wishes): void {
  for (const [id, wish] of Object.entries(channels)) if (wish === 'opt_in') channels[id] = null;
}

/** Anything but an empty or a plainly negative value counts as true: the stricter reading. */
function truthy(value: Record<string, unknown>, field: string | undefined): boolean {
  return field !== undefined && !untrue.has(text(at(value, field)).toLowerCase());
}

/** A field by its exact name, else by its dotted path. */
function at(value: Record<string, unknown>, field: string): unknown {
  if (Object.hasOwn(value, field)) return value[field];
  return field.split('.').reduce<unknown>((inner, name) => {
    const found = inner !== null && typeof inner === 'object' && Object.hasOwn(inner, name);
    return found ? Object.entries(inner).find(([own]) => own === name)?.[1] : undefined;
  }, value);
}

function text(value: unknown): string {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null || value === undefined ? '' : unreadable;
}

/** An object or a list where a single value belongs: no word that means anything. */
const unreadable = '\u0000';

function blank(field: string): Fault {
  return { reason: `"${field}" is empty`, fix: 'fill it in the CRM' };
}

function noSingleValue(field: string): Fault {
  return {
    reason: `"${field}" is no single value`,
    fix: 'name a field that holds a text or number',
  };
}

function notAnAddress(field: string): Fault {
  return { reason: `"${field}" is not an email address`, fix: 'correct the address in the CRM' };
}

function notAConsent(field: string): Fault {
  return {
    reason: `"${field}" holds no known subscription value`,
    fix: 'use true, yes, y, 1, opt_in, subscribed or false, no, n, 0, opt_out, unsubscribed, or leave it empty',
  };
}
