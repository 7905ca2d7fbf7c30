/**
 * Everything that one organization has on the platform, and how the platform treats its records
 * unless a quirk says otherwise; and at the end all organizations of a world, with its users.
 */
import { createHash } from 'node:crypto';
import { Invalid } from '../../domain/errors.ts';
import type { TemplateUpdateBody } from '../../platform/request-schemas.ts';
import { type Ids, createIds, startDraws } from '../shared/seeded-random.ts';
import type {
  Channel,
  ContactRow,
  DnsRecord,
  DomainRow,
  KeyRow,
  NewDomain,
  NewKey,
  NewTemplate,
  Rows,
  SendRow,
  TemplateFields,
  TemplateRow,
  TestSend,
  NewUser,
  UserRow,
} from '../shared/row-types.ts';
import { createContacts } from './contacts.ts';
import {
  type Shelf,
  type Storage,
  type StoredRow,
  createLookup,
  createTable,
  newestFirst,
} from './table.ts';
import type { Random } from '../../domain/clock.ts';

export type Organization = ReturnType<typeof createOrganization>;

/** The parts from which every organization is created. */
export interface Ground {
  ids: Ids;
  storage: Storage;
  now(): number;
  /** Overrides for behaviour that the specification leaves open. */
  behaviour: Partial<PlatformBehaviour>;
}

export function createOrganization({ id, name }: Rows['organization'], ground: Ground) {
  const { ids, storage, now } = ground;
  const behaviour: PlatformBehaviour = { ...specified, ...ground.behaviour };
  const touchedAt = () => (behaviour.touches ? now() : undefined);
  const tables = {
    channel: createTable(storage.shelf('channel', id)),
    key: createKeys(ids, storage.shelf('key', id), ownerOf(id)),
    contact: createContacts(ids, storage.shelf('contact', id), touchedAt),
    template: createTemplates(ids, storage.shelf('template', id)),
    domain: createDomains(ids, storage.shelf('domain', id)),
    send: createOutbox(storage.shelf('send', id)),
  };
  const { channel, key, contact, template, domain, send } = tables;
  const putting: { [Kind in keyof typeof tables]: { put(row: Rows[Kind]): void } } = tables;

  return {
    id,
    name,
    channels: channel,
    keys: key,
    contacts: contact,
    templates: template,
    domains: domain,
    outbox: send,
    behaviour,
    now,
    *rows(): Generator<StoredRow> {
      const organization = id;
      for (const row of channel.rows()) yield { kind: 'channel', organization, row };
      for (const row of key.rows()) yield { kind: 'key', organization, row };
      for (const row of contact.rows()) yield { kind: 'contact', organization, row };
      for (const row of template.rows()) yield { kind: 'template', organization, row };
      for (const row of domain.rows()) yield { kind: 'domain', organization, row };
      for (const row of send.rows()) yield { kind: 'send', organization, row };
    },
    put<Kind extends keyof typeof tables>({ kind, row }: StoredRow<Kind>): void {
      putting[kind].put(row);
    },
    clear(): void {
      for (const table of Object.values(tables)) table.clear();
    },
  };
}

/** Returns the user who represents the organization's own staff. */
export function ownerOf(organizationId: string): KeyRow['createdBy'] {
  const email = `owner@${organizationId}.example`;
  return { id: `user_of_${organizationId}`, name: 'Owner', email };
}

/** Returns the channel with this id. Throws Invalid if it does not exist. */
export function findChannel({ channels }: Organization, id: string): Channel {
  const channel = channels.byId(id);
  if (channel !== undefined) return channel;
  const known = channels.rows().map((one) => one.id);
  throw new Invalid(`no channel "${id}": use one of ${known.join(', ')}`);
}

/** Returns the contact to which an enrolment by lower-case `email` refers, if there is one. */
export function findByEmail(
  { contacts, behaviour }: Organization,
  email: string,
): ContactRow | undefined {
  return contacts.byEmail(email, behaviour.keepsCase);
}

/** Defines how the platform treats records where the specification leaves it open. */
export interface PlatformBehaviour {
  /** Returns whether a search matches a contact's key. Both are in lower case. */
  finds(key: string, search: string): boolean;
  /** Whether an email keeps its case as entered, and an enrolment finds only the exact spelling. */
  keepsCase: boolean;
  /** Whether a change to a subscription updates the contact's `updatedAt`. */
  touches: boolean;
  /** How many templates a list shows unless it is asked for another number. */
  templatesListed: number;
  /** Reorders the rows of a listing, which arrive newest first. */
  orders?: ((rows: ContactRow[]) => ContactRow[]) | undefined;
}

