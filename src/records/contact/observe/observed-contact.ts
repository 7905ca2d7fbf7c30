/** From a platform contact to its canonical form. */
import { canonicalJson, fingerprint } from '../../../domain/record.ts';
import type { Contact } from '../../../platform/answer-schemas.ts';
import type { Subscription } from '../../../platform/request-schemas.ts';
import { isSame, type NamedParts } from '../../platform-facts.ts';
import type { ObservedContactRow } from './contact-rows.ts';
import type { ObservedContact } from './contact-state.ts';

type Cause = NonNullable<ObservedContact['causes']>[number];

/** The key of a contact: one spelling of an address for both sides. */
export function contactKey(email: string): string {
  return email.trim().toLowerCase();
}

/** What of a platform contact matters here. */
type Shown = Pick<
  Contact,
  | 'id'
  | 'email'
  | 'status'
  | 'channels'
  | 'suppressionReason'
  | 'suppressedAt'
  | 'createdAt'
  | 'updatedAt'
>;

/** Canonical form of a platform contact; channels that are not configured do not concern us. */
export function observe(contact: Shown, channels: ReadonlySet<string>): ObservedContactRow {
  const causes = causesOf(contact);
  const left = causes.length > 0;
  const seen: ObservedContact = {
    causes: left ? causes : undefined,
    channels: subscriptionsOf(contact, channels),
    id: contact.id,
    left,
  };
  const form = canonicalJson(seen);
  const changed = contact.updatedAt;
  return {
    kind: 'contact',
    id: contact.id,
    alias: contactKey(contact.email),
    body: withChange(form, changed),
    value: typeof changed === 'string' ? { ...seen, changed } : seen,
    fingerprint: fingerprint(form),
    createdAt: timeOf(contact.createdAt),
  };
}

/** Put in front of what is written already: there are many. */
function withChange(form: string, changed: string | null | undefined): string {
  return typeof changed === 'string'
    ? `{"changed":${JSON.stringify(changed)},${form.slice(1)}`
    : form;
}

function subscriptionsOf(
  { channels }: Shown,
  looked: ReadonlySet<string>,
): ObservedContact['channels'] {
  const subscriptions: ObservedContact['channels'] = {};
  for (const { id, subscription } of channels) {
    if (looked.has(id)) subscriptions[id] = strict(subscription);
  }
  return subscriptions;
}

/** How somebody left all mail; what has no name of its own here is taken for the stricter. */
function causesOf({ status, suppressionReason, suppressedAt }: Shown): Cause[] {
  const causes: Cause[] = [];
  if (status !== 'subscribed') causes.push(status === 'blocked' ? 'blocked' : 'unsubscribed');
  if (suppressionReason || suppressedAt) causes.push(suppressionOf(suppressionReason ?? ''));
  return causes;
}

function suppressionOf(reason: string): Cause {
  if (/complain|spam/i.test(reason)) return 'complaint';
  return /bounce/i.test(reason) && !/unsub/i.test(reason) ? 'bounce' : 'suppressed';
}

/** Of what matters: that a contact was changed in any other way is no reason to decide anew. */
export function fingerprintOf({ causes, channels, id, left }: ObservedContact): string {
  const form: Record<Exclude<keyof ObservedContact, 'changed'>, unknown> = {
    causes,
    channels,
    id,
    left,
  };
  return fingerprint(canonicalJson(form));
}

/** Whether any contact is another than those known, or was changed in any way since. */
export function isChanged(
  known: readonly ObservedContact[],
  contacts: readonly ObservedContact[],
): boolean {
  const isKnown = ({ id, changed }: ObservedContact): boolean =>
    known.some((one) => one.id === id && one.changed === changed);
  return !contacts.every(isKnown);
}

/** Which channels the contacts of a page name, whatever they are in. */
export function namedIn(contacts: readonly Pick<Contact, 'channels'>[]): NamedParts | undefined {
  const [first, ...others] = contacts.map(({ channels }) => channels.map(({ id }) => id));
  return first && { names: first, differ: !others.every((names) => isSame(first, names)) };
}

/** Anything but a plain opt_in is read as an opt_out: an unknown word never subscribes anybody. */
function strict(word: string): Subscription {
  return word === 'opt_in' ? 'opt_in' : 'opt_out';
}

/** In milliseconds since the epoch; of a text that names no zone in UTC, as the platform has it. */
export function timeOf(text: string | null | undefined): number | undefined {
  if (!text) return undefined;
  const isBare = /[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);
  const ms = Date.parse(isBare ? `${text}Z` : text);
  return Number.isNaN(ms) ? undefined : ms;
}
