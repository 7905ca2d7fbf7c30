/**
 * Reads a world from a YAML or JSON file, which holds either the records of one organization or a
 * list of organizations. Every mistake is reported with its position before any record is created.
 * Below are the creation of records, and the world with which an emulator begins.
 */
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { fault, fixOf, says } from '../../domain/schema-fields.ts';
import { Invalid } from '../../domain/errors.ts';
import {
  contactStatus,
  domainCreateBody,
  email,
  subscription,
  type Subscription,
  templateUpdateBody,
} from '../../platform/request-schemas.ts';
import { type Accounts, findChannel, type Organization } from '../store/organization.ts';
import type {
  Channel,
  NewContact,
  NewDomain,
  NewKey,
  NewTemplate,
  NewUser,
} from '../shared/row-types.ts';

const id = z
  .string()
  .regex(/^[\w.~-]{1,255}$/, says('is no id', 'use letters, digits and . _ ~ - only'));
const time = z.iso
  .datetime({ offset: true, ...says('is no time', 'write it as 2026-11-20T12:00:00Z') })
  .transform((text) => Date.parse(text));
const name = z.string().min(1);
const named = z.strictObject({ id, name });

const key = z.strictObject({
  id: id.optional(),
  key: id.optional(),
  name: name.optional(),
  permissions: z.string().optional(),
  enabled: z.boolean().optional(),
  revoked: z.boolean().optional(),
});

const user = z.strictObject({
  id: id.optional(),
  name,
  email: name,
  session: id.optional(),
});

const person = z.strictObject({
  id: id.optional(),
  email,
  firstName: z.string().optional(),
  lastName: z.string().optional(),
  status: contactStatus.optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  groups: z.array(named).optional(),
  channels: z.record(z.string(), subscription).optional(),
  suppressionReason: z.string().optional(),
  createdAt: time.optional(),
});

const template = z.strictObject({
  ...templateUpdateBody.shape,
  name: templateUpdateBody.shape.name.unwrap(),
  id: id.optional(),
  createdAt: time.optional(),
});

const domain = z.strictObject({
  ...domainCreateBody.shape,
  id: id.optional(),
  status: z.string().optional(),
  createdAt: time.optional(),
});

const records = {
  /** `subscription` is the assumed subscription of a contact that has none of its own. */
  channels: z.array(named.extend({ subscription: subscription.optional() })).optional(),
  keys: z.array(key).optional(),
  users: z.array(user).optional(),
  people: z.array(person).optional(),
  templates: z.array(template).optional(),
  domains: z.array(domain).optional(),
};

const organization = z.strictObject({ id: id.optional(), name: name.optional(), ...records });

const several = z.strictObject({
  organizations: z.array(organization).min(1, says('is empty', 'add an organization')),
  guests: z.array(user).optional(),
});

export interface SeedFile {
  /** Contains at least one organization. The printed key belongs to the first. */
  organizations: z.infer<typeof organization>[];
  guests: z.infer<typeof user>[] | undefined;
  /** Returns the position of a record as `file:line:col path`, for a path such as ['people', 3]. */
  where(organization: number | undefined, path: Path): string;
}

/** Parses a seed file. Throws Invalid with every mistake: `file:line:col path wrong → fix`. */
export function parseSeedFile(file: string, text: string): SeedFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken) {
    const { line, col } = lines.linePos(broken.pos[0]);
    throw new Invalid(`${file}:${line}:${col}  ${broken.message}`, {
      fix: 'mend the YAML or JSON there',
    });
  }
  const where = (path: Path) => {
    const { line, col } = lines.linePos(offsetOf(document, path));
    const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
    const name = path.length === 0 ? '(the file)' : steps.join('').replace(/^\./, '');
    return `${file}:${line}:${col}  ${name}`;
  };
  const value: unknown = document.toJS() ?? {};
  if (typeof value === 'object' && value !== null && 'organizations' in value) {
    const path = (index: number | undefined) =>
      index === undefined ? [] : ['organizations', index];
    const seen = check(several, value, where);
    return {
      guests: seen.guests,
      ...seen,
      where: (index, inner) => where([...path(index), ...inner]),
    };
  }
  const only = check(organization, value, where);
  return { organizations: [only], guests: undefined, where: (_, path) => where(path) };
}

function check<T>(schema: z.ZodType<T>, value: unknown, where: (path: Path) => string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.flatMap((issue) => {
    const { path } = issue;
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((wrong) => ({
        path: [...path, wrong],
        ...fault('is not known here', 'remove it, or mend its name'),
      }));
    }
    const fix = fixOf(issue) ?? mends[issue.code] ?? 'correct it';
    return [{ path, reason: issue.message, fix }];
  });
  throw new Invalid(
    mistakes.map(({ path, reason, fix }) => ({
      code: 'invalid',
      reason: `${where(path)}  ${reason}`,
      fix,
    })),
  );
}

