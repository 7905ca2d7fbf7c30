/** The rows that the emulator stores, one type for each kind. */
import type {
  ContactListQuery,
  Subscription,
  TemplateUpdateBody,
  Tls,
} from '../../platform/request-schemas.ts';
import type { DnsRecord } from './dns-records.ts';

/** A contact; times are milliseconds since the epoch. */
export interface ContactRow {
  readonly id: string;
  readonly serial: number;
  /** Changed by `change` only, which keeps the index right; the same holds for `key`. */
  readonly email: string;
  /** The email as it is looked up and searched: trimmed and in lower case. */
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

/** A sending domain; times are milliseconds since the epoch. */
export interface DomainRow {
  readonly id: string;
  readonly serial: number;
  /** In lower case. */
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

/** An API key; times are milliseconds since the epoch. */
export interface KeyRow {
  readonly id: string;
  /** The value for x-api-key. Changed by `rotate` only. */
  secret: string;
  readonly name: string;
  enabled: boolean;
  /** Revoked for good: the key counts as unknown. */
  revoked: boolean;
  requestCount: number;
  /** Names separated by commas; only `read` and `write` have a meaning. */
  readonly permissions: string;
  readonly createdBy: { id: string; name: string; email: string };
  readonly createdAt: number;
  updatedAt: number;
}

/** A test email with its number. */
export interface SendRow {
  /** The number of the email. */
  id: string;
  send: TestSend;
}

/** A template; times are milliseconds since the epoch. */
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
  /** Null: the user is a member of no organization. */
  readonly organizationId: string | null;
}

/** The status of a contact. */
export type ContactStatus = NonNullable<ContactListQuery['status']>;

/** A channel. */
export interface Channel {
  id: string;
  name: string;
  /** The subscription that is shown for a contact without a row of its own. */
  subscription?: Subscription | undefined;
}

/** A contact's own row in a channel. */
export interface Membership {
  /** The `subscriptionId` of the enrolment. */
  id: string;
  channel: Channel;
  subscription: Subscription;
}

/** A test email, which is stored and delivered to nobody. */
export interface TestSend {
  at: string;
  templateId: string;
  to: string;
  fromEmail: string;
  subject: string;
  /** Null if the request has none; the template's own content is in `content`. */
  html: string | null;
  content: readonly unknown[];
}

/** The fields of a template that can be written ("Templates": update). */
export type TemplateFields = {
  [Field in keyof TemplateUpdateBody]-?: NonNullable<TemplateUpdateBody[Field]>;
};
