/** The account a snapshot belongs to: another key, another address, and how it is moved. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseSeedFile } from '../../src/emulator/seed/seed-file.ts';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import { servePlatform } from '../support/engine/platform-server.ts';
import type { WorldOptions } from '../support/engine/engine-world.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const OTHER = 'key_live_other';
const two = `
organizations:
  - id: org_a
  - id: org_b
    keys: [{ key: ${OTHER} }]
    channels: [{ id: ch_news, name: News }, { id: ch_product, name: Product }]
    people: [{ id: con_b, email: ${ann}, channels: { ch_news: opt_in } }]
    templates: [{ id: tpl_b, name: welcome }]
`;
const both: WorldOptions['kinds'] = ['contact', 'template'];

/** Ann and Bob are recorded, with the key and organization of the first run. */
async function bound(kinds: WorldOptions['kinds'] = ['contact']): Promise<Mirrored> {
  const world = await mirrored({ kinds, platform: { seedFile: parseSeedFile('two.yaml', two) } });
  world.template('welcome', { subject: 'Hi' });
  for (const times of [1, 2]) {
    expect({ times, code: (await world.call('sync')).code }).toEqual({ times, code: 0 });
  }
  world.server.arrived.length = 0;
  world.writes();
  return world;
}

const rotate = ({ emulator, config }: Mirrored): string =>
  config({ key: emulator.dashboard.createKey({ name: 'rotated' }).key });

const routes = ({ server }: Mirrored): string[] => server.arrived.map(({ route }) => route);

describe('another key', () => {
  test.each([
    { kinds: both, how: 'its templates name the same organization', asks: ['templates.list'] },
    {
      kinds: ['contact' as const],
      how: '2 of 2 recorded contacts that were looked for are there',
      asks: ['contacts.retrieve', 'contacts.retrieve'],
    },
    {
      kinds: ['template' as const],
      how: 'its templates name the same organization',
      asks: ['templates.list'],
    },
  ])(
    'is proven first to be of the same organization ($kinds), and reported once',
    async ({ kinds, how, asks }) => {
      const world = await bound(kinds);
      rotate(world);
      const planned = await world.call('plan', '--json');
      expect(planned).toMatchObject({ code: 0, json: { reasons: [expect.stringContaining(how)] } });
      expect(planned.json.reasons[0]).toContain('will belong to the new key');
      world.server.arrived.length = 0;
      const { code, json } = await world.call('sync', '--json');
      expect({ code, status: json.status }).toEqual({ code: 0, status: 'done' });
      expect(json.reasons).toEqual([expect.stringContaining(how)]);
      expect(routes(world).slice(0, asks.length)).toEqual(asks);
      expect(world.writes()).toEqual([]);
      world.server.arrived.length = 0;
      expect((await world.call('sync', '--json')).json.reasons).toEqual([]);
      expect(routes(world).filter((route) => route === 'contacts.retrieve')).toEqual([]);
    },
  );

  test.each([both, ['contact' as const]])(
    'is refused for another organization (%s): nothing is sent or recorded',
    async (...kinds) => {
      const world = await bound(kinds);
      world.people([
        { email: ann, news: 'no' },
        { email: bob, news: 'no' },
      ]);
      const before = recordedIn(world);
      world.config({ key: OTHER });
      for (const words of [['plan'], ['sync'], ['sync', '--fast'], ['backfill'], ['rebind']]) {
        const { code, err } = await world.call(...words);
        expect({ words, code }).toEqual({ words, code: 2 });
        expect(err).toMatch(
          /^crm-mirror: platform.apiKey is not proven to be of the organization.*→[^\n]*$/,
        );
        expect(err).not.toContain(OTHER);
      }
      expect(world.writes()).toEqual([]);
      expect(recordedIn(world)).toEqual(before);
      const [theirs] = world.emulator.player('org_b').world.contacts();
      expect(theirs?.channels).toMatchObject([{ id: 'ch_news', subscription: 'opt_in' }]);
      // With its own key it goes on, and has nothing to prove.
      world.config();
      expect((await world.call('sync', '--json')).json).toMatchObject({ reasons: [] });
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
    },
  );

  test.each([
    ['an unknown key', { key: 'key_live_unknown' }, undefined, /platform\.apiKey/],
    ['no answer', {}, { is: 'cut' as const }, /cut the connection/],
    ['no right to look', {}, { is: 'answer' as const, status: 403 }, /contacts\.retrieve \(403\)/],
  ])('%s proves nothing: exit 1, and the snapshot stays bound', async (_, lines, fault, said) => {
    const world = await bound();
    if (fault) {
      rotate(world);
      world.server.fail(({ route }) => route === 'contacts.retrieve', fault);
    } else world.config(lines);
    world.people([{ email: ann, news: 'no' }]);
    const { code, err, json } = await world.call('sync', '--json');
    expect({ code, status: json.status }).toEqual({ code: 1, status: 'failed' });
    expect(json.reasons.join() + err).toMatch(said);
    expect(new Set(routes(world))).toEqual(new Set(['contacts.retrieve']));
    expect(world.writes()).toEqual([]);
    world.config();
    expect((await world.call('sync', '--json')).json).toMatchObject({ reasons: [] });
  });
});

