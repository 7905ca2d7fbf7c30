import { Invalid } from '../model/errors.ts';
import type { Subscription } from '../platform/request.ts';
import type { Channel, NewContact } from './store/contact.ts';
import { findChannel, type Organization } from './store/organization.ts';
import type { NewTemplate } from './store/templates.ts';

/**
 * Puts records into the world as it was before the story begins, without any request. An id that
 * is taken and an unknown channel throw Invalid.
 */
export interface Seed {
  channel(channel: Channel): void;
  /** Answers the id. The email is kept as given, even beside another that differs only in case. */
  contact(contact: SeededContact): string;
  /** Answers the id. */
  template(template: NewTemplate): string;
}

interface SeededContact extends NewContact {
  /** Subscriptions by channel id. */
  channels?: Record<string, Subscription> | undefined;
}

export function createSeed(organization: Organization): Seed {
  const { channels, contacts, templates, now } = organization;
  return {
    channel(channel) {
      const { id } = channel;
      refuseTaken('channel', id, channels.has(id));
      channels.set(id, { ...channel });
    },
    contact({ channels: wanted = {}, ...contact }) {
      const { id } = contact;
      if (id !== undefined) refuseTaken('contact', id, contacts.byId(id) !== undefined);
      const memberships = Object.entries(wanted).map(([channelId, subscription]) => ({
        channel: findChannel(organization, channelId),
        subscription,
      }));
      const row = contacts.add(contact, now());
      for (const { channel, subscription } of memberships) {
        contacts.setMembership(row, channel, subscription);
      }
      return row.id;
    },
    template(template) {
      const { id } = template;
      if (id !== undefined) refuseTaken('template', id, templates.byId(id) !== undefined);
      return templates.add(template, now()).id;
    },
  };
}

function refuseTaken(what: string, id: string, taken: boolean): void {
  if (taken) throw new Invalid(`${what} "${id}" exists already: give every ${what} its own id`);
}
