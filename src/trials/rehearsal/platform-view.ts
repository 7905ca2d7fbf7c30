/**
 * Remembers what a plan reads from the platform, and fills an emulator with it: the same contacts
 * and templates, with their ids, times and subscriptions. Below is the state of an emulator.
 */
import { contactKey } from '../../domain/values/contact-key.ts';
import type { Random } from '../../domain/clock.ts';
import { createEmulator, type Emulator, type EmulatorOptions } from '../../emulator/emulator.ts';
import type { ContactList, Platform, Template } from '../../platform/platform.ts';
import { templateStatus } from '../../platform/request-schemas.ts';
import { timeOf } from '../../records/contact/observe/observed-contact.ts';
import type { PlatformFacts } from '../../records/platform-facts.ts';
import type { PersonState } from '../../views/run/rehearsal.ts';

type SeenContact = ContactList['contacts'][number];

export interface PlatformView {
  contacts: Map<string, SeenContact>;
  templates: Map<string, Template>;
}

type Reading = Pick<Platform, 'contacts' | 'templates'>;

/** What happens to each record that is read, before it is returned. */
interface Passing {
  contact<C extends SeenContact>(contact: C): C;
  template(template: Template): Template;
  gone?(id: string): void;
}

function passingThrough<P extends Reading>(platform: P, passing: Passing): P {
  const { contacts, templates } = platform;
  return {
    ...platform,
    contacts: {
      ...contacts,
      async list(...asked: Parameters<typeof contacts.list>) {
        const page = await contacts.list(...asked);
        return { ...page, contacts: page.contacts.map(passing.contact) };
      },
      async retrieve(...asked: Parameters<typeof contacts.retrieve>) {
        const contact = await contacts.retrieve(...asked);
        if (contact) return passing.contact(contact);
        passing.gone?.(asked[0]);
        return contact;
      },
    },
    templates: {
      ...templates,
      async list(...asked: Parameters<typeof templates.list>) {
        const page = await templates.list(...asked);
        return { ...page, templates: page.templates.map(passing.template) };
      },
    },
  };
}

/** Returns the platform, which from now on notes in `view` what is read through it. */
export function watched<P extends Reading>(platform: P, view: PlatformView): P {
  return passingThrough(platform, {
    contact(contact) {
      view.contacts.set(contact.id, contact);
      return contact;
    },
    template(template) {
      view.templates.set(template.id, template);
      return template;
    },
    gone: (id) => void view.contacts.delete(id),
  });
}

/** How the emulator differs from what was read. */
export interface Filling extends Pick<
  EmulatorOptions,
  'clock' | 'limits' | 'algorithm' | 'quirks' | 'faults'
> {
  random: Random;
  apiKey: string;
  /** The channels of the configuration; they exist also if no contact names them. */
  channels: readonly { id: string; name: string }[];
  facts: PlatformFacts;
}

export function fillEmulator(view: PlatformView, filling: Filling): Emulator {
  const { facts, channels, quirks = [], ...options } = filling;
  const known = new Map(channels.map(({ id, name }) => [id, name]));
  for (const contact of view.contacts.values()) {
    for (const { id, name } of contact.channels) if (!known.has(id)) known.set(id, name ?? id);
  }
  const isGiven = (name: string): boolean =>
    quirks.some((quirk) => quirk === name || quirk.startsWith(`${name}=`));
  const named = [...view.templates.values()].find(({ organizationId }) => organizationId);
  const id = named?.organizationId || undefined;
  const emulator = createEmulator({
    ...options,
    quirks: [
      ...quirks,
      ...(facts.namesAll === true && !isGiven('all-channels') ? ['all-channels'] : []),
      ...(facts.enrolmentMoves === true && !isGiven('enrol-touches') ? ['enrol-touches'] : []),
    ],
    channels: [...known].map(([id, name]) => ({ id, name, subscription: facts.defaults[id] })),
    keepRequests: 1,
    seedFile: { organizations: [{ id }], guests: [], where: () => '' },
  });
  const now = filling.clock.now();
  for (const contact of oldestFirst(view.contacts)) plantContact(emulator, contact, now);
  for (const template of oldestFirst(view.templates)) plantTemplate(emulator, template, now);
  return emulator;
}