describe('another address', () => {
  test('is refused until `rebind` has proven it to be the same organization', async () => {
    const world = await bound();
    const moved = await servePlatform(world.emulator);
    world.config({ url: moved.url });
    for (const command of ['plan', 'sync']) {
      const { code, err } = await world.call(command);
      expect({ command, code }).toEqual({ command, code: 2 });
      expect(err).toMatch(/belongs to the platform at .*`crm-mirror rebind -c [^`]+`/);
    }
    expect(moved.arrived).toEqual([]);
    expect(await world.call('rebind', '--json')).toMatchObject({
      code: 0,
      json: {
        was: world.server.url,
        url: moved.url,
        moved: true,
        proof: { same: true, by: 'contacts', found: 2, of: 2 },
      },
    });
    expect(await world.call('sync', '--json')).toMatchObject({ code: 0, json: { reasons: [] } });
    expect(moved.arrived.filter(({ method }) => method !== 'GET')).toEqual([]);
    const again = await world.call('rebind', '--json');
    expect(again).toMatchObject({ code: 0, json: { moved: false, proof: null } });
  });

  test('is not taken over by `rebind` for another organization', async () => {
    const world = await bound();
    const other = await mirrored();
    other.emulator.seed.contact({ email: ann, channels: { ch_news: 'opt_in' } });
    world.config({ url: other.server.url });
    const { code, err } = await world.call('rebind');
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('0 of 2 recorded') });
    expect(other.writes()).toEqual([]);
    world.config();
    expect((await world.call('sync')).code).toBe(0);
  });

  test('on another platform is not proven by a contact with the same id', async () => {
    const world = await bound();
    for (const email of [ann, bob])
      world.emulator.dashboard.editContact(email, { email: `new-${email}` });
    const moved = await servePlatform(world.emulator);
    world.config({ url: moved.url });
    const { code, err } = await world.call('rebind');
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('0 of 2 recorded') });
    // On the same one an id is nobody else's, whatever the address.
    rotate(world);
    expect((await world.call('rebind')).code).toBe(0);
  });

  test('`rebind` needs a snapshot, and the lease', async () => {
    const world = await mirrored();
    expect(await world.call('rebind')).toMatchObject({
      code: 2,
      err: expect.stringContaining('no snapshot yet'),
    });
    await world.call('sync');
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    expect((await world.call('rebind')).code).toBe(75);
  });
});

describe('another mirror', () => {
  test('is refused by every run, and changes nobody of the one that the snapshot is of', async () => {
    const world = await bound();
    world.people([]);
    world.config({ mirror: 'beta' });
    const person = ['sync', '--person', ann];
    for (const words of [['plan'], ['sync'], ['sync', '--fast'], person, ['check']]) {
      const { code, err, out } = await world.call(...words);
      expect({ words, code }).toEqual({ words, code: 2 });
      expect(err + out).toMatch(
        /belongs to the mirror world, .* names beta.*name another snapshot.*`crm-mirror rebind/s,
      );
    }
    expect(world.writes()).toEqual([]);
    world.config();
    world.people([{ email: ann, news: 'yes' }]);
    expect((await world.call('sync')).code).toBe(0);
  });

  test('takes the snapshot over by `rebind`, and the former one is refused then', async () => {
    const world = await bound();
    world.config({ mirror: 'beta' });
    const moved = await world.call('rebind', '--json');
    expect(moved).toMatchObject({ code: 0, json: { mirror: 'beta', moved: true, proof: null } });
    expect(await world.call('sync', '--json')).toMatchObject({ code: 0, json: { reasons: [] } });
    world.config();
    expect(await world.call('sync')).toMatchObject({
      code: 2,
      err: expect.stringContaining('belongs to the mirror beta'),
    });
    expect((await world.call('rebind')).out).toContain('until now it was that of the mirror beta');
  });

  test('takes a snapshot that knows no name, or has no record', async () => {
    const world = await bound();
    const { meta, close } = openSnapshot(world.path);
    meta.drop('mirror-name');
    close();
    world.config({ mirror: 'beta' });
    expect((await world.call('sync')).code).toBe(0);
    world.config();
    expect((await world.call('sync')).code).toBe(2);
  });
});

test('the sample for the proof is spread over all records with an id', () => {
  const { recorded, close } = openSnapshot('', { inMemory: true });
  onTestFinished(close);
  const row = { kind: 'contact' as const, ownership: 'created' as const, body: '{}', seenAt: 0 };
  for (let at = 0; at < 1_000; at += 1) {
    const id = at % 2 === 0 ? `con_${at}` : undefined;
    recorded.put({ ...row, key: `p${1_000 + at}`, id, shown: undefined, desired: undefined });
  }
  const keys = recorded
    .sample({ kind: 'contact', most: 20 })
    .map(({ key }) => Number(key.slice(1)) - 1_000);
  expect(keys).toEqual(Array.from({ length: 20 }, (_, at) => at * 50));
  expect(recorded.sample({ kind: 'template', most: 20 })).toEqual([]);
  recorded.drop('contact', 'p1000');
  expect(recorded.sample({ kind: 'contact', most: 1_000 })).toHaveLength(499);
});

function recordedIn({ path }: Mirrored): unknown[] {
  const { recorded, close } = openSnapshot(path);
  const rows = [ann, bob].map((email) => recorded.get('contact', email));
  close();
  return rows;
}
