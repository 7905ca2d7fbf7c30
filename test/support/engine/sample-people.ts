import fc from 'fast-check';
import { expect } from 'vitest';
import type { Clock } from '../../../src/domain/clock.ts';
import { channels, openStage, type Stage, type StageOptions } from './engine-stage.ts';
import type { Emulator } from '../../../src/emulator/emulator.ts';
import { canonicalJson } from '../../../src/domain/record.ts';

// People on both sides of a mirror, what happens to them, and what must never be sent to them.

/** What may be true of one address on both sides before a run. */
export const person = fc.record({
  crm: fc.constantFrom('absent', 'once', 'once', 'once', 'twice', 'deleted'),
  wishes: fc.tuple(
    fc.constantFrom('yes', 'no', '', 'TRUE', 'maybe'),
    fc.constantFrom('1', '0', '', 'opt_in'),
  ),
  twinWish: fc.constantFrom('yes', 'no', '', 'maybe'),
  unsubscribed: fc.constantFrom('', '', '', 'true'),
  spelling: fc.constantFrom('plain', 'upper', 'spaced'),
  platform: fc.constantFrom('absent', 'subscribed', 'unsubscribed', 'blocked', 'suppressed'),
  shown: fc.tuple(fc.constantFrom('in', 'out', 'none'), fc.constantFrom('in', 'out', 'none')),
});
type Person = typeof person extends fc.Arbitrary<infer T> ? T : never;

/** What somebody does between two runs, to the person of that number. */
export const event = fc.record({
  who: fc.nat(),
  what: fc.constantFrom(
    'leaves',
    'unsubscribes',
    'returns',
    'is deleted',
    'signs up',
    'crm yes',
    'crm no',
    'crm drops',
  ),
});
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

/**
 * The key of a person, in pairs that differ where a search may take one for the other. One pair in
 * three has a domain that is not ASCII in the CRM's spelling.
 */
export function addressOf(at: number): string {
  const pair = Math.floor(at / 2);
  const domain = pair % 3 === 2 ? 'xn--mller-kva.com' : 'example.com';
  return `p${at % 2 ? 'x' : '_'}${pair}@${domain}`;
}

function spell(at: number, { spelling }: Person): string {
  const address = withLetters(addressOf(at));
  if (spelling === 'upper') return address.toUpperCase();
  return spelling === 'spaced' ? `  ${address.normalize('NFD')} ` : address;
}

export function arrange(
  stage: Pick<Stage, 'people' | 'emulator'> & { clock: Pick<Clock, 'now'> },
  people: readonly Person[],
): void {
  for (const [at, who] of people.entries()) {
    const [news, product] = who.wishes;
    const record = {
      id: `${at}`,
      email: spell(at, who),
      deleted: who.crm === 'deleted' ? 'true' : '',
      unsubscribed: who.unsubscribed,
      ch_news: news,
      ch_product: product,
    };
    if (who.crm !== 'absent') stage.people.push(record);
    if (who.crm === 'twice') {
      stage.people.push({
        ...record,
        id: `${at}-twin`,
        email: addressOf(at),
        ch_news: who.twinWish,
      });
    }
    if (who.platform === 'absent') continue;
    const shown = channels.map((id, index) => [id, who.shown[index]] as const);
    const rows = shown
      .filter(([, is]) => is !== 'none')
      .map(([id, is]) => [id, is === 'in' ? 'opt_in' : 'opt_out']);
    stage.emulator.seed.contact({
      // Who signed up elsewhere may be spelt in any case.
      email: who.spelling === 'upper' ? addressOf(at).toUpperCase() : addressOf(at),
      status:
        who.platform === 'unsubscribed' || who.platform === 'blocked' ? who.platform : 'subscribed',
      suppressionReason: who.platform === 'suppressed' ? 'bounce' : undefined,
      channels: Object.fromEntries(rows),
      // Imported in batches: several of one millisecond.
      createdAt: stage.clock.now() - 86_400_000 - Math.floor(at / 4),
    });
  }
}

