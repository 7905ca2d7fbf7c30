/** People on both sides of a mirror, what happens to them, and what must never be sent to them. */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Clock } from '../../../src/domain/clock.ts';
import { keyOf, thereAs, withLetters } from './address-spelling.ts';
import { channels } from './engine-mirror.ts';
import type { Stage } from './engine-stage.ts';

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
