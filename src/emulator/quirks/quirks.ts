/**
 * The differences between the specification and a real platform that the emulator can play: what a
 * quirk is, the table of all quirks, how those that a user names are combined, and what the table
 * uses.
 */
import { Invalid } from '../../domain/errors.ts';
import { findByEmail, type Organization, type PlatformBehaviour } from '../store/organization.ts';
import { viewTemplate } from '../api/answers.ts';
import { rateLimited, type Route, type MeterReading } from '../limits/route-limits.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { ContactRow } from '../shared/row-types.ts';
import { enrolment, json } from '../api/operation-table.ts';
import { membershipIn } from '../store/contacts.ts';

/** Wraps the operations. Quirks compose: each sees the result of those before it in the table. */
export interface Quirk {
  behaviour?: Partial<PlatformBehaviour>;
  /** Responds in place of the operation; undefined lets the request through. */
  answers?(question: QuirkRequest, organization: Organization): ApiOutcome | undefined;
  /** Changes the reply, including the error response for a wrong key or an exhausted limit. */
  turns?(reply: Reply): Reply;
  restart?(): void;
}

/** A request that is about to reach an operation. Only its key and limit have been checked. */
interface QuirkRequest {
  route: Route;
  /** The decoded path parameter; '' if the path has none. */
  id: string;
  query: URLSearchParams;
  body: string;
  headers: Record<string, string>;
}

export interface Reply {
  route: Route | null;
  organization?: Organization | undefined;
  outcome: ApiOutcome;
  headers: Record<string, string>;
  question?: QuirkRequest | undefined;
  reading?: MeterReading | undefined;
}