export function happen(stage: Stage, { who, what }: Event, count: number): void {
  const address = addressOf(who % count);
  const known = stage.emulator.world.contact(thereAs(stage.emulator, address));
  const { dashboard } = stage.emulator;
  const records = stage.people.filter(({ email }) => keyOf(String(email)) === address);
  if (what === 'leaves' && known) dashboard.leave(known.id, 'ch_news');
  else if (what === 'unsubscribes' && known) dashboard.unsubscribe(known.id);
  else if (what === 'returns' && known) dashboard.resubscribe(known.id);
  else if (what === 'is deleted' && known) dashboard.deleteContact(known.id);
  else if (what === 'signs up' && !known)
    dashboard.signUp({ email: address.toUpperCase(), channels: ['ch_news'] });
  else if (what === 'crm yes') for (const record of records) record['ch_news'] = 'yes';
  else if (what === 'crm no') for (const record of records) record['ch_news'] = 'no';
  else if (what === 'crm drops')
    stage.people = stage.people.filter((record) => !records.includes(record));
}

interface Standing {
  left: boolean;
  memberships: Map<string, string>;
}

export function standings(stage: Stage): Map<string, Standing> {
  return new Map(
    stage.emulator.world.contacts().map((contact) => [
      keyOf(contact.email),
      {
        left: contact.status !== 'subscribed' || contact.suppressionReason !== null,
        memberships: new Map(contact.channels.map(({ id, subscription }) => [id, subscription])),
      },
    ]),
  );
}

/** Who the CRM names at all, whether or not it says anything of use about them. */
function namedBy(stage: Stage): Set<string> {
  return new Set(stage.people.map(({ email }) => keyOf(String(email))));
}

export function checkWrites(
  stage: Stage,
  before: Map<string, Standing>,
  oursOut: ReadonlySet<string>,
): void {
  const named = namedBy(stage);
  for (const write of stage.writes()) {
    if (write.route !== 'contacts.enrol' || !isDone(write)) continue;
    const address = keyOf(write.email ?? '');
    const standing = before.get(address);
    expect(named, `${address} is foreign`).toContain(address);
    if (write.subscription !== 'opt_in') continue;
    expect(standing?.left ?? false, `${address} had left all mail`).toBe(false);
    const key = `${address} ${write.channelId}`;
    const was = standing?.memberships.get(write.channelId ?? '');
    if (was === 'opt_out') expect(oursOut, `${key} had left`).toContain(key);
  }
}

/** The opt-outs that we made on the CRM's word, as the emulator's log tells. */
export function oursOf(stage: Stage): Set<string> {
  const ours = new Set<string>();
  for (const { route, status, email, channelId, subscription } of stage.emulator.world.requests()) {
    if (route !== 'contacts.enrol' || !isDone({ status })) continue;
    const part = `${keyOf(email ?? '')} ${channelId}`;
    if (subscription === 'opt_out') ours.add(part);
    else ours.delete(part);
  }
  return ours;
}

/** A status of 0: a request that a fault kept from the platform. */
function isDone({ status }: { status: number }): boolean {
  return status >= 200 && status < 300;
}

// Spellings of one address, found by other means than the product's.

/** Returns the address in the one spelling that stands for all of them. */
export function keyOf(email: string): string {
  const text = email.trim().normalize('NFC').toLowerCase();
  const at = text.lastIndexOf('@') + 1;
  const url = `http://${text.slice(at)}`;
  return at > 0 && URL.canParse(url) ? text.slice(0, at) + new URL(url).hostname : text;
}

/** The domain of an address in `people of the world`, as the CRM writes it. */
const domains: Record<string, string> = { 'xn--mller-kva.com': 'müller.com' };

/** Returns the address with the letters of its domain; the address itself if it has no others. */
export function withLetters(key: string): string {
  const [local, host = ''] = key.split('@');
  return `${local}@${domains[host] ?? host}`;
}

/** Returns the address as the platform spells it; the key if no contact has it. */
export function thereAs({ world }: Pick<Emulator, 'world'>, key: string): string {
  return world.contacts().find(({ email }) => keyOf(email) === key)?.email ?? key;
}

// Somebody whose address changes in the CRM.

export const OLD = 'old@example.com';
export const NEW = 'new@example.com';

interface Moving extends StageOptions {
  /** What was there before the move. */
  before?(stage: Stage): void;
}

/** Lea is in both channels under the old address, and the CRM has the new one. */
export async function moved(wishes: object = {}, options: Moving = {}): Promise<Stage> {
  const { before = known } = options;
  const stage = openStage(options);
  before(stage);
  await stage.sync();
  stage.people[0] = { id: '1', email: NEW, ch_news: 'yes', ch_product: 'yes', ...wishes };
  stage.writes();
  return stage;
}

