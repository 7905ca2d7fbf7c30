import type { About } from '../shared/api-answer.ts';
import { showKey } from './dashboard.ts';
import type { Route } from '../limits/route-limits.ts';
import type { Accounts } from '../store/accounts.ts';
import type { Organization } from '../store/organization.ts';
import { type ContactView, viewContact, viewDomain, viewTemplate } from '../api/answers.ts';

/** A request to the API, and the contact or template that it concerned, if known. */
export interface LoggedRequest extends About {
  at: string;
  method: string;
  /** The path with the query. */
  path: string;
  /** The route; null if no operation has this method and path. */
  route: Route | null;
  status: number;
  /** The name of the fault that occurred. If the status is 0, there was no response. */
  fault?: string;
}

export function createWorld(
  organization: Organization,
  { accounts, requests }: { accounts: Accounts; requests: Recent<LoggedRequest> },
) {
  const { channels, contacts, templates, domains, keys, outbox } = organization;
  const listed = contacts.listed();
  const world = {
    channels: channels.rows,
    /** Each list holds all records, or the newest `count`. */
    contacts: (count = listed.size) => listed.page(1, count).map(viewContact),
    contact(who: string): ContactView | undefined {
      const row = contacts.byId(who) ?? contacts.byEmail(who);
      return row && viewContact(row);
    },
    templates(count = templates.listed().size) {
      const rows = templates.listed().page(1, count);
      return rows.map((row) => viewTemplate(organization, row));
    },
    domains: (count = domains.listed().size) => domains.listed().page(1, count).map(viewDomain),
    keys: () => keys.rows().map(showKey),
    users: () => accounts.users.rows().filter((user) => user.organizationId === organization.id),
    outbox: outbox.read,
    /** Returns the requests of all organizations, or the last `count` of them. */
    requests: requests.read,
  };
  return {
    ...world,
    /** Returns the whole state, with the newest `count` records, emails and requests each. */
    state: (count: number) => ({
      organizationId: organization.id,
      name: organization.name,
      channels: channels.rows(),
      totals: {
        contacts: listed.size,
        subscribed: contacts.listed('subscribed').size,
        unsubscribed: contacts.listed('unsubscribed').size,
        blocked: contacts.listed('blocked').size,
        templates: templates.listed().size,
        domains: domains.listed().size,
      },
      contacts: world.contacts(count),
      templates: world.templates(count),
      domains: world.domains(count),
      keys: world.keys(),
      users: world.users(),
      outbox: outbox.read(count),
      requests: requests.read(count),
    }),
  };
}

/** Shows the world. Records are listed newest first; requests and emails oldest first. */
export type World = ReturnType<typeof createWorld>;

/** Holds the most recent entries of a list. Older entries are dropped to limit memory use. */
export type Recent<T> = ReturnType<typeof remember<T>>;

/** Creates a list that remembers at least the last `keep` entries. */
export function remember<T>(keep: number) {
  const entries: T[] = [];
  return {
    add(entry: T): void {
      // Dropping half of the entries at a time makes an addition cheap on average.
      if (entries.length >= keep * 2) entries.splice(0, keep);
      entries.push(entry);
    },
    /** Returns all entries, or the last `count`, oldest first. */
    read: (count = entries.length): T[] => entries.slice(Math.max(0, entries.length - count)),
    clear: () => void entries.splice(0),
  };
}
