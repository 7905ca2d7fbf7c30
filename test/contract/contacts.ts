import { expect } from 'vitest';
import { count, list, oneOf, refusal, text, time, type Sections, type Step } from './sentence.ts';

/** Contact ("Resources and their fields"). */
export const contact = {
  object: 'contact',
  id: text,
  email: text,
  firstName: text,
  lastName: text,
  status: oneOf('subscribed', 'unsubscribed', 'blocked'),
  properties: expect.any(Object),
  groups: list,
  channels: list,
  suppressionReason: oneOf(null, 'spam'),
  suppressedAt: expect.toSatisfy((at) => at === null || !Number.isNaN(Date.parse(at))),
  createdAt: time,
  updatedAt: time,
};
const page = {
  object: 'contact',
  contacts: list,
  total: count,
  page: 1,
  limit: 100,
  totalContacts: count,
  subscribedContacts: count,
  unsubscribedContacts: count,
  event: text,
};
const someone: Step[] = [
  { ask: 'GET /api/contacts/list?limit=1', keep: { contact: 'contacts.0.id' } },
];
const listed = 'GET /api/contacts/list';

export const contacts: Sections = {
  'Contacts, list': [
    { says: 'lists contacts, all of these fields', ask: listed, status: 200, answer: page },
    {
      says: 'contacts: array of Contact',
      first: someone,
      ask: `${listed}?limit=1`,
      status: 200,
      has: { contacts: [contact] },
    },
    {
      says: 'groups: items of id and name; channels: of id, name and subscription',
      ask: `${listed}?search=ann@example.org`,
      needs: 'world',
      status: 200,
      has: {
        contacts: [
          {
            groups: [],
            channels: [{ id: 'ch_news', name: 'Newsletter', subscription: 'opt_in' }],
            properties: { city: 'Berlin' },
            suppressionReason: null,
            suppressedAt: null,
          },
        ],
      },
    },
    { says: 'page: default 1', ask: listed, status: 200, has: { page: 1 } },
    { says: 'limit: default 100', ask: listed, status: 200, has: { limit: 100 } },
    {
      says: 'page and limit as they were asked for',
      ask: `${listed}?page=2&limit=1`,
      status: 200,
      has: { page: 2, limit: 1 },
    },
    ...['0', '-1', 'x', '1.5'].map((page) => ({
      says: `page: number, min 1, not ${page}`,
      ask: `${listed}?page=${page}`,
      status: 400,
      has: { message: text },
    })),
    ...['0', '101', '-5', 'ten'].map((limit) => ({
      says: `limit: min 1, max 100, not ${limit}`,
      ask: `${listed}?limit=${limit}`,
      status: 400,
      has: { message: text },
    })),
    ...[1, 100].map((limit) => ({
      says: `limit: ${limit} is within the bounds`,
      ask: `${listed}?limit=${limit}`,
      status: 200,
      has: { limit },
    })),
    {
      says: 'search by email',
      ask: `${listed}?search=bob%40example.org`,
      needs: 'world',
      status: 200,
      has: { contacts: [{ email: 'bob@example.org' }], total: 1 },
    },
    ...['subscribed', 'unsubscribed', 'blocked'].map((status) => ({
      says: `status: ${status}`,
      ask: `${listed}?status=${status}&limit=1`,
      needs: 'world' as const,
      status: 200,
      has: { contacts: [{ status }], total: 1 },
    })),
    {
      says: 'status: nothing else',
      ask: `${listed}?status=gone`,
      status: 400,
      has: { message: text },
    },
    {
      says: 'total: contacts matching the query; the counters: of the organization',
      ask: `${listed}?status=blocked`,
      needs: 'world',
      status: 200,
      has: { total: 1, totalContacts: 3, subscribedContacts: 1, unsubscribedContacts: 1 },
    },
    {
      says: 'pages are offsets: the second page of one holds the second contact',
      ask: `${listed}?limit=1&page=3`,
      needs: 'world',
      first: [{ ask: `${listed}?limit=3`, keep: { third: 'contacts.2.id' } }],
      status: 200,
      has: { contacts: [{ id: '{third}' }], total: 3 },
    },
    {
      says: 'the path above, without /v1, is the operation path',
      ask: 'GET /api/contacts/v1/list',
      needs: 'world',
      status: 404,
      has: { message: 'Not found' },
    },
  ],
  'Contacts, retrieve': [
    {
      says: 'retrieves a contact, all of its fields, no event',
      first: someone,
      ask: 'GET /api/contacts/retrieve/{contact}',
      status: 200,
      answer: { ...contact, id: '{contact}' },
      lacks: ['event'],
    },
    {
      says: '404: Contact not found',
      ask: 'GET /api/contacts/retrieve/con_that_never_was',
      status: 404,
      has: { message: 'Contact not found' },
    },
  ],
  'Contacts, delete': [
    {
      says: 'success, object, id and the event contact.delete',
      ask: 'DELETE /api/contacts/con_ann',
      status: 200,
      answer: { success: true, object: 'contact', id: 'con_ann', event: 'contact.delete' },
    },
    {
      says: 'the contact is removed from the organization',
      first: [{ ask: 'DELETE /api/contacts/con_ann' }],
      ask: 'GET /api/contacts/retrieve/con_ann',
      status: 404,
      answer: refusal('Contact not found'),
    },
    {
      says: 'and counted no more',
      first: [{ ask: 'DELETE /api/contacts/con_ann' }],
      ask: listed,
      status: 200,
      has: { total: 2, totalContacts: 2, subscribedContacts: 0 },
    },
    {
      says: '404: Contact not found',
      ask: 'DELETE /api/contacts/con_that_never_was',
      status: 404,
      answer: refusal('Contact not found'),
    },
    {
      says: '404 for what is gone already',
      first: [{ ask: 'DELETE /api/contacts/con_ann' }],
      ask: 'DELETE /api/contacts/con_ann',
      status: 404,
      has: { message: 'Contact not found' },
    },
  ],
};
