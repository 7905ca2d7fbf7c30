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
  const view: ContactView = Object.freeze({
    object: 'contact',
    id: contact.id,
    email: contact.email,
    firstName: contact.firstName,
    lastName: contact.lastName,
    status: contact.status,
    properties: contact.properties,
    groups: contact.groups,
    channels: contact.memberships.map(({ channel: { id, name }, subscription }) => ({
      id,
      name,
      subscription,
    })),
    suppressionReason: contact.suppressionReason,
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
  return {
    id: template.id,
    name: template.name,
    description: template.description,
    subject: template.subject,
    fromEmail: template.fromEmail,
    replyTo: template.replyTo,
    previewText: template.previewText,
    organizationId: organization.id,
    createdByUserId: ownerOf(organization.id),
    status: template.status,
    content: template.content,
    variables: template.variables,
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
  const { secret } = key;
  return {
    id: key.id,
    name: key.name,
    // The visible part is enough to tell keys apart, and never more than half of the secret.
    start: secret.slice(0, Math.min(12, Math.ceil(secret.length / 2))),
    prefix: /^.*_/.exec(secret)?.[0] ?? '',
    enabled: key.enabled,
    requestCount: key.requestCount,
    createdAt: timestamp(key.createdAt),
    updatedAt: timestamp(key.updatedAt),
    permissions: key.permissions,
    createdBy: key.createdBy,
  };
}

/** A domain as the platform returns it ("Domain"), without `event`, which some responses add. */
export type DomainView = Answered<'Domain'>;

export function viewDomain(row: DomainRow): DomainView {
  return {
    object: 'domain',
    id: row.id,
    domain: row.domain,
    status: row.status,
    userVerifiedDomain: row.userVerifiedDomain,
    systemVerified: row.systemVerified,
    customReturnPath: row.customReturnPath,
    trackingSubdomain: row.trackingSubdomain,
    isClickTrackingEnabled: row.isClickTrackingEnabled,
    isOpenTrackingEnabled: row.isOpenTrackingEnabled,
    tls: row.tls,
    isTrackingDomain: false,
    isSendingEmailEnabled: row.isSendingEmailEnabled,
    isReceivingEmailEnabled: row.isReceivingEmailEnabled,
    verificationFailedReason: row.verificationFailedReason,
    dnsRecords: row.dnsRecords.map((record) => ({
      id: record.id,
      recordType: record.recordType,
      recordTypeName: record.recordTypeName,
      domain: row.domain,
      name: record.name,
      value: record.value,
      ttl: 'Auto',
      priority: record.priority,
      status: 'active',
      createdAt: timestamp(row.createdAt),
      updatedAt: timestamp(row.createdAt),
    })),
    lastVerifiedAt: timestamp(row.lastVerifiedAt),
    createdAt: timestamp(row.createdAt),
    updatedAt: timestamp(row.updatedAt),
  };
}