function alter(reply: Reply, parts: Partial<ApiOutcome>): Reply {
  return { ...reply, outcome: { ...reply.outcome, ...parts } };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Entry extends Quirk {
  name: string;
  line: string;
  /** What may follow `name=`. The first value is the default. */
  values?: readonly string[];
  /** Makes the quirk where it depends on the value, or remembers something. */
  make?(value: string): Quirk;
}

/** Lists every quirk in the order in which they apply. */
export const quirks: readonly Entry[] = [
  {
    name: 'no-flip',
    line: 'enrolling with the other subscription: 409, unchanged',
    answers(question, organization) {
      const { contacts, channels } = organization;
      const asked = enrolmentIn(question);
      if (!asked) return undefined;
      const { who, subscription } = asked;
      const contact =
        who.id === undefined ? findByEmail(organization, who.email) : contacts.byId(who.id);
      const is = contact && membershipIn(contact, question.id)?.subscription;
      if (!contact || is === undefined || is === subscription) return undefined;
      const { id: contactId, key: email } = contact;
      return refuse(409, 'Contact is already subscribed to this channel', {
        why: `${contact.email} is ${is} in channel "${channels.byId(question.id)?.name}".`,
        fix: 'A subscription that exists is not changed by an enrolment.',
        about: { contactId, email, channelId: question.id, subscription },
      });
    },
  },
  {
    name: 'unknown-email',
    values: ['404'],
    line: 'enrolling an unknown email: 404, nobody is made',
    answers(question, organization) {
      const asked = enrolmentIn(question);
      const email = asked?.who.email;
      if (!asked || email === undefined || !organization.channels.byId(question.id))
        return undefined;
      if (findByEmail(organization, email)) return undefined;
      return refuse(404, 'Contact not found', {
        why: 'The organization has no contact with this email.',
        fix: 'Create the contact first.',
        about: { email, channelId: question.id, subscription: asked.subscription },
      });
    },
  },
  {
    name: 'enrol-status',
    values: ['200'],
    line: 'an enrolment answers 200',
    turns(reply) {
      const enrolled = reply.route === 'contacts.enrol' && reply.outcome.status === 201;
      return enrolled ? alter(reply, { status: 200 }) : reply;
    },
  },
  {
    name: 'all-channels',
    values: ['opt_out', 'opt_in'],
    line: 'contacts name every channel; the default where they have no row',
    // A channel without a row of its own shows its default, or `fallback` if it has none.
    make: (fallback) => ({
      turns: eachContact((contact, { organization }) => {
        if (!organization) return contact;
        const own = Array.isArray(contact['channels']) ? contact['channels'].filter(isRecord) : [];
        const channels = organization.channels.rows();
        const shown = channels.map(({ id, name, subscription = fallback }) => {
          return own.find((one) => one['id'] === id) ?? { id, name, subscription };
        });
        return { ...contact, channels: shown };
      }),
    }),
  },
  {
    name: 'list-groups-empty',
    line: 'the list of contacts shows no groups',
    turns: eachContact((contact, { route }) =>
      route === 'contacts.list' ? { ...contact, groups: [] } : contact,
    ),
  },
  {
    name: 'null-names',
    line: 'names that are not known are null',
    turns: eachContact((contact) => ({
      ...contact,
      firstName: contact['firstName'] || null,
      lastName: contact['lastName'] || null,
    })),
  },
  {
    name: 'enrol-raw',
    line: 'an enrolment answers a contact without channels',
    // Only the contact's own row, without data from other tables.
    turns: eachContact((contact, { route }) => {
      if (route !== 'contacts.enrol') return contact;
      const row = Object.entries(contact).filter(([field]) => !elsewhere.has(field));
      return Object.fromEntries(row);
    }),
  },
  {
    name: 'enrol-touches',
    line: 'a change of a subscription moves updatedAt of the contact',
    behaviour: { touches: true },
  },
  {
    name: 'delete-soft-404',
    line: 'deleting an unknown contact: 200 with only a message',
    turns: (reply) =>
      reply.route === 'contacts.delete' && reply.outcome.status === 404
        ? alter(reply, { status: 200, body: { message: 'Contact not found' } })
        : reply,
  },
  {
    name: 'search-wildcards',
    line: '% and _ in a search are wildcards',
    // `%` stands for any text, `_` for one character.
    make: () => {
      const pattern = (search: string) => {
        const plain = search.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
        return new RegExp(plain.replaceAll('%', '.*').replaceAll('_', '.'), 's');
      };
      return { behaviour: { finds: (key, search) => pattern(search).test(key) } };
    },
  },
  {
    name: 'email-as-given',
    line: 'sign-ups keep the case of their email, enrolments do not find them',
    behaviour: { keepsCase: true },
  },
  {
    name: 'unsorted-ties',
    line: 'contacts of one millisecond are listed in changing order',
    // Reverses the order of rows created in the same millisecond on every second listing.
    make: () => {
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
    },
  },
  {
    name: 'template-total',
    values: ['page'],
    line: 'total of the template list counts this page only',
    turns(reply) {
      const { body } = reply.outcome;
      const { templates } = body;
      if (reply.route !== 'templates.list' || !Array.isArray(templates)) return reply;
      return alter(reply, { body: { ...body, total: templates.length } });
    },
  },
  {
    name: 'template-limit',
    values: ['10'],
    line: 'the template list gives 10 unless asked for more',
    behaviour: { templatesListed: 10 },
  },
  {
    name: 'content-rederives-variables',
    line: 'content without variables replaces the variables',
    turns(reply) {
      const { organization, outcome, question } = reply;
      const { status, about } = outcome;
      const isNew = question?.route === 'templates.create';
      if (status >= 300 || !about?.templateId || !question) return reply;
      if (!isNew && question.route !== 'templates.update') return reply;
      const body: unknown = JSON.parse(question.body);
      if (!isRecord(body) || !Array.isArray(body['content'])) return reply;
      // A creation cannot state variables.
      if (!isNew && body['variables'] !== undefined) return reply;
      const row = organization?.templates.byId(about.templateId);
      if (!organization || !row) return reply;
      const found = JSON.stringify(row.content).matchAll(/\{\{\s*([A-Za-z_][\w.]*)\s*\}\}/g);
      const names = new Set(Array.from(found, ([, name = '']) => name));
      const blank = { type: 'string', defaultValue: null } as const;
      const variables = Array.from(names, (name) => ({ name, ...blank }));
      organization.templates.change(row, { variables }, row.updatedAt);
      return alter(reply, { body: viewTemplate(organization, row) });
    },
  },
  {
    name: 'domain-statuses',
    line: 'a new domain is start-verify',
    make: () => {
      const renamed = (value: unknown): unknown =>
        isRecord(value) && value['object'] === 'domain' && value['status'] === 'pending'
          ? { ...value, status: 'start-verify' }
          : value;
      return {
        turns(reply) {
          const { body } = reply.outcome;
          const { domains } = body;
          const inner = Array.isArray(domains) ? { domains: domains.map(renamed) } : {};
          return alter(reply, { body: Object.assign({}, renamed(body), inner) });
        },
      };
    },
  },
  {
    name: 'empty-user-agent',
    values: ['400'],
    line: 'a request without User-Agent: 400',
    answers({ headers }) {
      if (headers['user-agent']?.trim()) return undefined;
      return refuse(400, 'Missing User-Agent', {
        why: 'The request has no User-Agent header, or an empty one.',
        fix: 'Send a User-Agent that names your program.',
      });
    },
  },
  {
    name: 'validation-status',
    values: ['422'],
    line: 'what does not fit the schemas: 422',
    // Malformed JSON still gets 400.
    turns: (reply) => (reply.outcome.misfit ? alter(reply, { status: 422 }) : reply),
  },
  {
    name: 'event-ids',
    line: 'event is evt_…, not a name',
    make: () => {
      let count = 0;
      const renamed = (body: ApiOutcome['body']): ApiOutcome['body'] => {
        if (typeof body['event'] !== 'string') return body;
        count += 1;
        return { ...body, event: `evt_${count.toString(36).padStart(8, '0')}` };
      };
      return {
        restart: () => void (count = 0),
        turns(reply) {
          const { body } = reply.outcome;
          const { contact } = body;
          const inner = isRecord(contact) ? { contact: renamed(contact) } : {};
          return alter(reply, { body: { ...renamed(body), ...inner } });
        },
      };
    },
  },
  {
    name: 'error-message-only',
    line: 'errors have a message only',
    turns(reply) {
      const { status, body } = reply.outcome;
      return status < 400 ? reply : alter(reply, { body: { message: body['message'] } });
    },
  },
  {
    name: 'retry-after-short',
    line: 'Retry-After is up to half a second short',
    turns(reply) {
      if (!reply.reading || reply.reading.allowed) return reply;
      const seconds = String(Math.max(1, Math.round(reply.reading.resetMs / 1000)));
      return { ...reply, headers: { ...reply.headers, 'retry-after': seconds } };
    },
  },
  {
    name: 'retry-after-stuck',
    line: 'a used-up limit says Retry-After: 1 for ever',
    // As if a counter that has reached its limit had lost its expiry.
    make: () => {
      const stuck = new Set<string>();
      return {
        restart: () => stuck.clear(),
        answers: ({ route }, { id }) =>
          stuck.has(`${route} ${id}`) ? rateLimited(route, '1') : undefined,
        turns(reply) {
          const { route, organization, outcome, reading } = reply;
          if (organization && reading?.remaining === 0) stuck.add(`${route} ${organization.id}`);
          if (outcome.status !== 429) return reply;
          const said = { 'x-ratelimit-remaining': '0', 'retry-after': '1' };
          return { ...reply, headers: { ...reply.headers, ...said } };
        },
      };
    },
  },
  {
    name: 'headers',
    values: ['reset', 'none', 'none-templates'],
    line: 'rate limits: seconds left, no headers, none on templates',
    // reset: X-RateLimit-Reset holds the seconds left, without X-RateLimit-Window.
    // none, none-templates: a 429 still has Retry-After.
    make: (which) => ({
      turns(reply) {
        const others = Object.entries(reply.headers).filter(
          ([name]) => !name.startsWith('x-ratelimit-'),
        );
        if (which === 'none' || (which !== 'reset' && reply.route?.startsWith('templates.')))
          return { ...reply, headers: Object.fromEntries(others) };
        if (which !== 'reset' || !reply.reading) return reply;
        const { 'x-ratelimit-window': _, ...rest } = reply.headers;
        const left = String(Math.ceil(reply.reading.resetMs / 1000));
        return { ...reply, headers: { ...rest, 'x-ratelimit-reset': left } };
      },
    }),
  },
  {
    name: 'retry-after-body',
    line: 'a 429 repeats it as retryAfter',
    turns(reply) {
      const { status, body } = reply.outcome;
      if (status !== 429) return reply;
      const retryAfter = Number(reply.headers['retry-after']);
      return alter(reply, { body: { ...body, retryAfter } });
    },
  },
];

/** Combines quirks such as `no-flip` and `headers=reset`. Throws Invalid for another one. */
export function createQuirks(texts: readonly string[]): Required<Quirk> {
  const chosen = new Map(
    texts.map((text) => {
      const [name = '', ...given] = text.split('=');
      const entry = quirks.find((one) => one.name === name);
      const known = spellings().map((one) => one.name);
      if (!entry) throw new Invalid(`quirk "${text}" is not known: use ${known.join(', ')}`);
      if (texts.filter((other) => other.split('=')[0] === name).length > 1) {
        throw new Invalid(`quirk "${name}" is given twice: choose one`);
      }
      const { values = [''] } = entry;
      const value = given.length > 0 ? given.join('=') : values[0];
      if (value !== undefined && values.includes(value) && (value !== '' || given.length === 0)) {
        return [name, value];
      }
      const mend = entry.values ? `write ${name}=${values.join('|')}` : `write ${name} alone`;
      throw new Invalid(`quirk "${text}" does not know that value: ${mend}`);
    }),
  );
  const played = quirks.flatMap((entry): Quirk[] => {
    const value = chosen.get(entry.name);
    return value === undefined ? [] : [entry.make?.(value) ?? entry];
  });
  const behaviour: Partial<PlatformBehaviour> = {};
  for (const quirk of played) Object.assign(behaviour, quirk.behaviour);
  return {
    behaviour,
    answers(question, organization) {
      for (const { answers } of played) {
        const outcome = answers?.(question, organization);
        if (outcome) return outcome;
      }
      return undefined;
    },
    turns: (reply: Reply) => played.reduce((said, { turns }) => turns?.(said) ?? said, reply),
    restart() {
      for (const quirk of played) quirk.restart?.();
    },
  };
}

/** Returns every quirk as the command line spells it: `headers=reset|none|none-templates`. */
export function spellings(): { name: string; line: string }[] {
  return quirks.map(({ name, values, line }) => ({
    name: values ? `${name}=${values.join('|')}` : name,
    line,
  }));
}

type Contact = Record<string, unknown>;

/** Makes a quirk of how a contact is shown, wherever an answer shows one. */
function eachContact(change: (contact: Contact, reply: Reply) => Contact) {
  return (reply: Reply): Reply => {
    const { route, outcome } = reply;
    const { body, status } = outcome;
    if (status >= 300) return reply;
    const { contacts, contact } = body;
    const changed = (one: Contact): Contact => change(one, reply);
    if (route === 'contacts.retrieve') return alter(reply, { body: changed(body) });
    if (route === 'contacts.list' && Array.isArray(contacts)) {
      return alter(reply, { body: { ...body, contacts: contacts.filter(isRecord).map(changed) } });
    }
    if (route === 'contacts.enrol' && isRecord(contact)) {
      return alter(reply, { body: { ...body, contact: changed(contact) } });
    }
    return reply;
  };
}

const readEnrolment = json(enrolment);

function enrolmentIn({ route, body }: QuirkRequest) {
  if (route !== 'contacts.enrol') return undefined;
  const read = readEnrolment(body);
  return read.ok ? read.value : undefined;
}

const elsewhere = new Set(['object', 'channels', 'properties', 'groups', 'event']);
