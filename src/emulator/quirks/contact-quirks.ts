import type { Organization } from '../store/organization.ts';
import { isRecord, type Quirk, type Reply, withBody, withStatus } from './quirk.ts';
import type { ContactRow } from '../shared/row-types.ts';

type Contact = Record<string, unknown>;

/** Applies `change` to every contact in a reply, wherever it occurs. */
function eachContact(reply: Reply, change: (contact: Contact) => Contact): Reply {
  const { route, outcome } = reply;
  const { body, status } = outcome;
  if (status >= 300 || !isRecord(body)) return reply;
  if (route === 'contacts.retrieve') return withBody(reply, change(body));
  const { contacts, contact } = body;
  if (route === 'contacts.list' && Array.isArray(contacts)) {
    return withBody(reply, { ...body, contacts: contacts.filter(isRecord).map(change) });
  }
  if (route === 'contacts.enrol' && isRecord(contact)) {
    return withBody(reply, { ...body, contact: change(contact) });
  }
  return reply;
}

/**
 * Shows every channel of a contact. A channel without a row of its own shows its default, or
 * `fallback` if it has none.
 */
export function allChannels(fallback: string): Quirk {
  const shown = (own: unknown, { channels }: Organization): object[] => {
    const rows = Array.isArray(own) ? own.filter(isRecord) : [];
    return [...channels.values()].map(({ id, name, subscription = fallback }) => {
      const row = rows.find((one) => one['id'] === id);
      return row ?? { id, name, subscription };
    });
  };
  return {
    turns(reply) {
      const { organization } = reply;
      if (!organization) return reply;
      return eachContact(reply, (contact) => ({
        ...contact,
        channels: shown(contact['channels'], organization),
      }));
    },
  };
}

/** Leaves the groups empty in the list of contacts. */
export function listGroupsEmpty(): Quirk {
  return {
    turns: (reply) =>
      reply.route === 'contacts.list'
        ? eachContact(reply, (contact) => ({ ...contact, groups: [] }))
        : reply,
  };
}

/** Shows unknown names as null. */
export function nullNames(): Quirk {
  const orNull = (name: unknown) => (name === '' ? null : name);
  return {
    turns: (reply) =>
      eachContact(reply, (contact) => ({
        ...contact,
        firstName: orNull(contact['firstName']),
        lastName: orNull(contact['lastName']),
      })),
  };
}

/** Responds to the deletion of an unknown contact with 200 and a message. */
export function deleteSoft404(): Quirk {
  return {
    turns: (reply) =>
      reply.route === 'contacts.delete' && reply.outcome.status === 404
        ? withBody(withStatus(reply, 200), { message: 'Contact not found' })
        : reply,
  };
}

/** Treats `%` (any text) and `_` (one character) in a search as wildcards. */
export function searchWildcards(): Quirk {
  const pattern = (search: string) => {
    const plain = search.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    return new RegExp(plain.replaceAll('%', '.*').replaceAll('_', '.'), 's');
  };
  return { behaviour: { finds: (key, search) => pattern(search).test(key) } };
}

/** Reverses the order of rows created in the same millisecond on every second listing. */
export function unsortedTies(): Quirk {
  let turned = false;
  const turn = (rows: ContactRow[]): ContactRow[] =>
    rows.toSorted((a, b) => b.createdAt - a.createdAt || a.serial - b.serial);
  return {
    restart: () => void (turned = false),
    behaviour: {
      orders(rows) {
        turned = !turned;
        return turned ? rows : turn(rows);
      },
    },
  };
}
