import type { Subscription } from '../platform/request.ts';
import { timestamp } from './answer.ts';
import type { ContactRow, ContactStatus } from './store/contact.ts';
import type { Organization } from './store/organization.ts';
import type { TemplateFields, TemplateRow } from './store/templates.ts';

/** A contact as the platform answers it ("Contact"). */
export interface ContactView {
  object: 'contact';
  id: string;
  email: string;
  firstName: string;
  lastName: string;
  status: ContactStatus;
  properties: Record<string, unknown>;
  groups: { id: string; name: string }[];
  /** Only channels in which the contact has a row of its own. */
  channels: { id: string; name: string; subscription: Subscription }[];
  suppressionReason: string | null;
  suppressedAt: string | null;
  createdAt: string;
  updatedAt: string;
}

export function viewContact(contact: ContactRow): ContactView {
  return {
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
  };
}

/** A template as the platform answers it ("Template"). */
export interface TemplateView extends TemplateFields {
  id: string;
  organizationId: string;
  createdByUserId: string;
  currentVersion: number;
  thumbnailUrl: string;
  isDefault: boolean;
  deletedAt: string | null;
  createdAt: string;
  updatedAt: string;
}

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
    createdByUserId: `user_of_${organization.id}`,
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
