import { Invalid } from '../../model/errors.ts';
import type { Ids } from '../random.ts';
import type { Channel } from './contact.ts';
import { createContacts, type Contacts } from './contacts.ts';
import { specified, type Manner } from './manner.ts';
import { remember, type Recent } from './recent.ts';
import { createTemplates, type Templates } from './templates.ts';

/** A test email that was sent: kept to be read, delivered to nobody. */
export interface TestSend {
  at: string;
  templateId: string;
  to: string;
  fromEmail: string;
  subject: string;
  /** Null when the request brought none; the template's own content is in `content`. */
  html: string | null;
  content: readonly unknown[];
}

/** Everything one organization has on the platform. */
export interface Organization {
  readonly id: string;
  /** By id. */
  readonly channels: Map<string, Channel>;
  readonly contacts: Contacts;
  readonly templates: Templates;
  readonly outbox: Recent<TestSend>;
  readonly manner: Manner;
  /** The platform's time, in milliseconds since the epoch. */
  now(): number;
}

export function createOrganization(
  ids: Ids,
  now: () => number,
  manner: Partial<Manner> = {},
): Organization {
  return {
    id: ids('org'),
    channels: new Map(),
    contacts: createContacts(ids),
    templates: createTemplates(ids),
    outbox: remember(1000),
    manner: { ...specified, ...manner },
    now,
  };
}

/** The channel of this id; throws Invalid when there is none. */
export function findChannel({ channels }: Organization, id: string): Channel {
  const channel = channels.get(id);
  if (channel !== undefined) return channel;
  throw new Invalid(`no channel "${id}": use one of ${[...channels.keys()].join(', ')}`);
}