/** The behaviour of the emulator unless a quirk overrides it. */
const specified: PlatformBehaviour = {
  finds: (key, search) => key.includes(search),
  keepsCase: false,
  touches: false,
  templatesListed: 20,
};

const PREFIX = 'key_live';

function createKeys(ids: Ids, shelf: Shelf<KeyRow>, createdBy: KeyRow['createdBy']) {
  const bySecret = createLookup<KeyRow>(({ secret }) => secret);
  const table = createTable(shelf, [bySecret]);
  return {
    ...table,
    add({ id = ids('key'), secret = ids(PREFIX), ...key }: NewKey, now: number): KeyRow {
      return table.insert({
        id,
        secret,
        name: key.name ?? 'API key',
        enabled: key.enabled ?? true,
        revoked: key.revoked ?? false,
        requestCount: 0,
        permissions: key.permissions ?? 'read,write',
        createdBy,
        createdAt: now,
        updatedAt: now,
      });
    },
    bySecret: bySecret.find,
    /** Generates a new secret for the key. The old secret becomes unknown immediately. */
    rotate(row: KeyRow, now: number): void {
      bySecret.remove(row);
      table.change(row, { secret: ids(PREFIX), updatedAt: now });
      bySecret.add(row);
    },
  };
}

const emptyTemplate: TemplateFields = {
  name: '',
  description: '',
  subject: '',
  fromEmail: '',
  replyTo: '',
  previewText: '',
  content: [],
  variables: [],
  status: 'draft',
};

function createTemplates(ids: Ids, shelf: Shelf<TemplateRow>) {
  const all = newestFirst<TemplateRow>();
  const table = createTable(shelf, [all]);
  const given = (fields: TemplateUpdateBody): TemplateUpdateBody =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return {
    ...table,
    listed: () => all,
    add({ id = ids('tpl'), createdAt, updatedAt, ...fields }: NewTemplate, now: number) {
      const times = { createdAt: createdAt ?? now, updatedAt: updatedAt ?? createdAt ?? now };
      const row = { ...emptyTemplate, id, serial: all.nextSerial(), ...times };
      return table.insert(Object.assign(row, given(fields)));
    },
    change: (row: TemplateRow, fields: TemplateUpdateBody, now: number) =>
      table.change(row, { ...given(fields), updatedAt: now }),
  };
}

function createDomains(ids: Ids, shelf: Shelf<DomainRow>) {
  const all = newestFirst<DomainRow>();
  const byName = createLookup<DomainRow>(({ domain }) => domain);
  const table = createTable(shelf, [all, byName]);
  return {
    ...table,
    listed: () => all,
    add(domain: NewDomain, now: number): DomainRow {
      const id = domain.id ?? ids('dom');
      const createdAt = domain.createdAt ?? now;
      const isActive = domain.status === 'active';
      const settings = {
        domain: domain.domain.toLowerCase(),
        customReturnPath: domain.custom_return_path ?? 'inbound',
        trackingSubdomain: domain.tracking ?? 'tracking',
        isClickTrackingEnabled: domain.click_tracking ?? false,
        isOpenTrackingEnabled: domain.open_tracking ?? false,
        tls: domain.tls ?? 'opportunistic',
        isSendingEmailEnabled: domain.sending_email ?? true,
        isReceivingEmailEnabled: domain.receiving_email ?? true,
      };
      return table.insert({
        id,
        serial: all.nextSerial(),
        ...settings,
        status: domain.status ?? 'pending',
        userVerifiedDomain: isActive,
        systemVerified: isActive,
        verificationFailedReason: '',
        dnsRecords: createRecords(settings, ids),
        lastVerifiedAt: createdAt,
        createdAt,
        updatedAt: createdAt,
      });
    },
    byName: (domain: string) => byName.find(domain.toLowerCase()),
  };
}

const HOST = 'mail-platform.example';

/** Returns the DNS records that a domain needs. Hosts and DKIM key are made up: no mail is sent. */
function createRecords(
  settings: Pick<DomainRow, 'domain' | 'customReturnPath' | 'trackingSubdomain'> &
    Pick<DomainRow, 'isSendingEmailEnabled' | 'isReceivingEmailEnabled'>,
  ids: Ids,
): DnsRecord[] {
  const { domain, customReturnPath: bounces, trackingSubdomain: tracking } = settings;
  const { isSendingEmailEnabled: sends, isReceivingEmailEnabled: receives } = settings;
  const halves = ['a', 'b'].map((half) =>
    createHash('sha512').update(`${half}:${domain}`).digest('base64').replaceAll('=', ''),
  );
  const key = `MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ${halves.join('')}IDAQAB`;
  const rows: [boolean, DnsRecord['recordType'], typeName: string, name: string, value: string][] =
    [
      [receives, 'MX', 'MX', '@', `inbound.${HOST}`],
      [sends, 'TXT', 'SPF', bounces, `v=spf1 include:spf.${HOST} ~all`],
      [sends, 'TXT', 'DKIM', 'crm._domainkey', `v=DKIM1; k=rsa; p=${key}`],
      [sends, 'MX', 'Return-Path', bounces, `feedback.${HOST}`],
      [true, 'CNAME', 'Tracking', tracking, `links.${HOST}`],
    ];
  const needed = rows.filter(([isNeeded]) => isNeeded);
  return needed.map(([, recordType, recordTypeName, name, value]) => {
    const priority = recordType === 'MX' ? 10 : 0;
    return { id: ids('rec'), recordType, recordTypeName, name, value, priority };
  });
}

