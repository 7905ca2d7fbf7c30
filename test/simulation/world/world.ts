/**
 * The world around crm-mirror: a CRM that is a list of records, a platform that is the emulator,
 * the people and colleagues who act on both, and the time. Whatever is done on the platform is told
 * to the witness.
 */
import { createEmulator, type Emulator } from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { Invalid } from '../../../src/domain/errors.ts';
import { virtualClock, type VirtualClock } from '../../support/waiting.ts';
import {
  arrangeLetters,
  addressOf,
  arrange,
  keyOf,
  thereAs,
  withLetters,
} from '../../support/engine/sample-people.ts';
import { channels, type Parts } from '../../support/engine/engine-stage.ts';
import { textOf, type CrmRecord } from './crm.ts';
import type { Reached } from '../coverage.ts';
import type { Act } from '../story/actions.ts';
import type { Story } from '../story/story.ts';
import { createWitness, type Witness } from './platform-history.ts';

export interface World {
  story: Story;
  clock: VirtualClock;
  emulator: Emulator;
  witness: Witness;
  /** The CRM's truth. */
  people: CrmRecord[];
  templates: CrmRecord[];
  /** Somebody does something; what cannot be done now is not done. */
  act(act: Act): void;
  /** Keys that may do everything, only read, or nothing at all. */
  keys: Readonly<Record<'everything' | 'read' | 'nothing', string>>;
  /** Other programs use up what the limit leaves of two routes. */
  eat(): void;
  /** The contacts are mapped in another way from now on. */
  remap(): void;
  /** Adds the canary of the story, and how the contacts are mapped now. */
  mapped<Config extends object>(config: Config): Config & Pick<Parts, 'canary' | 'manner'>;
}

export const hour = 3_600_000;
/** No address of it is taken by the platform. */
export const refusedDomain = '@refused.example';

export function createWorld(story: Story, reached: Reached): World {
  const virtual = virtualClock();
  // As the clock of a machine tells it: in whole milliseconds.
  const clock = { ...virtual, now: () => Math.floor(virtual.now()) };
  const ahead = story.platformAhead * hour;
  const played = story.quirks.some((quirk) => quirk === 'retry-after-stuck');
  const emulator = createEmulator({
    clock: { now: () => clock.now() + ahead, monotonic: clock.monotonic },
    random: seeded(story.chance),
    apiKey: 'key',
    channels: channels.map((id) => ({ id, name: id })),
    // What is stuck once it is used up would never end.
    limits: [played ? '*=1000000/1' : story.limit],
    algorithm: story.algorithm,
    quirks: story.quirks,
  });
  const { createKey } = emulator.dashboard;
  const program = createKey({ name: 'another program' });
  const keys = {
    everything: 'key',
    read: createKey({ name: 'read only', permissions: 'read' }).key,
    nothing: 'unknown',
  };
  const people: CrmRecord[] = [];
  const templates: CrmRecord[] = [];
  const platformNow = { now: () => clock.now() + ahead };
  arrange({ people, emulator, clock: platformNow }, story.people);
  for (const record of people) {
    const isRefused = story.people[Number.parseInt(textOf(record, 'id'), 10)]?.refused;
    if (isRefused) record['email'] = textOf(record, 'email').replace(/@.*com/i, refusedDomain);
  }
  arrangeLetters({ templates, emulator }, story.letters);
  const witness = createWitness(emulator, clock);
  let mapping = 0;
  const world: World = {
    story,
    clock,
    emulator,
    witness,
    people,
    templates,
    act(act) {
      const before = shape(world);
      if (act.in === 'crm') actInCrm(world, act.who, act.does);
      else witness.during('others', () => actElsewhere(world, act, program.key));
      if (shape(world) !== before) reached.note('act', `${act.in}: ${act.does}`);
    },
    keys,
    eat: () => eat(emulator, program.key),
    remap: () => void (mapping += 1),
    mapped: (config) => ({ ...config, canary: story.canary, manner: `mapping ${mapping}` }),
  };
  return world;
}

/** All that an act may change. */
function shape({ people, templates, emulator }: World): string {
  const { contacts, templates: shown } = emulator.world;
  return JSON.stringify([people, templates, contacts(), shown()]);
}

function actElsewhere(world: World, act: Exclude<Act, { in: 'crm' }>, key: string): void {
  const { who } = act;
  if (act.in === 'templates') actOnTemplate(world, who, act.does);
  else if (act.in === 'program') actAsProgram(world, { who, does: act.does, key });
  else possibly(() => actOnPlatform(world, who, act.does));
}

/** Does nothing for a person who does not exist. */
function possibly(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
  }
}

export const movedOf = (address: string): string => `new-${address}`;
const other = (address: string): string =>
  address.startsWith('new-') ? address.slice('new-'.length) : movedOf(address);

type Does<Where> = Extract<Act, { in: Where }>['does'];

