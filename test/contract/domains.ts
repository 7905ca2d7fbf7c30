import { expect } from 'vitest';
import {
  count,
  envelope,
  flag,
  list,
  oneOf,
  refusal,
  text,
  time,
  type Sections,
} from './sentence.ts';
import { guest, member } from './world.ts';

const record = {
  id: text,
  recordType: text,
  recordTypeName: text,
  domain: text,
  name: text,
  value: text,
  ttl: text,
  priority: expect.any(Number),
  status: text,
  createdAt: time,
  updatedAt: time,
};
/** Domain ("Resources and their fields"), but for `event`. */
const domain = {
  object: 'domain',
  id: text,
  domain: text,
  status: text,
  userVerifiedDomain: flag,
  systemVerified: flag,
  customReturnPath: text,
  trackingSubdomain: text,
  isClickTrackingEnabled: flag,
  isOpenTrackingEnabled: flag,
  tls: oneOf('opportunistic', 'enforced'),
  isTrackingDomain: flag,
  isSendingEmailEnabled: flag,
  isReceivingEmailEnabled: flag,
  verificationFailedReason: text,
  dnsRecords: list,
  lastVerifiedAt: time,
  createdAt: time,
  updatedAt: time,
};
const create = 'POST /api/domain/v1/create';
const name = 'news.example.com';
const label = (length: number) => 'x'.repeat(length);
/** Labels of 63 and their dots, cut to a length. */
const dotted = (length: number) => `${label(63)}.`.repeat(4).slice(0, length);
const nameservers = 'GET /api/domain/v1/nameservers/dom_a';
const asMember = { 'x-api-key': undefined, cookie: member };
const asGuest = { 'x-api-key': undefined, cookie: guest };