function known({ people }: Stage): void {
  people.push({ id: '1', email: OLD, ch_news: 'yes', ch_product: 'yes' });
}

/** Lists what was sent: operation, address, channel. */
export const sent = (stage: Stage) =>
  stage.writes().map(({ method, subscription, contactId, email, channelId, status }) => {
    const now = stage.emulator.world.contacts().find(({ id }) => id === contactId)?.email;
    const who = now ?? email ?? contactId;
    const how = status < 300 ? '' : ' no';
    if (method === 'DELETE') return `delete ${who}${how}`;
    return `${subscription} ${who} ${channelId}${how}`;
  });

// What the CRM of a stage wants, told apart from how the engine finds it out.

const yes = new Set(['yes', 'true', '1', 'opt_in']);
const no = new Set(['no', '0']);

export type Wish = 'opt_in' | 'opt_out' | undefined;

/** Of one person, given as all their CRM records: any no wins; who is broken is never opted in. */
export function wishOf(records: readonly Record<string, unknown>[], channel: string): Wish {
  const words = records.map((record) => wordOf(record[channel]));
  const leaves = records.some((record) => record['unsubscribed'] === 'true');
  if (leaves || words.some((word) => no.has(word))) return 'opt_out';
  if (records.some(isBroken)) return undefined;
  const living = records.filter((record) => record['deleted'] !== 'true');
  const wants = living.some((record) => yes.has(wordOf(record[channel])));
  return wants ? 'opt_in' : undefined;
}

export function isBroken(record: Readonly<Record<string, unknown>>): boolean {
  return channels.some((id) => record[id] === 'maybe');
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase() : '';
}

/** By address and channel. */
export function wishesOf(stage: Stage): { address: string; channel: string; wish: Wish }[] {
  const addressOf = (record: Record<string, unknown>) => keyOf(String(record['email']));
  const addresses = new Set(stage.people.map(addressOf));
  return [...addresses].flatMap((address) => {
    const records = stage.people.filter((record) => addressOf(record) === address);
    return channels.map((channel) => ({ address, channel, wish: wishOf(records, channel) }));
  });
}

// Templates on both sides of a mirror.

/** What may be true of one template on both sides before a run. */
export const letter = fc.record({
  crm: fc.constantFrom('absent', 'bare', 'content', 'whole'),
  platform: fc.constantFrom('absent', 'equal', 'differs', 'twice'),
});
type Letter = typeof letter extends fc.Arbitrary<infer T> ? T : never;

const content = [{ type: 'text', text: 'Dear {{name}}, {{ city }} is waiting' }];
const variables = [
  { name: 'city', type: 'string' as const, defaultValue: 'Oslo' },
  { name: 'name', type: 'string' as const, defaultValue: null },
];
const forms = {
  bare: { subject: 'Hello' },
  content: { subject: 'Hello', content },
  whole: {
    subject: 'Hello',
    description: 'To all',
    content,
    variables,
    fromEmail: 'team@example.org',
    status: 'published' as const,
  },
};

export function arrangeLetters(
  stage: Pick<Stage, 'templates' | 'emulator'>,
  letters: readonly Letter[],
): void {
  for (const [at, { crm, platform }] of letters.entries()) {
    const name = `letter-${at}`;
    const form = forms[crm === 'absent' ? 'bare' : crm];
    if (crm !== 'absent') stage.templates.push({ key: name, name, ...form });
    const { template } = stage.emulator.seed;
    if (platform !== 'absent') template({ name, ...form, ...(platform === 'differs' && other) });
    if (platform === 'twice') template({ name, ...form });
  }
}

const other = { subject: 'Somebody wrote this on the platform' };

/** Templates the source states that the platform does not show so, by key. */
export function unlikeLetters(stage: Stage): string[] {
  const shown = stage.emulator.world.templates();
  const unlike = stage.templates.filter(({ key: _, ...fields }) => {
    const same = shown.filter(({ name }) => name === fields['name']);
    const [only] = same;
    return (
      same.length !== 1 ||
      Object.entries(fields).some(
        ([field, value]) => canonicalJson(Reflect.get(only ?? {}, field)) !== canonicalJson(value),
      )
    );
  });
  return unlike.map(({ key }) => String(key));
}
