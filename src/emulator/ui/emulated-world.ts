import type { About } from '../shared/api-answer.ts';
import { type KeyWithSecret, showKey } from './settings-actions.ts';
import type { Route } from '../limits/route-limits.ts';
import type { Accounts } from '../store/accounts.ts';
import type { Channel, TestSend, UserRow } from '../shared/row-types.ts';
import type { Organization } from '../store/organization.ts';
import type { Recent } from '../store/recent-entries.ts';
import {
  type ContactView,
  type DomainView,
  type TemplateView,
  viewContact,
  viewDomain,
  viewTemplate,
} from '../api/answer-views.ts';

/** One request to the API, with whom it was about as far as that is known. */
export interface LoggedRequest extends About {
  at: string;
  method: string;
  /** With the query. */
  path: string;
  /** Null when no operation has this method and path. */
  route: Route | null;
  status: number;
  /** The fault that was played, by name; a status of 0 is no answer at all. */
  fault?: string;
}

/** Everything there is, to be looked at; records newest first, what happened oldest first. */
export interface World {
  channels(): Channel[];
  contacts(): ContactView[];
  /** By id or email. */
  contact(who: string): ContactView | undefined;
  templates(): TemplateView[];
  domains(): DomainView[];
  keys(): KeyWithSecret[];
  /** The organization's own users, with their sessions. */
  users(): UserRow[];
  /** All of them, or the last `count`. */
  outbox(count?: number): TestSend[];
  /** Of all organizations; all of them, or the last `count`. */
  requests(count?: number): LoggedRequest[];
  /** All of it, with at most the newest `count` of each kind of record, of sends and requests. */
  state(count: number): object;
}

export function createWorld(
  organization: Organization,
  { accounts, requests }: { accounts: Accounts; requests: Recent<LoggedRequest> },
): World {
  const { channels, contacts, templates, domains, keys, outbox } = organization;
  const listed = contacts.listed();
  const show = {
    contacts: (count: number) => listed.page(1, count).map(viewContact),
    templates: (count: number) =>
      templates
        .listed()
        .page(1, count)
        .map((row) => viewTemplate(organization, row)),
    domains: (count: number) => domains.listed().page(1, count).map(viewDomain),
    keys: () => Array.from(keys.rows(), showKey),
    users: () =>
      [...accounts.users.rows()].filter((user) => user.organizationId === organization.id),
  };

  return {
    channels: () => [...channels.values()],
    contacts: () => show.contacts(listed.size),
    contact(who) {
      const row = contacts.byId(who) ?? contacts.byEmail(who);
      return row && viewContact(row);
    },
    templates: () => show.templates(templates.listed().size),
    domains: () => show.domains(domains.listed().size),
    keys: show.keys,
    users: show.users,
    outbox: outbox.read,
    requests: requests.read,
    state: (count) => ({
      organizationId: organization.id,
      name: organization.name,
      channels: [...channels.values()],
      totals: {
        contacts: listed.size,
        subscribed: contacts.listed('subscribed').size,
        unsubscribed: contacts.listed('unsubscribed').size,
        blocked: contacts.listed('blocked').size,
        templates: templates.listed().size,
        domains: domains.listed().size,
      },
      contacts: show.contacts(count),
      templates: show.templates(count),
      domains: show.domains(count),
      keys: show.keys(),
      users: show.users(),
      outbox: outbox.read(count),
      requests: requests.read(count),
    }),
  };
}