export type Path = readonly PropertyKey[];

const mends: Partial<Record<z.core.$ZodIssue['code'], string>> = {
  invalid_type: 'write a value of that type',
  invalid_value: 'use one of these',
  too_small: 'write something longer, or leave it out',
  too_big: 'shorten it',
};

/** Returns the offset of a value, or for a missing value the offset where it belongs. */
function offsetOf(document: Document, path: Path): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

/**
 * Creates what adds records to an organization before requests arrive. Throws Invalid for unknown
 * channels and taken values.
 */
export function createSeed(accounts: Accounts, organization: Organization) {
  const { channels, contacts, templates, domains, keys, now } = organization;
  return {
    channel(channel: Channel): void {
      refuseTaken('channel', channel.id, channels.byId);
      channels.insert({ ...channel });
    },
    /** Adds a contact and returns its id. The email is stored as given, in any case. */
    contact({
      channels: wanted = {},
      ...contact
    }: NewContact & { channels?: Record<string, Subscription> | undefined }): string {
      refuseTaken('contact', contact.id, contacts.byId);
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
    template(template: NewTemplate): string {
      refuseTaken('template', template.id, templates.byId);
      return templates.add(template, now()).id;
    },
    domain(domain: NewDomain): string {
      refuseTaken('domain', domain.id, domains.byId);
      refuseTaken('domain', domain.domain, domains.byName);
      return domains.add(domain, now()).id;
    },
    key(key: NewKey): string {
      refuseTaken('API key', key.id, keys.byId);
      refuseTaken('API key', key.secret, accounts.byKey);
      return keys.add(key, now()).secret;
    },
    user: (user: Omit<NewUser, 'organizationId'>) =>
      seedUser(accounts, { ...user, organizationId: organization.id }),
  };
}

function seedUser({ users }: Accounts, user: NewUser): string {
  refuseTaken('user', user.id, users.byId);
  refuseTaken('session', user.session, users.bySession);
  return users.add(user).session;
}

function refuseTaken(
  what: string,
  name: string | undefined,
  find: (name: string) => object | undefined,
): void {
  if (name === undefined || find(name) === undefined) return;
  throw new Invalid(`${what} "${name}" exists already: give every ${what} its own`);
}

/**
 * Creates the organizations and their records. The first one also has `own`, and `drawnKey` if it
 * gets no other key. Throws Invalid with a list of all mistakes.
 */
export function arrange(
  accounts: Accounts,
  seedFile: SeedFile | undefined,
  drawnKey: string,
  own: { apiKey: string | undefined; channels: readonly Channel[] },
): void {
  const wrong: string[] = [];
  const tryTo = (at: { index?: number; path: Path } | undefined, make: () => void): void => {
    try {
      make();
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      const where = at && seedFile ? `${seedFile.where(at.index, at.path)}  ` : '';
      wrong.push(`${where}${error.message}`);
    }
  };

  for (const [index, wanted] of (seedFile?.organizations ?? [{}]).entries()) {
    const addAll = <T>(kind: string, given: readonly T[] = [], add: (one: T) => void): void =>
      given.forEach((one, at) => tryTo({ index, path: [kind, at] }, () => add(one)));
    tryTo({ index, path: [] }, () => {
      const organization = accounts.addOrganization(wanted);
      const seed = createSeed(accounts, organization);
      if (index === 0) {
        for (const channel of own.channels) tryTo(undefined, () => seed.channel(channel));
        const { apiKey } = own;
        if (apiKey !== undefined) tryTo(undefined, () => seed.key({ secret: apiKey }));
      }
      addAll('channels', wanted.channels, seed.channel);
      addAll('keys', wanted.keys, ({ key: secret, ...rest }) => seed.key({ ...rest, secret }));
      addAll('users', wanted.users, seed.user);
      addAll('people', wanted.people, seed.contact);
      addAll('templates', wanted.templates, seed.template);
      addAll('domains', wanted.domains, seed.domain);
      if (organization.keys.rows().length === 0) seed.key(index === 0 ? { secret: drawnKey } : {});
    });
  }
  for (const [at, guest] of (seedFile?.guests ?? [GUEST]).entries()) {
    tryTo({ path: ['guests', at] }, () => seedUser(accounts, guest));
  }
  if (wrong.length > 0) throw new Invalid(wrong.map((reason) => ({ code: 'invalid', reason })));
}

const GUEST = { id: 'user_guest', name: 'Guest', email: 'guest@nowhere.example' };
