import type { ContactListQuery } from '../../platform/request-schemas.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { ContactRow } from '../shared/row-types.ts';
import type { Organization } from '../store/organization.ts';
import { viewContact } from './answer-views.ts';
import type { Call } from './operation.ts';

/** Answers GET /api/contacts/list: newest first; the three counters ignore search and status. */
export function listContacts(
  organization: Organization,
  { query }: Call<ContactListQuery, undefined>,
): ApiOutcome {
  const { contacts } = organization;
  const { page = 1, limit = 100 } = query;
  const { total, rows } = findContacts(organization, { ...query, page, limit });
  return {
    status: 200,
    body: {
      object: 'contact',
      contacts: rows.map(viewContact),
      total,
      page,
      limit,
      totalContacts: contacts.listed().size,
      subscribedContacts: contacts.listed('subscribed').size,
      unsubscribedContacts: contacts.listed('unsubscribed').size,
      event: 'contact.list',
    },
  };
}

/** Answers GET /api/contacts/retrieve/{contact_id}. */
export function retrieveContact(
  { contacts }: Organization,
  { id }: Call<undefined, undefined>,
): ApiOutcome {
  const contact = contacts.byId(id);
  if (contact === undefined) return contactNotFound(id);
  return { status: 200, body: viewContact(contact), about: { contactId: id, email: contact.key } };
}

/** Answers DELETE /api/contacts/{contact_id}: the contact and all that was known of it is gone. */
export function deleteContact(
  { contacts }: Organization,
  { id }: Call<undefined, undefined>,
): ApiOutcome {
  const contact = contacts.byId(id);
  if (contact === undefined) return contactNotFound(id);
  contacts.remove(contact);
  return {
    status: 200,
    body: { success: true, object: 'contact', id, event: 'contact.delete' },
    about: { contactId: id, email: contact.key },
  };
}

/** Returns one page of the contacts that match, and how many match; a search reads every row. */
function findContacts(
  { contacts, behaviour }: Organization,
  { page, limit, search = '', status }: ContactListQuery & { page: number; limit: number },
): { total: number; rows: ContactRow[] } {
  const listed = contacts.listed(status);
  const { finds, orders = (found: ContactRow[]) => found } = behaviour;
  if (search === '' && !behaviour.orders)
    return { total: listed.size, rows: listed.page(page, limit) };
  const needle = search.toLowerCase();
  const matches: ContactRow[] = [];
  for (const row of listed) if (finds(row.key, needle)) matches.push(row);
  return { total: matches.length, rows: orders(matches).slice((page - 1) * limit, page * limit) };
}

/** Returns the refusal for an unknown contact. */
export function contactNotFound(id: string): ApiOutcome {
  const refusal = refuse(404, 'Contact not found', {
    why: `The organization has no contact with the id "${id}".`,
    fix: 'List the contacts to find its id; it may have been deleted.',
  });
  return { ...refusal, about: { contactId: id } };
}