/** Lists show the newest first, and those of one time in the order in which they were read. */
function oldestFirst<Row extends { createdAt?: string | null | undefined }>(
  rows: ReadonlyMap<string, Row>,
): Row[] {
  const all = [...rows.values()].toReversed();
  return all.toSorted((a, b) => (timeOf(a.createdAt) ?? 0) - (timeOf(b.createdAt) ?? 0));
}

function plantContact({ seed }: Emulator, contact: SeenContact, now: number): void {
  const { id, email, status, suppressionReason } = contact;
  const createdAt = timeOf(contact.createdAt) ?? now;
  seed.contact({
    id,
    email,
    // The mirror takes an unknown word for the stricter one.
    status: status === 'subscribed' || status === 'blocked' ? status : 'unsubscribed',
    channels: Object.fromEntries(
      contact.channels.map((one) => [
        one.id,
        one.subscription === 'opt_in' ? ('opt_in' as const) : ('opt_out' as const),
      ]),
    ),
    suppressionReason: suppressionReason ?? undefined,
    suppressedAt: timeOf(contact.suppressedAt),
    createdAt,
    updatedAt: timeOf(contact.updatedAt),
  });
}

function plantTemplate({ seed }: Emulator, template: Template, now: number): void {
  if (template.deletedAt) return;
  const { id, name, content, variables } = template;
  const status = templateStatus.safeParse(template.status);
  seed.template({
    id,
    name,
    description: template.description ?? undefined,
    subject: template.subject ?? undefined,
    fromEmail: template.fromEmail ?? undefined,
    replyTo: template.replyTo ?? undefined,
    previewText: template.previewText ?? undefined,
    content: content ?? undefined,
    variables: variables?.map((one) => ({
      name: one.name,
      type: one.type === 'number' ? 'number' : 'string',
      defaultValue: one.defaultValue ?? null,
    })),
    status: status.success ? status.data : undefined,
    createdAt: timeOf(template.createdAt) ?? now,
    updatedAt: timeOf(template.updatedAt),
  });
}

/**
 * Returns the platform with the records of the emulator as they were read, as long as nothing has
 * changed them: the mirror compares the platform's own texts, which the emulator writes differently
 * (times, empty fields).
 */
export function asRead<P extends Reading>(platform: P, view: PlatformView): P {
  return passingThrough(platform, {
    contact(contact) {
      const read = view.contacts.get(contact.id);
      const isSame = read && changedAt(read) === changedAt(contact);
      return isSame ? { ...contact, updatedAt: read.updatedAt } : contact;
    },
    template(template) {
      const read = view.templates.get(template.id);
      return read && changedAt(read) === changedAt(template) ? read : template;
    },
  });
}

function changedAt({ createdAt, updatedAt }: Template | SeenContact): number | undefined {
  return timeOf(updatedAt) ?? timeOf(createdAt);
}

/** The contacts and templates of a platform by id, each with its key. */
export interface PlatformState {
  people: ReadonlyMap<string, { key: string; state: PersonState }>;
  templates: ReadonlyMap<string, { key: string; state: string }>;
}

export function stateOf(world: Emulator['world']): PlatformState {
  const people = world.contacts().map((contact) => {
    const { id, email, status, channels, suppressionReason, suppressedAt } = contact;
    const isSuppressed = status === 'subscribed' && Boolean(suppressionReason ?? suppressedAt);
    const state: PersonState = {
      status: isSuppressed ? 'suppressed' : status,
      channels: Object.fromEntries(channels.map((one) => [one.id, one.subscription])),
    };
    return [id, { key: contactKey(email), state }] as const;
  });
  const templates = world.templates().map((template) => {
    const { id, name, createdAt: _, updatedAt: __, createdByUserId: ___, ...fields } = template;
    return [id, { key: name, state: JSON.stringify(fields) }] as const;
  });
  return { people: new Map(people), templates: new Map(templates) };
}