export const domains: Sections = {
  'Domains, create': [
    {
      says: 'creates a domain, 201: Domain with an event, pending, the defaults',
      ask: create,
      body: { domain: name },
      status: 201,
      answer: {
        ...domain,
        domain: name,
        status: 'pending',
        customReturnPath: 'inbound',
        trackingSubdomain: 'tracking',
        isClickTrackingEnabled: false,
        isOpenTrackingEnabled: false,
        isSendingEmailEnabled: true,
        isReceivingEmailEnabled: true,
        event: text,
      },
    },
    {
      says: 'DNS records are returned in the response',
      ask: create,
      body: { domain: name },
      status: 201,
      has: {
        dnsRecords: expect.toSatisfy(
          (records) => Array.isArray(records) && records.length > 0,
          'some DNS records',
        ),
      },
    },
    {
      says: 'dnsRecords: array of DNS record, of which one is MX and active',
      ask: create,
      body: { domain: name },
      status: 201,
      has: {
        dnsRecords: expect.arrayContaining([{ ...record, recordType: 'MX', status: 'active' }]),
      },
    },
    {
      says: 'every field of the table',
      ask: create,
      body: {
        domain: name,
        custom_return_path: 'bounce.in',
        tracking: 't',
        click_tracking: true,
        open_tracking: true,
        tls: 'enforced',
        sending_email: false,
        receiving_email: false,
      },
      status: 201,
      has: {
        customReturnPath: 'bounce.in',
        trackingSubdomain: 't',
        isClickTrackingEnabled: true,
        isOpenTrackingEnabled: true,
        tls: 'enforced',
        isSendingEmailEnabled: false,
        isReceivingEmailEnabled: false,
      },
    },
    ...['a.de', 'x-y.example.co', `${label(63)}.com`, '1.2.com', `${dotted(251)}.com`].map(
      (domain) => ({
        says: `domain: ${domain.slice(0, 30)} of length ${domain.length}`,
        ask: create,
        body: { domain },
        status: 201,
        has: { domain },
      }),
    ),
    ...[
      undefined,
      'a.b',
      'com',
      'example.c',
      'example.c0m',
      'example.123',
      '-a.example.com',
      'a-.example.com',
      'a..com',
      '.example.com',
      'example.com.',
      'a_b.com',
      'exa mple.com',
      'bücher.de',
      `${label(64)}.com`,
      `${dotted(252)}.com`,
      7,
    ].map((domain) => ({
      says: `domain: not ${String(domain).slice(0, 30)} of length ${String(domain).length}`,
      ask: create,
      body: { domain },
      status: 400,
      has: { message: text },
    })),
    ...['custom_return_path', 'tracking'].flatMap((field) => [
      ...['a', 'a.b-c.1', label(63), dotted(255)].map((value) => ({
        says: `${field}: ${value.slice(0, 30)} of length ${value.length}`,
        ask: create,
        body: { domain: name, [field]: value },
        status: 201,
        has: { domain: name },
      })),
      ...['', '-a', 'a-', 'a..b', '.a', 'a.', 'a_b', 'a b', label(64), `${dotted(255)}x`, 7].map(
        (value) => ({
          says: `${field}: not ${String(value).slice(0, 30)} of length ${String(value).length}`,
          ask: create,
          body: { domain: name, [field]: value },
          status: 400,
          has: { message: text },
        }),
      ),
    ]),
    ...[
      { tls: 'strict' },
      { click_tracking: 'yes' },
      { open_tracking: 1 },
      { sending_email: 'no' },
      { receiving_email: 0 },
    ].map((field) => ({
      says: `400 for ${JSON.stringify(field)}`,
      ask: create,
      body: { domain: name, ...field },
      status: 400,
      answer: refusal(),
    })),
    {
      says: '409: the same domain exists',
      first: [{ ask: create, body: { domain: name } }],
      ask: create,
      body: { domain: name },
      status: 409,
      answer: refusal(),
    },
  ],
  'Domains, verify': [
    {
      says: '200: id and status, verifying; no event',
      first: [{ ask: create, body: { domain: name }, keep: { domain: 'id' } }],
      ask: 'POST /api/domain/v1/verify/{domain}',
      status: 200,
      answer: { id: '{domain}', status: 'verifying' },
    },
    {
      says: '404: Domain not found',
      ask: 'POST /api/domain/v1/verify/dom_that_never_was',
      status: 404,
      has: { message: 'Domain not found' },
    },
    {
      says: '400: Invalid domain format',
      ask: 'POST /api/domain/v1/verify/no%20domain',
      status: 400,
      has: { message: 'Invalid domain format' },
    },
    {
      says: '404 for a domain of another organization',
      ask: 'POST /api/domain/v1/verify/dom_b',
      status: 404,
      has: { message: 'Domain not found' },
    },
    {
      says: '403: Unauthorized access, with an envelope of some kind',
      ask: 'POST /api/domain/v1/verify/dom_a',
      headers: { 'x-api-key': 'key_live_read' },
      status: 403,
      has: { message: 'Unauthorized access' },
    },
  ],
  'Domains, nameservers': [
    {
      says: 'object, domainId, domain, nameservers, dnsProvider and event, for a session',
      ask: nameservers,
      headers: asMember,
      status: 200,
      needs: 'world',
      answer: {
        object: 'domain_nameservers',
        domainId: 'dom_a',
        domain: 'a.example.com',
        nameservers: expect.arrayContaining([text]),
        dnsProvider: text,
        event: text,
      },
    },
    {
      says: 'API keys are not accepted',
      ask: nameservers,
      status: [401, 403],
      needs: 'world',
      answer: envelope,
    },
    {
      says: 'neither session nor key',
      ask: nameservers,
      headers: { 'x-api-key': undefined },
      status: 401,
      needs: 'world',
      answer: envelope,
    },
    {
      says: '403: User is not a member of an organization',
      ask: nameservers,
      headers: asGuest,
      status: 403,
      needs: 'world',
      has: { message: 'User is not a member of an organization' },
    },
    ...['dom_that_never_was', 'dom_b'].map((id) => ({
      says: `404: DNS records not found, of ${id}`,
      ask: `GET /api/domain/v1/nameservers/${id}`,
      headers: asMember,
      status: 404,
      needs: 'world' as const,
      has: { message: 'DNS records not found' },
    })),
  ],
  'Domains, list': [
    {
      says: 'an API key is enough; the root fields of every list',
      ask: 'GET /api/domain/v1/list',
      status: 200,
      has: { total: count, page: 1, limit: count },
    },
    {
      says: 'the domains of the organization alone',
      ask: 'GET /api/domain/v1/list',
      needs: 'world',
      status: 200,
      has: { domains: [{ ...domain, domain: 'a.example.com' }], total: 1, limit: 20 },
    },
    ...['page=0', 'limit=0', 'limit=101'].map((query) => ({
      says: `pagination: page at least 1, limit 1 to 100, not ${query}`,
      ask: `GET /api/domain/v1/list?${query}`,
      status: 400,
      has: { message: text },
    })),
  ],
};
