/** The rows that the emulator keeps, one type for each kind, and what they hold. */
import type {
  ContactListQuery,
  Subscription,
  TemplateUpdateBody,
  Tls,
} from '../../platform/request-schemas.ts';
import type { DnsRecord } from './dns-records.ts';

/** A contact as it is kept; times in milliseconds since the epoch. */
export interface ContactRow {
  readonly id: string;
  readonly serial: number;
  /** Changed by `change` only, which keeps the index right; and so is its key. */
  readonly email: string;
  /** The email as it is looked up and searched: trimmed, lower-cased. */
  readonly key: string;
  firstName: string;
  lastName: string;
  /** Changed by `change` only, which keeps the listings right. */
  status: ContactStatus;
  properties: Record<string, unknown>;
  groups: { id: string; name: string }[];
  memberships: Membership[];
  suppressionReason: string | null;
  suppressedAt: number | null;
  readonly createdAt: number;
  updatedAt: number;
}

/** A sending domain as it is kept; times in milliseconds since the epoch. */
export interface DomainRow {
  readonly id: string;
  readonly serial: number;
  /** Lower-cased. */
  readonly domain: string;
  status: string;
  userVerifiedDomain: boolean;
  systemVerified: boolean;
  readonly customReturnPath: string;
  readonly trackingSubdomain: string;
  readonly isClickTrackingEnabled: boolean;
  readonly isOpenTrackingEnabled: boolean;
  readonly tls: Tls;
  readonly isSendingEmailEnabled: boolean;
  readonly isReceivingEmailEnabled: boolean;
  verificationFailedReason: string;
  readonly dnsRecords: readonly DnsRecord[];
  lastVerifiedAt: number;
  readonly createdAt: number;
  updatedAt: number;
}

/** An API key as it is kept; times in milliseconds since the epoch. */
export interface KeyRow {
  readonly id: string;
  /** What x-api-key has to hold. Changed by `rotate` only. */
  secret: string;
  readonly name: string;
  enabled: boolean;
  /** For good: a revoked key is as good as none. */
  revoked: boolean;
  requestCount: number;
  /** Names with commas between them; `read` and `write` mean something. */
  readonly permissions: string;
  readonly createdBy: { id: string; name: string; email: string };
  readonly createdAt: number;
  updatedAt: number;
}

export interface SendRow {
  /** The how-manieth it is. */
  id: string;
  send: TestSend;
}

/** A template as it is kept; times in milliseconds since the epoch. */
export interface TemplateRow extends TemplateFields {
  readonly id: string;
  readonly serial: number;
  readonly createdAt: number;
  updatedAt: number;
}

/** Somebody who works on the platform's own dashboard. */
export interface UserRow {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  /** The value of the session cookie. */
  readonly session: string;
  /** Null for a user who is a member of no organization. */
  readonly organizationId: string | null;
}

export type ContactStatus = NonNullable<ContactListQuery['status']>;

export interface Channel {
  id: string;
  name: string;
  /** What a contact without a row of its own is taken to be in it, where anybody asks. */
  subscription?: Subscription | undefined;
}

/** That a contact has a row of its own in a channel. */
export interface Membership {
  /** The `subscriptionId` of the enrolment. */
  id: string;
  channel: Channel;
  subscription: Subscription;
}

/** A test email that was sent: kept to be read, delivered to nobody. */
export interface TestSend {
  at: string;
  templateId: string;
  to: string;
  fromEmail: string;
  subject: string;
  /** Null when the request brought none; the template's own content is in `content`. */
  html: string | null;
  content: readonly unknown[];
}

/** The fields of a template that somebody writes ("Templates": update). */
export type TemplateFields = {
  [Field in keyof TemplateUpdateBody]-?: NonNullable<TemplateUpdateBody[Field]>;
};