function actInCrm(world: World, number: number, does: Does<'crm'>): void {
  const { people, story } = world;
  const at = number % story.people.length;
  const next = (at + 1) % story.people.length;
  const records = people.filter(({ id }) => id === `${at}` || id === `${at}-twin`);
  const [first] = records;
  const set = (fields: CrmRecord) => records.forEach((record) => Object.assign(record, fields));
  const address = keyOf(textOf(first, 'email')) || addressOf(at);
  // Who tells changes by their ids has one record of each.
  if (story.tells && does === 'gets the id of the next one') return;
  const acts: Record<Does<'crm'>, () => void> = {
    'wants the newsletter': () => set({ ch_news: 'yes' }),
    'forbids the newsletter': () => set({ ch_news: 'no' }),
    'says nothing of the newsletter': () => set({ ch_news: '' }),
    'says maybe to the newsletter': () => set({ ch_news: 'maybe' }),
    'wants the product mail': () => set({ ch_product: '1' }),
    'forbids the product mail': () => set({ ch_product: '0' }),
    'wants no mail at all': () => set({ unsubscribed: 'true' }),
    'wants mail again': () => set({ unsubscribed: '' }),
    'states a new will': () => set({ consent_at: new Date(world.clock.now()).toISOString() }),
    'is flagged as deleted': () => set({ deleted: 'true' }),
    'is flagged no longer': () => set({ deleted: '' }),
    'is spelt otherwise': () => set({ email: `  ${address.toUpperCase()}` }),
    'is new'() {
      if (first) return;
      const wishes = { ch_news: 'yes', ch_product: '' };
      people.push({
        id: `${at}`,
        email: withLetters(address),
        deleted: '',
        unsubscribed: '',
        ...wishes,
      });
    },
    'is removed': () => void (world.people = people.filter((one) => !records.includes(one))),
    'is doubled'() {
      if (first && records.length === 1)
        people.push({ ...first, id: `${at}-twin`, ch_news: 'yes' });
    },
    'has a double that forbids the newsletter'() {
      if (first && records.length === 1) people.push({ ...first, id: `${at}-twin`, ch_news: 'no' });
    },
    'loses its double': () => void (world.people = people.filter(({ id }) => id !== `${at}-twin`)),
    'leaves its double behind': () =>
      records.length > 1 && first && Object.assign(first, { email: other(address) }),
    'moves to a new address': () => set({ email: other(address) }),
    'moves to the address of the next one': () => set({ email: addressOf(next) }),
    'has a broken address': () => set({ email: 'not an address' }),
    'gets the id of the next one': () => first && Object.assign(first, { id: `${next}` }),
  };
  acts[does]();
}

function actOnPlatform({ emulator, story }: World, who: number, does: Does<'platform'>): void {
  const { dashboard, seed, world } = emulator;
  const at = who % story.people.length;
  const address = thereAs(emulator, addressOf(at));
  const acts: Record<Does<'platform'>, () => unknown> = {
    'leaves the newsletter': () => dashboard.leave(address, 'ch_news'),
    'leaves the product mail': () => dashboard.leave(address, 'ch_product'),
    'unsubscribes from everything': () => dashboard.unsubscribe(address),
    'is blocked': () => dashboard.block(address),
    bounces: () => dashboard.suppress(address, 'bounce'),
    'comes back to all mail': () => dashboard.resubscribe(address),
    'signs up for the newsletter': () =>
      dashboard.signUp({ email: address, channels: ['ch_news'] }),
    'signs up for the product mail in capitals': () =>
      dashboard.signUp({ email: address.toUpperCase(), channels: ['ch_product'] }),
    'is deleted': () => dashboard.deleteContact(address),
    'is made twice': () =>
      world.contact(address) &&
      seed.contact({
        email: withLetters(addressOf(at)).toUpperCase(),
        channels: { ch_news: 'opt_out' },
      }),
    'is taken out of the newsletter': () => dashboard.removeFromChannel(address, 'ch_news'),
    'is given another address': () =>
      dashboard.editContact(address, { email: movedOf(addressOf(at)) }),
    'is given another name': () => dashboard.editContact(address, { firstName: 'Robin' }),
  };
  acts[does]();
}

function actAsProgram(
  { emulator, story }: World,
  { who, does, key }: { who: number; does: Does<'program'>; key: string },
): void {
  const email = addressOf(who % story.people.length);
  const subscription = does === 'opts in to the newsletter' ? 'opt_in' : 'opt_out';
  emulator.handle({
    method: 'POST',
    path: '/api/contacts/channel/ch_news',
    headers: { 'x-api-key': key, 'content-type': 'application/json', 'user-agent': 'other' },
    body: JSON.stringify({ email, subscription }),
  });
}

const letterOf = (at: number): string => `letter-${at}`;

function actOnTemplate(world: World, number: number, does: Does<'templates'>): void {
  const { emulator, templates } = world;
  const at = number % 2;
  const record = templates.find(({ key }) => key === letterOf(at));
  const name = textOf(record, 'name') || letterOf(at);
  const shown = emulator.world.templates().find((template) => template.name === name);
  const { dashboard, seed } = emulator;
  const edit = (fields: { subject?: string; name?: string }) =>
    shown && dashboard.editTemplate(shown.id, fields);
  const acts: Record<Does<'templates'>, () => unknown> = {
    'is edited on the platform': () => edit({ subject: 'By hand' }),
    'is renamed on the platform': () => edit({ name: `${name} by hand` }),
    'is doubled on the platform': () => shown && seed.template({ name, subject: 'Double' }),
    'is deleted on the platform': () => shown && dashboard.deleteTemplate(shown.id),
    'changes in the source': () =>
      record && Object.assign(record, { subject: record['subject'] === 'New' ? 'Newer' : 'New' }),
    'is removed from the source': () =>
      void (world.templates = templates.filter((one) => one !== record)),
    'is new in the source': () =>
      record ?? templates.push({ key: letterOf(at), name: letterOf(at), subject: 'Fresh' }),
    'gets another name in the source': () =>
      record && Object.assign(record, { name: `${letterOf(at)} renamed` }),
  };
  acts[does]();
}

function eat(emulator: Emulator, key: string): void {
  const headers = { 'x-api-key': key, 'content-type': 'application/json', 'user-agent': 'other' };
  for (let bites = 0; bites < 5; bites += 1) {
    emulator.handle({ method: 'GET', path: '/api/contacts/list?limit=1', headers });
    emulator.handle({ method: 'POST', path: '/api/contacts/channel/ch_news', headers, body: '{}' });
  }
}
