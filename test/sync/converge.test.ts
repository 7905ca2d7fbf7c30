import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { channels, createStage, type Stage } from './process.ts';

/** What may be true of one address on both sides before a run. */
const person = fc.record({
  crm: fc.constantFrom('absent', 'once', 'twice', 'deleted'),
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
const event = fc.record({
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

const addressOf = (at: number): string => `p${at}@example.com`;

function spell(at: number, { spelling }: Person): string {
  const address = addressOf(at);
  if (spelling === 'upper') return address.toUpperCase();
  return spelling === 'spaced' ? `  ${address} ` : address;
}

function arrange(stage: Stage, people: Person[]): void {
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
      email: addressOf(at),
      status:
        who.platform === 'unsubscribed' || who.platform === 'blocked' ? who.platform : 'subscribed',
      suppressionReason: who.platform === 'suppressed' ? 'bounce' : undefined,
      channels: Object.fromEntries(rows),
      createdAt: stage.clock.now() - 86_400_000 - at,
    });
  }
}

function happen(stage: Stage, { who, what }: Event, count: number): void {
  const address = addressOf(who % count);
  const known = stage.emulator.world.contact(address);
  const { dashboard } = stage.emulator;
  const records = stage.people.filter(
    ({ email }) => String(email).trim().toLowerCase() === address,
  );
  if (what === 'leaves' && known) dashboard.leave(known.id, 'ch_news');
  else if (what === 'unsubscribes' && known) dashboard.unsubscribe(known.id);
  else if (what === 'returns' && known) dashboard.resubscribe(known.id);
  else if (what === 'is deleted' && known) dashboard.deleteContact(known.id);
  else if (what === 'signs up' && !known)
    dashboard.signUp({ email: address, channels: ['ch_news'] });
  else if (what === 'crm yes') for (const record of records) record['ch_news'] = 'yes';
  else if (what === 'crm no') for (const record of records) record['ch_news'] = 'no';
  else if (what === 'crm drops')
    stage.people = stage.people.filter((record) => !records.includes(record));
}

interface Standing {
  left: boolean;
  memberships: Map<string, string>;
}

function standings(stage: Stage): Map<string, Standing> {
  return new Map(
    stage.emulator.world.contacts().map((contact) => [
      contact.email,
      {
        left: contact.status !== 'subscribed' || contact.suppressionReason !== null,
        memberships: new Map(contact.channels.map(({ id, subscription }) => [id, subscription])),
      },
    ]),
  );
}

/** Who the CRM names at all, whether or not it says anything of use about them. */
function namedBy(stage: Stage): Set<string> {
  return new Set(stage.people.map(({ email }) => String(email).trim().toLowerCase()));
}

function checkWrites(
  stage: Stage,
  before: Map<string, Standing>,
  oursOut: ReadonlySet<string>,
): void {
  const named = namedBy(stage);
  for (const write of stage.writes()) {
    if (write.route !== 'contacts.enrol' || write.status >= 300) continue;
    const address = write.email ?? '';
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
function oursOf(stage: Stage): Set<string> {
  const ours = new Set<string>();
  for (const { route, status, email, channelId, subscription } of stage.emulator.world.requests()) {
    if (route !== 'contacts.enrol' || status >= 300) continue;
    if (subscription === 'opt_out') ours.add(`${email} ${channelId}`);
    else ours.delete(`${email} ${channelId}`);
  }
  return ours;
}

describe('convergence over seeded worlds', () => {
  test('round two is empty, nobody who left is opted in, nobody foreign is touched', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(person, { minLength: 1, maxLength: 12 }),
        fc.array(fc.array(event, { maxLength: 6 }), { maxLength: 3 }),
        fc.constantFrom('full' as const, 'fast' as const),
        async (people, rounds, mode) => {
          const stage = createStage();
          arrange(stage, people);
          for (const events of [[], ...rounds]) {
            for (const one of events) happen(stage, one, people.length);
            if (stage.people.length === 0 && stage.snapshot.recorded.count('contact') > 0) break;
            const before = standings(stage);
            const ours = oursOf(stage);
            const first = await stage.sync({ mode });
            expect(first.reasons).toEqual([]);
            checkWrites(stage, before, ours);
            const settled = mode === 'fast' ? await stage.sync({ mode: 'full' }) : first;
            expect(settled.reasons).toEqual([]);
            checkWrites(stage, standings(stage), oursOf(stage));
            const again = await stage.sync({ mode: 'full' });
            expect(stage.writes()).toEqual([]);
            expect(again.contacts.changes).toEqual({
              create: 0,
              opt_in: 0,
              opt_out: 0,
              delete: 0,
              adopt: 0,
              forget: 0,
            });
          }
          stage.close();
        },
      ),
      { numRuns: 200, seed: 20_261_120 },
    );
  }, 120_000);
});

