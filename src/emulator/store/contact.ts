import type { ContactRow, ContactStatus, Membership } from '../shared/row-types.ts';

/**
 * A contact to add; what is left out is as in a fresh contact. `createdAt`: milliseconds since the
 * epoch.
 */
export interface NewContact {
  email: string;
  id?: string | undefined;
  firstName?: string | undefined;
  lastName?: string | undefined;
  status?: ContactStatus | undefined;
  properties?: Record<string, unknown> | undefined;
  groups?: { id: string; name: string }[] | undefined;
  suppressionReason?: string | undefined;
  createdAt?: number | undefined;
}

/** The fields of a contact that can change, besides its memberships. */
export type ContactChange = Partial<
  Pick<
    ContactRow,
    'email' | 'firstName' | 'lastName' | 'status' | 'suppressionReason' | 'suppressedAt'
  >
>;

/** Returns the form in which emails are compared: trimmed and in lower case. */
export function emailKey(email: string): string {
  return email.trim().toLowerCase();
}

/** Returns the contact's membership of a channel; undefined: none. */
export function membershipIn(contact: ContactRow, channelId: string): Membership | undefined {
  return contact.memberships.find(({ channel }) => channel.id === channelId);
}

/** Returns the row of a new contact. */
export function toRow(
  contact: NewContact,
  { id, serial, now }: { id: string; serial: number; now: number },
): ContactRow {
  const createdAt = contact.createdAt ?? now;
  const suppressionReason = contact.suppressionReason ?? null;
  return {
    id,
    serial,
    email: contact.email,
    key: emailKey(contact.email),
    firstName: contact.firstName ?? '',
    lastName: contact.lastName ?? '',
    status: contact.status ?? 'subscribed',
    properties: contact.properties ?? {},
    groups: contact.groups ?? [],
    memberships: [],
    suppressionReason,
    suppressedAt: suppressionReason === null ? null : createdAt,
    createdAt,
    updatedAt: createdAt,
  };
}
