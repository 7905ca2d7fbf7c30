import type { About } from './answer.ts';
import type { Route } from './limit/limits.ts';
import type { Channel } from './store/contact.ts';
import type { Organization, TestSend } from './store/organization.ts';
import type { Recent } from './store/recent.ts';
import { viewContact, viewTemplate, type ContactView, type TemplateView } from './view.ts';

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
  outbox(): TestSend[];
  requests(): LoggedRequest[];
  /** All of it, with at most the newest `count` of contacts, templates, sends and requests. */
  state(count: number): object;
}

export function createWorld(organization: Organization, requests: Recent<LoggedRequest>): World {
  const { channels, contacts, templates, outbox } = organization;
  const listed = contacts.listed();

  function newestContacts(count: number): ContactView[] {
    return listed.page(1, count).map(viewContact);
  }

  function newestTemplates(count: number): TemplateView[] {
    return templates
      .listed()
      .page(1, count)
      .map((row) => viewTemplate(organization, row));
  }

  return {
    channels: () => [...channels.values()],
    contacts: () => newestContacts(listed.size),
    contact(who) {
      const row = contacts.byId(who) ?? contacts.byEmail(who);
      return row && viewContact(row);
    },
    templates: () => newestTemplates(templates.listed().size),
    outbox: () => outbox.read(),
    requests: () => requests.read(),
    state: (count) => ({
      organizationId: organization.id,
      channels: [...channels.values()],
      totals: {
        contacts: listed.size,
        subscribed: contacts.listed('subscribed').size,
        unsubscribed: contacts.listed('unsubscribed').size,
        blocked: contacts.listed('blocked').size,
        templates: templates.listed().size,
      },
      contacts: newestContacts(count),
      templates: newestTemplates(count),
      outbox: outbox.read(count),
      requests: requests.read(count),
    }),
  };
}