describe('one pass', () => {
  test('opts in who should be, out who should be, and leaves who left alone', async () => {
    const stage = createStage();
    const seed = (email: string, is?: 'opt_in' | 'opt_out') =>
      stage.emulator.seed.contact({ email, channels: is ? { ch_news: is } : {} });
    seed('equal@example.com', 'opt_in');
    seed('left@example.com', 'opt_out');
    seed('unwanted@example.com', 'opt_in');
    seed('bare@example.com');
    seed('foreign@example.com', 'opt_in');
    const wishes = {
      new: 'yes',
      equal: 'yes',
      left: 'yes',
      unwanted: 'no',
      bare: 'yes',
      never: 'no',
    };
    for (const [name, wish] of Object.entries(wishes)) {
      stage.people.push({ id: name, email: `${name}@example.com`, ch_news: wish });
    }
    const summary = await stage.sync();
    expect(summary.status).toBe('done');
    expect(summary.contacts.applied).toEqual({ create: 1, opt_in: 1, opt_out: 1, delete: 0 });
    expect(summary.contacts.changes).toMatchObject({ adopt: 4 });
    expect(summary.contacts.conflicts).toBe(1);
    const shown = standings(stage);
    const is = (name: string) => shown.get(`${name}@example.com`)?.memberships.get('ch_news');
    expect([is('new'), is('equal'), is('left'), is('unwanted'), is('bare'), is('foreign')]).toEqual(
      ['opt_in', 'opt_in', 'opt_out', 'opt_out', 'opt_in', 'opt_in'],
    );
    expect(shown.has('never@example.com')).toBe(false);
    stage.close();
  });

  test('a person the CRM drops is kept, and an empty CRM is a failure that changes nothing', async () => {
    const stage = createStage();
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.people.pop();
    expect((await stage.sync()).status).toBe('done');
    stage.people.pop();
    stage.writes();
    const empty = await stage.sync();
    expect(empty.status).toBe('failed');
    expect(empty.reasons.join()).toContain('the source of contacts is empty, but 2 are recorded');
    expect(stage.writes()).toEqual([]);
    expect(stage.emulator.world.contacts()).toHaveLength(2);
    stage.close();
  });

  test('an uncertified reading opts out and does nothing else', async () => {
    const stage = createStage();
    stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no', ch_product: 'yes' });
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'yes' });
    Object.assign(stage.certificate, { complete: false, why: 'row 7 is ragged', fix: 'mend it' });
    const summary = await stage.sync();
    expect(summary.status).toBe('failed');
    expect(summary.certificate.source).toBe(false);
    expect(summary.contacts.applied).toEqual({ create: 0, opt_in: 0, opt_out: 1, delete: 0 });
    stage.close();
  });

  test('a fast run looks before it creates or opts in, and finds who is there', async () => {
    const stage = createStage();
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.emulator.dashboard.signUp({ email: 'b@example.com', channels: ['ch_news'] });
    stage.emulator.dashboard.leave('b@example.com', 'ch_news');
    stage.emulator.dashboard.leave('a@example.com', 'ch_product');
    await stage.clock.advance(3_600_000);
    stage.people[0] = { id: '1', email: 'a@example.com', ch_news: 'yes', ch_product: 'yes' };
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'yes' });
    stage.writes();
    const summary = await stage.sync({ mode: 'fast' });
    expect(stage.writes()).toEqual([]);
    expect(summary.contacts.conflicts).toBe(2);
    expect(summary.status).toBe('done');
    stage.close();
  });

  test('a person who left under a former address stays out under the new one', async () => {
    const stage = createStage();
    stage.people.push({ id: '1', email: 'old@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.emulator.dashboard.leave('old@example.com', 'ch_news');
    await stage.sync();
    stage.people[0] = { id: '1', email: 'new@example.com', ch_news: 'yes' };
    stage.writes();
    const summary = await stage.sync();
    expect(stage.writes()).toEqual([]);
    expect(summary.contacts.conflicts).toBe(1);
    stage.close();
  });
});