/** Returns made-up nameservers, which are always the same for a given domain. */
export function nameserversOf(domain: string): { nameservers: string[]; dnsProvider: string } {
  const number = createHash('sha256').update(domain).digest().readUInt8(0);
  return {
    nameservers: [`ns${number}a.dns-host.example`, `ns${number}b.dns-host.example`],
    dnsProvider: 'DNS Host Example',
  };
}

const KEEP = 1000;

function createOutbox(shelf: Shelf<SendRow>) {
  const table = createTable(shelf);
  return {
    ...table,
    add(send: TestSend): void {
      const sends = table.rows();
      const [oldest] = sends;
      if (oldest && sends.length >= KEEP) table.remove(oldest);
      table.insert({ id: String(Number(sends.at(-1)?.id ?? 0) + 1), send });
    },
    /** Returns all test emails, or the last `count`, oldest first. */
    read: (count = KEEP) =>
      table
        .rows()
        .map(({ send }) => send)
        .slice(count === 0 ? KEEP : -count),
  };
}

export type Accounts = ReturnType<typeof createAccounts>;

/** Creates the organizations of a world, and its users. */
export function createAccounts(
  storage: Storage,
  { random, now, behaviour }: { random: Random } & Pick<Ground, 'now' | 'behaviour'>,
) {
  const draws = startDraws(random);
  const shelves = { draws: storage.shelf('draws', ''), named: storage.shelf('organization', '') };
  const ids = createIds(draws, () => shelves.draws.keep(draws));
  const ground: Ground = { ids, storage, now, behaviour };
  const organizations = new Map<string, Organization>();
  const bySession = createLookup<UserRow>(({ session }) => session);
  const users = createTable(storage.shelf('user', ''), [bySession]);
  const addUser = ({ id = ids('user'), session = ids('session'), ...user }: NewUser): UserRow =>
    users.insert({ ...user, id, session, organizationId: user.organizationId ?? null });

  return {
    organizations,
    /** Adds an organization, with an owner and session. Throws Invalid if the id is taken. */
    addOrganization(named: { id?: string | undefined; name?: string | undefined }): Organization {
      const { id = ids('org'), name = id } = named;
      if (organizations.has(id)) {
        throw new Invalid(`organization "${id}" exists already: give every one its own id`);
      }
      const organization = createOrganization({ id, name }, ground);
      organizations.set(id, organization);
      shelves.named.keep({ id, name });
      addUser({ ...ownerOf(id), organizationId: id });
      return organization;
    },
    users: { ...users, add: addUser, bySession: bySession.find },
    byKey(secret: string): { organization: Organization; key: KeyRow } | undefined {
      for (const organization of organizations.values()) {
        const key = organization.keys.bySecret(secret);
        if (key !== undefined) return { organization, key };
      }
      return undefined;
    },
    /** Returns all rows; organizations come before the rows that belong to them. */
    *rows(): Generator<StoredRow> {
      yield { kind: 'draws', organization: '', row: { ...draws } };
      for (const row of users.rows()) yield { kind: 'user', organization: '', row };
      for (const { id, name } of organizations.values()) {
        yield { kind: 'organization', organization: '', row: { id, name } };
      }
      for (const organization of organizations.values()) yield* organization.rows();
    },
    /** Replaces the world with these rows. The objects of existing organizations are reused. */
    restore(rows: readonly StoredRow[]): void {
      const before = new Map(organizations);
      for (const organization of before.values()) organization.clear();
      users.clear();
      organizations.clear();
      for (const stored of rows) {
        const { kind, row } = stored;
        if (kind === 'draws') Object.assign(draws, row);
        else if (kind === 'user') users.put(row);
        else if (kind === 'organization') {
          organizations.set(row.id, before.get(row.id) ?? createOrganization(row, ground));
        } else organizations.get(stored.organization)?.put(stored);
      }
    },
  };
}
