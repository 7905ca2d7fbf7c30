import { contact } from './contacts.ts';
import { refusal, text, type Sections, type Step } from './sentence.ts';

const enrol = 'POST /api/contacts/channel/ch_product';
const email = 'dora@example.org';
const dora: Step = { ask: enrol, body: { email, subscription: 'opt_in' } };

export const enrolment: Sections = {
  'Contacts, add to channel': [
    {
      says: 'creates the contact if it does not exist and enrolls it, 201',
      ask: enrol,
      body: { email, subscription: 'opt_in' },
      status: 201,
      answer: {
        contact: {
          ...contact,
          email,
          status: 'subscribed',
          channels: [{ id: 'ch_product', name: 'Product updates', subscription: 'opt_in' }],
          event: text,
        },
        subscriptionId: text,
        event: text,
      },
    },
    {
      says: 'the contact that is created is there from then on',
      first: [dora],
      ask: `GET /api/contacts/list?search=${email}`,
      status: 200,
      has: { total: 1, totalContacts: 4, contacts: [{ email }] },
    },
    {
      says: 'a contact given by contact_id',
      ask: enrol,
      body: { contact_id: 'con_ann', subscription: 'opt_in' },
      status: 201,
      has: { contact: { id: 'con_ann', event: text }, subscriptionId: text },
    },
    {
      says: 'a contact there is, given by its email',
      ask: enrol,
      body: { email: 'ann@example.org', subscription: 'opt_in' },
      status: 201,
      has: { contact: { id: 'con_ann' } },
    },
    {
      says: 'subscription: opt_out',
      ask: enrol,
      body: { email, subscription: 'opt_out' },
      status: 201,
      has: { contact: { channels: [{ id: 'ch_product', subscription: 'opt_out' }] } },
    },
    {
      says: 'subscription: not required',
      ask: enrol,
      body: { email },
      status: 201,
      has: { contact: { email } },
    },
    ...['yes', 'OPT_IN', true, 1].map((subscription) => ({
      says: `subscription: opt_in or opt_out, not ${JSON.stringify(subscription)}`,
      ask: enrol,
      body: { email, subscription },
      status: 400,
      answer: refusal(),
    })),
    ...['dora', 'dora@example', 'do ra@example.org', 'a@b@example.org', '@example.org', ''].map(
      (wrong) => ({
        says: `email: text of the form local@host.tld, not ${JSON.stringify(wrong)}`,
        ask: enrol,
        body: { email: wrong, subscription: 'opt_in' },
        status: 400,
        answer: refusal('Invalid email format'),
      }),
    ),
    ...['dora@example.', 'dora@.org', 'dora@exam ple.org'].map((wrong) => ({
      says: `email: no whitespace, a dot inside the part after @, not ${JSON.stringify(wrong)}`,
      ask: enrol,
      body: { email: wrong, subscription: 'opt_in' },
      status: 400,
      has: { message: 'Invalid email format' },
    })),
    ...[{ email: 7 }, { contact_id: 7 }, { email: null }].map((body) => ({
      says: `contact_id and email: strings, not ${JSON.stringify(body)}`,
      ask: enrol,
      body,
      status: 400,
      answer: refusal(),
    })),
    {
      says: '404: Channel subscription not found',
      ask: 'POST /api/contacts/channel/ch_that_never_was',
      body: { email, subscription: 'opt_in' },
      status: 404,
      answer: refusal('Channel subscription not found'),
    },
    {
      says: '404 for a contact_id that does not exist',
      ask: enrol,
      body: { contact_id: 'con_that_never_was', subscription: 'opt_in' },
      status: 404,
      answer: refusal(),
    },
    {
      says: 'a refused enrolment creates nobody',
      first: [{ ask: 'POST /api/contacts/channel/ch_that_never_was', body: { email } }],
      ask: `GET /api/contacts/list?search=${email}`,
      status: 200,
      has: { total: 0, contacts: [], totalContacts: 3 },
    },
    {
      says: '409: Contact is already subscribed to this channel',
      first: [dora],
      ask: enrol,
      body: { email, subscription: 'opt_in' },
      status: 409,
      answer: refusal('Contact is already subscribed to this channel'),
    },
    {
      says: 'membership in one channel says nothing of another',
      ask: enrol,
      body: { contact_id: 'con_ann', subscription: 'opt_out' },
      status: 201,
      has: {
        contact: {
          channels: [
            { id: 'ch_news', subscription: 'opt_in' },
            { id: 'ch_product', subscription: 'opt_out' },
          ],
        },
      },
    },
  ],
};
