import { Invalid } from '../../domain/errors.ts';
import type { Subscription } from '../../platform/request-schemas.ts';
import type { Accounts, NewUser } from '../store/accounts.ts';
import type { Channel } from '../shared/row-types.ts';
import type { NewContact } from '../store/contacts.ts';
import type { NewDomain } from '../store/domains.ts';
import type { NewKey } from '../store/api-keys.ts';
import { findChannel, type Organization } from '../store/organization.ts';
import type { NewTemplate } from '../store/templates.ts';
import type { SeedFile, SeedOrganization } from './seed-file.ts';

/** A contact with its subscriptions. */
export interface SeededContact extends NewContact {
  /** The subscriptions by channel id. */
  channels?: Record<string, Subscription> | undefined;
}

/** Creates the functions that add records to an organization. */
export function createSeed(accounts: Accounts, organization: Organization) {
  const { channels, contacts, templates, domains, keys, now } = organization;
  return {
    channel(channel: Channel): void {
      const { id } = channel;
      refuseTaken('channel', id, channels.has(id));
      organization.addChannel({ ...channel });
    },
    /**
     * Adds a contact and returns its id. The email is stored as given, even if it differs from
     * another one only in case.
     */
    contact({ channels: wanted = {}, ...contact }: SeededContact): string {
      const { id } = contact;
      refuseTaken('contact', id, id !== undefined && contacts.byId(id) !== undefined);
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
    /** Adds a template and returns its id. */
    template(template: NewTemplate): string {
      const { id } = template;
      refuseTaken('template', id, id !== undefined && templates.byId(id) !== undefined);
      return templates.add(template, now()).id;
    },
    /** Adds a domain and returns its id. */
    domain(domain: NewDomain): string {
      const { id, domain: name } = domain;
      refuseTaken('domain', id, id !== undefined && domains.byId(id) !== undefined);
      refuseTaken('domain', name, domains.byName(name) !== undefined);
      return domains.add(domain, now()).id;
    },
    /** Adds a key and returns its secret, for the x-api-key header. */
    key(key: NewKey): string {
      const { id, secret } = key;
      refuseTaken('API key', id, id !== undefined && keys.byId(id) !== undefined);
      refuseTaken('API key', secret, secret !== undefined && accounts.byKey(secret) !== undefined);
      return keys.add(key, now()).secret;
    },
    /** Adds a member and returns the member's session, for the cookie. */
    user: (user: Omit<NewUser, 'organizationId'>) =>
      seedUser(accounts, { ...user, organizationId: organization.id }),
  };
}

/**
 * Adds records to one organization before requests arrive. Throws Invalid for an unknown channel,
 * and if a unique value (an id, a key, a session, a domain name) is already taken.
 */
export type Seed = ReturnType<typeof createSeed>;

/** Adds a user, with or without an organization, and returns the user's session. */
export function seedUser({ users }: Accounts, user: NewUser): string {
  const { id, session } = user;
  refuseTaken('user', id, id !== undefined && users.byId(id) !== undefined);
  refuseTaken('session', session, session !== undefined && users.bySession(session) !== undefined);
  return users.add(user).session;
}

function refuseTaken(what: string, name: string | undefined, taken: boolean): void {
  if (taken) throw new Invalid(`${what} "${name}" exists already: give every ${what} its own`);
}

/** The contents of the initial world, used if no earlier process has stored one. */
interface Beginning {
  /** Added to the first organization's keys from the seed file. */
  apiKey: string | undefined;
  /** Used if the first organization gets no other key. */
  drawnKey: string;
  /** Added to the first organization's channels from the seed file. */
  channels: readonly Channel[];
  seedFile: SeedFile | undefined;
}

/** Creates the organizations and their records. Throws Invalid with a list of all mistakes. */
export function arrange(accounts: Accounts, beginning: Beginning): void {
  const { apiKey, drawnKey, channels, seedFile } = beginning;
  const wrong: string[] = [];
  const trying: Trying = (where, make) => {
    try {
      make();
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      wrong.push(`${where()}${error.message}`);
    }
  };

  for (const [index, wanted] of (seedFile?.organizations ?? [{}]).entries()) {
    const where = (path: PropertyKey[]) => `${seedFile?.where(index, path)}  `;
    trying(
      () => where([]),
      () => {
        const organization = accounts.addOrganization(wanted);
        const seed = createSeed(accounts, organization);
        if (index === 0) {
          for (const channel of channels) trying(nowhere, () => seed.channel(channel));
          if (apiKey !== undefined) trying(nowhere, () => seed.key({ secret: apiKey }));
        }
        plant(seed, wanted, (path, make) => trying(() => where(path), make));
        const isKeyless = organization.keys.rows().next().done === true;
        if (isKeyless) seed.key(index === 0 ? { secret: drawnKey } : {});
      },
    );
  }
  for (const [index, guest] of (seedFile?.guests ?? [GUEST]).entries()) {
    const where = () => `${seedFile?.where(undefined, ['guests', index])}  `;
    trying(where, () => seedUser(accounts, guest));
  }
  if (wrong.length > 0) throw new Invalid(wrong.map((reason) => ({ code: 'invalid', reason })));
}

/** A user who can sign in but belongs to no organization. */
const GUEST = { id: 'user_guest', name: 'Guest', email: 'guest@nowhere.example' };

/** Creates one record. If that fails, notes the reason and the position in the seed file. */
type Trying = (where: () => string, make: () => void) => void;

function nowhere(): string {
  return '';
}

function plant(
  seed: Seed,
  wanted: SeedOrganization,
  at: (path: [kind: string, index: number], make: () => void) => void,
): void {
  const all = <T>(kind: string, records: readonly T[] | undefined, make: (record: T) => void) => {
    for (const [index, record] of (records ?? []).entries()) at([kind, index], () => make(record));
  };
  all('channels', wanted.channels, seed.channel);
  all('keys', wanted.keys, ({ key, ...rest }) => seed.key({ ...rest, secret: key }));
  all('users', wanted.users, seed.user);
  all('people', wanted.people, seed.contact);
  all('templates', wanted.templates, seed.template);
  all('domains', wanted.domains, seed.domain);
}
