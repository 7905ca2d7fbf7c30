/** Converts stored rows into the JSON that the platform returns. */
import { timestamp } from '../shared/api-answer.ts';
import type { ContactRow, DomainRow, KeyRow, TemplateRow } from '../shared/row-types.ts';
import { type Organization, ownerOf } from '../store/organization.ts';
import type { Answered } from './answer-schemas.ts';

/** A contact as the platform returns it ("Contact"). */
export type ContactView = Answered<'Contact'>;

/** Caches the latest view of each contact, because lists return the same contacts repeatedly. */
const shown = new WeakMap<ContactRow, { as: ContactRow; view: ContactView }>();

/** Returns the view of a contact, frozen, and the same object until the contact changes. */
export function viewContact(contact: ContactRow): Readonly<ContactView> {
  const last = shown.get(contact);
  if (last && isSame(last.as, contact)) return last.view;
  const { key: _key, serial: _serial, memberships, ...fields } = contact;
  const view: ContactView = Object.freeze({
    object: 'contact',
    ...fields,
    channels: memberships.map(({ channel: { id, name }, subscription }) => ({
      id,
      name,
      subscription,
    })),
    suppressedAt: contact.suppressedAt === null ? null : timestamp(contact.suppressedAt),
    createdAt: timestamp(contact.createdAt),
    updatedAt: timestamp(contact.updatedAt),
  });
  shown.set(contact, { as: { ...contact }, view });
  return view;
}

/** Values inside a row are never modified in place. */
function isSame(one: ContactRow, other: ContactRow): boolean {
  return (
    one.memberships === other.memberships &&
    one.email === other.email &&
    one.status === other.status &&
    one.updatedAt === other.updatedAt &&
    one.suppressedAt === other.suppressedAt &&
    one.suppressionReason === other.suppressionReason &&
    one.firstName === other.firstName &&
    one.lastName === other.lastName &&
    one.properties === other.properties &&
    one.groups === other.groups
  );
}

/** A template as the platform returns it ("Template"). */
export type TemplateView = Answered<'Template'>;

export function viewTemplate(organization: Organization, template: TemplateRow): TemplateView {
  const { serial: _, ...fields } = template;
  return {
    ...fields,
    organizationId: organization.id,
    createdByUserId: ownerOf(organization.id),
    currentVersion: 1,
    thumbnailUrl: '',
    isDefault: false,
    deletedAt: null,
    createdAt: timestamp(template.createdAt),
    updatedAt: timestamp(template.updatedAt),
  };
}

/** An API key as the platform returns it ("API key"), with the beginning of the secret. */
export type KeyView = Answered<'ApiKey'>;

export function viewKey(key: KeyRow): KeyView {
  const { secret, revoked: _, ...fields } = key;
  return {
    ...fields,
    // The visible part is enough to tell keys apart, and never more than half of the secret.
    start: secret.slice(0, Math.min(12, Math.ceil(secret.length / 2))),
    prefix: /^.*_/.exec(secret)?.[0] ?? '',
    createdAt: timestamp(key.createdAt),
    updatedAt: timestamp(key.updatedAt),
  };
}

/** A domain as the platform returns it ("Domain"), without `event`, which some responses add. */
export type DomainView = Answered<'Domain'>;

export function viewDomain(row: DomainRow): DomainView {
  const { serial: _, dnsRecords, ...fields } = row;
  return {
    object: 'domain',
    ...fields,
    isTrackingDomain: false,
    dnsRecords: dnsRecords.map((record) => ({
      ...record,
      domain: row.domain,
      ttl: 'Auto',
      status: 'active',
      createdAt: timestamp(row.createdAt),
      updatedAt: timestamp(row.createdAt),
    })),
    lastVerifiedAt: timestamp(row.lastVerifiedAt),
    createdAt: timestamp(row.createdAt),
    updatedAt: timestamp(row.updatedAt),
  };
}
