import type { Route } from '../limits/route-limits.ts';
import type { AnswerName } from '../api/answer-schemas.ts';

/** The texts about an operation in the document, in addition to its schemas. */
export interface Description {
  tag: 'Contacts' | 'Templates' | 'Domains' | 'API keys';
  summary: string;
  /** Describes mostly what the specification does not show and how the emulator behaves there. */
  description: string;
  success: { status: 200 | 201; answer: AnswerName };
  /** The error responses by status, in addition to those common to all operations. */
  refusals: Record<number, string>;
}

/** Holds the description of each operation. */
export const described: Record<Route, Description> = {
  'contacts.list': {
    tag: 'Contacts',
    summary: 'List contacts',
    description:
      'Newest first. `search` looks for a part of the email, whatever the case. The default of ' +
      '`limit` is stated as 20 and as 100; here it is 100. `totalContacts`, `subscribedContacts` ' +
      'and `unsubscribedContacts` ignore the query.',
    success: { status: 200, answer: 'ContactList' },
    refusals: { 400: 'Invalid request' },
  },
  'contacts.retrieve': {
    tag: 'Contacts',
    summary: 'Retrieve a contact',
    description: '',
    success: { status: 200, answer: 'Contact' },
    refusals: { 404: 'Contact not found' },
  },
  'contacts.delete': {
    tag: 'Contacts',
    summary: 'Remove a contact',
    description:
      'What becomes of its history is not shown; here it is gone, and a contact that is created again is new.',
    success: { status: 200, answer: 'ContactDeletion' },
    refusals: { 404: 'Contact not found' },
  },
  'contacts.enrol': {
    tag: 'Contacts',
    summary: 'Add a contact to a channel',
    description:
      'Creates the contact of an unknown email. Which of `contact_id` and `email` must be present ' +
      'is not shown; here one of them is needed, and `contact_id` wins. The default of ' +
      '`subscription` is not shown; here it is opt_in. Whether the other subscription than the ' +
      'present one changes it is not shown; here it does.',
    success: { status: 201, answer: 'Enrolment' },
    refusals: {
      400: 'Invalid email format',
      404: 'Channel subscription not found; Contact not found',
      409: 'Contact is already subscribed to this channel',
    },
  },
  'templates.list': {
    tag: 'Templates',
    summary: 'List templates',
    description: 'Newest first, archived ones too. The default of `limit` is 20.',
    success: { status: 200, answer: 'TemplateList' },
    refusals: { 400: 'Invalid request' },
  },
  'templates.create': {
    tag: 'Templates',
    summary: 'Create a template',
    description:
      'The structure of `content` is not shown; anything is kept as it is. Names need not be unique.',
    success: { status: 200, answer: 'Template' },
    refusals: { 400: 'Invalid request' },
  },
  'templates.update': {
    tag: 'Templates',
    summary: 'Update a template',
    description:
      'Only the fields given change. Which status may follow which is not shown; here any may ' +
      'follow any. Whether `currentVersion` moves is not shown; here it does not.',
    success: { status: 200, answer: 'Template' },
    refusals: { 400: 'Invalid request', 404: 'Template not found' },
  },
  'templates.test': {
    tag: 'Templates',
    summary: 'Send a test email',
    description:
      'How variables are written is not shown; here {{name}} is replaced by the value given, else ' +
      'by the default of the variable. Nothing is delivered: `/_emulator/outbox` shows the email.',
    success: { status: 200, answer: 'TestSend' },
    refusals: { 400: 'Invalid request', 404: 'Template not found' },
  },
  'domains.create': {
    tag: 'Domains',
    summary: 'Create a domain',
    description:
      'The default of `tls` is not stated; here it is opportunistic. The name is kept in lower ' +
      'case, and is unique within the organization. Before the first verification ' +
      '`lastVerifiedAt` is the time of creation. The hosts in the DNS records are made up.',
    success: { status: 201, answer: 'DomainCreation' },
    refusals: { 400: 'Invalid domain format', 409: 'Domain already exists' },
  },
  'domains.verify': {
    tag: 'Domains',
    summary: 'Verify the DNS records of a domain',
    description:
      'How and when a verification ends is not shown; here it goes on until ' +
      '`/_emulator/settle-domain` ends it. A `domain_id` of other characters than letters, digits ' +
      'and . _ ~ - is a 400.',
    success: { status: 200, answer: 'DomainVerification' },
    refusals: { 400: 'Invalid domain format', 404: 'Domain not found' },
  },
  'domains.nameservers': {
    tag: 'Domains',
    summary: 'Read the nameservers of a domain',
    description:
      'Needs a session cookie, whose name ends in .session_token. A request with an API key alone ' +
      'is a 403, one with neither a 401. The nameservers are made up.',
    success: { status: 200, answer: 'DomainNameservers' },
    refusals: { 404: 'DNS records not found' },
  },
  'domains.list': {
    tag: 'Domains',
    summary: 'List domains',
    description:
      'The parameters and the answer of this operation are not shown by the specification. They ' +
      'are made here as those of the other lists: newest first, 20 by default.',
    success: { status: 200, answer: 'DomainList' },
    refusals: { 400: 'Invalid request' },
  },
  'keys.enable': {
    tag: 'API keys',
    summary: 'Enable an API key',
    description:
      'The errors of this operation are not shown. Here an unknown and a revoked key are a 404, ' +
      'and a disabled key cannot enable itself. Enabling an enabled key changes nothing.',
    success: { status: 200, answer: 'ApiKey' },
    refusals: { 404: 'API key not found' },
  },
};
