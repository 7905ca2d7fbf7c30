/** Converts contacts of the platform to canonical form. */
import { canonicalJson, fingerprint } from '../../../domain/record.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import type { Contact } from '../../../platform/answer-schemas.ts';
import type { Subscription } from '../../../platform/request-schemas.ts';
import { isSame, type NamedParts } from '../../platform-facts.ts';
import type { ObservedContactRow } from './contact-rows.ts';
import type { ObservedContact } from './contact-state.ts';

type Cause = NonNullable<ObservedContact['causes']>[number];

/** The fields of a platform contact that are read. */
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

/** Returns a platform contact in canonical form, with only these channels. */
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
  const others = contact.channels.some(({ id }) => !channels.has(id));
  const rest = {
    ...(typeof changed === 'string' && { changed }),
    ...(others && ({ others } as const)),
  };
  return {
    kind: 'contact',
    id: contact.id,
    alias: contactKey(contact.email),
    body: withRest(form, rest),
    value: { ...seen, ...rest },
    fingerprint: fingerprint(form),
    createdAt: timeOf(contact.createdAt),
  };
}

/**
 * Inserts what the fingerprint excludes at the front of the text, which is faster than serializing
 * it again.
 */
function withRest(form: string, rest: object): string {
  const front = JSON.stringify(rest).slice(0, -1);
  return front === '{' ? form : `${front},${form.slice(1)}`;
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

/**
 * Returns the reasons why a contact receives no mail. An unknown status counts as the stricter one.
 */
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

/**
 * Returns the fingerprint of everything that decisions depend on. It excludes `changed` and
 * `others`, because a change to anything else is not a reason for a new decision.
 */
export function fingerprintOf({ causes, channels, id, left }: ObservedContact): string {
  const form: Record<Exclude<keyof ObservedContact, 'changed' | 'others'>, unknown> = {
    causes,
    channels,
    id,
    left,
  };
  return fingerprint(canonicalJson(form));
}

/** Returns whether any contact is not among the known ones, or has changed in any way since. */
export function isChanged(
  known: readonly ObservedContact[],
  contacts: readonly ObservedContact[],
): boolean {
  const isKnown = ({ id, changed }: ObservedContact): boolean =>
    known.some((one) => one.id === id && one.changed === changed);
  return !contacts.every(isKnown);
}

/** Returns the channels that occur in the contacts on a page, whatever the subscription. */
export function namedIn(contacts: readonly Pick<Contact, 'channels'>[]): NamedParts | undefined {
  const [first, ...others] = contacts.map(({ channels }) => channels.map(({ id }) => id));
  return first && { names: first, differ: !others.every((names) => isSame(first, names)) };
}

/**
 * Returns opt_out for any word other than opt_in, so that an unknown word never subscribes a
 * contact.
 */
function strict(word: string): Subscription {
  return word === 'opt_in' ? 'opt_in' : 'opt_out';
}

/**
 * Returns a time in milliseconds since the epoch, or undefined if there is none. A text without a
 * zone is in UTC, as the platform writes it.
 */
export function timeOf(text: string | null | undefined): number | undefined {
  if (!text) return undefined;
  const isBare = /[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text);
  const ms = Date.parse(isBare ? `${text}Z` : text);
  return Number.isNaN(ms) ? undefined : ms;
}
