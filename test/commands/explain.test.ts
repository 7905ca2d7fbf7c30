import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { rules } from '../../src/records/contact/consent/rules.ts';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import {
  ann,
  bob,
  heldNewcomers,
  mirrored,
  type Mirrored,
} from '../support/commands/mirrored-contacts.ts';

const head = 'id,email,news,product,lost\n';
const record = (id: string, email: string, news: string): string => `${id},${email},${news},,\n`;

/** What explain says of one channel of a person, in short. */
async function tell(world: Mirrored, who = ann, ...flags: string[]) {
  const { code, json, err } = await world.call('explain', who, '--json', ...flags);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const [news] = json.channels ?? [];
  const { tried: _, ...rest } = news ?? {};
  return { ...json, news: rest };
}

const fingerprint = (path: string): string =>
  createHash('sha256').update(readFileSync(path)).digest('hex');

type Situation = [name: string, arrange: (world: Mirrored) => unknown, is: object];

const situations: Situation[] = [
  [
    'wanted, and nowhere',
    (world) => world,
    {
      known: true,
      snapshot: null,
      news: { by: 'not-on-platform', decision: 'create', observed: null },
    },
  ],
  [
    'in line',
    async (world) => world.call('sync'),
    {
      snapshot: { ownership: 'created', crmIds: [expect.stringMatching(/^#/)] },
      platform: { read: true, contacts: [{ status: 'subscribed', left: false }] },
      news: { by: 'already-in', decision: 'nothing', recorded: { is: 'opt_in', by: null } },
      sends: [],
      history: [{ op: 'create', outcome: 'acked', channel: 'ch_news' }],
    },
  ],
  [
    'left the channel since',
    async (world) => {
      await world.call('sync');
      world.emulator.dashboard.leave(ann, 'ch_news');
    },
    {
      snapshot: { channels: { ch_news: { is: 'opt_in' } } },
      news: {
        by: 'left-channel',
        decision: 'conflict',
        observed: 'opt_out',
        outweighed: false,
        problem: { reason: expect.stringContaining('opted out of this channel'), since: null },
      },
    },
  ],
  [
    'refused, and parked',
    async (world) => {
      world.server.fail(({ method }) => method === 'POST', { is: 'answer', status: 422 });
      await world.call('sync');
    },
    {
      news: { by: 'not-on-platform', decision: 'create' },
      sends: [],
      keptBack: [{ op: 'create', channel: 'ch_news', by: 'refused-before' }],
      parked: [{ channel: 'ch_news', attempts: 1, retryAt: null }],
      history: [{ outcome: 'rejected', reason: expect.stringContaining('answered 422') }],
    },
  ],
  [
    'an invalid record',
    (world) => world.csv(head + record('1', ann, 'perhaps')),
    {
      crm: { records: [{ place: 'line 2', invalid: { reason: expect.stringContaining('news') } }] },
      news: { by: 'no-opinion', decision: 'nothing' },
    },
  ],
  [
    'unknown to all',
    (world) => world.people([{ email: bob, news: 'yes' }]),
    { known: false, crm: { records: [] }, snapshot: null, platform: { contacts: [] }, history: [] },
  ],
  [
    'an uncertified reading of the CRM',
    (world) => world.csv(`${head}1,${ann},yes,,`),
    {
      crm: { read: true, certified: false },
      news: { by: 'uncertified', decision: 'nothing' },
      sends: [],
    },
  ],
];

test('what happened to a person is one line of time, with what was seen and decided', async () => {
  const eve = 'eve@example.com';
  const { plan, ...world } = await heldNewcomers();
  await world.call('approve', plan, '--reason', 'the campaign', '--by', 'ben');
  await world.call('sync');
  world.emulator.dashboard.leave(eve, 'ch_news');
  await world.call('sync');
  const why = ['--reason', 'by phone', '--evidence', 'a note', '--by', 'anna'];
  expect((await world.call('resolve', eve, '--channel', 'ch_news', '--out', ...why)).code).toBe(0);
  const { out } = await world.call('explain', eve, '--verbose', '--offline');
  const titles = [...out.matchAll(/^ {2}20\d\d-\S+Z {2}(.*)$/gm)].map(([, title]) => title);
  const times = [...out.matchAll(/^ {2}(20\d\d-\S+Z) {2}/gm)].map(([, at]) => at);
  expect(times).toEqual(times.toSorted((a = '', b = '') => b.localeCompare(a)));
  const found = (words: RegExp) => titles.findIndex((title) => words.test(title ?? ''));
  const order = [
    /^conflict: .* the person opted out/,
    /^opted out of ch_news on the platform/,
    /^anna resolved a conflict: by phone/,
    /^create ch_news – done \(run \S+\), approved by ben/,
    /^asked the platform: contacts\.enrol, answered 201/,
    /^ben approved changes, this person's among them: the campaign/,
  ].map(found);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(order).not.toContain(-1);
});

describe('explain', () => {
  test.each(situations)('%s', async (_, arrange, is) => {
    const world = await mirrored();
    await arrange(world);
    world.writes();
    const told = await tell(world);
    expect(told).toMatchObject(is);
    expect(world.writes()).toEqual([]);
    // What it announces is what a run about this person does.
    const { json } = await world.call('sync', '--person', ann, '--json');
    const { delete: _none, ...changes } = json.contacts.changes;
    const announced = Object.groupBy(told.sends, ({ op }: { op: string }) => op);
    expect({ create: 0, opt_in: 0, opt_out: 0, ...counts(announced) }).toEqual({
      create: changes.create,
      opt_in: changes.opt_in,
      opt_out: changes.opt_out,
    });
  });

  test.each([
    ['off', 'opt_out', 'a run opts out'],
    ['created', 'delete', 'a run deletes'],
  ])('tells that the CRM has replaced an address; deletes: %s', async (deletes, does, words) => {
    const world = await mirrored();
    world.config({ policy: { deletes } });
    const old = 'old@example.com';
    world.csv(head + record('1', old, 'yes'));
    await world.call('sync');
    expect((await tell(world, old)).snapshot.moved).toBeNull();
    world.csv(head + record('1', ann, 'yes'));
    const told = await tell(world, old, '--addresses');
    expect(told.snapshot.moved).toEqual({ to: [ann], does });
    expect((await world.call('explain', old)).out).toMatch(
      new RegExp(`in the CRM as #\\w+ by now: ${words} this contact once`),
    );
    await world.call('sync');
    const { channels, history } = (await world.call('explain', old, '--json')).json;
    expect(channels[0].observed).toBe(deletes === 'off' ? 'opt_out' : null);
    expect(history[0]).toMatchObject({ op: does, outcome: 'acked' });
  });

  test('prints every rule in order, up to the one that matches', async () => {
    const world = await mirrored();
    const { json } = await world.call('explain', ann, '--json');
    const [{ tried }] = json.channels;
    const ids = tried.map(({ id }: { id: string }) => id);
    expect(ids).toEqual(rules.slice(0, ids.length).map(({ id }) => id));
    expect(ids.at(-1)).toBe('not-on-platform');
    const matched = tried.filter(({ matches }: { matches: boolean }) => matches);
    expect(matched).toEqual([tried.at(-1)]);
  });

  test('lists the gates that were asked after the rules, and names the one that holds', async () => {
    const world = await mirrored();
    world.config({ policy: { optIns: 'off' } });
    const { json } = await world.call('explain', ann, '--json');
    const held = json.channels[0].gates.filter((gate: { held: boolean }) => gate.held);
    expect(held).toEqual([{ id: 'opt-ins-off', asks: 'policy.optIns is off', held: true }]);
    const { out } = await world.call('explain', ann, '--verbose');
    expect(out).toMatch(/yes +not-on-platform +opt-in wanted; not on the platform/);
    expect(out).toMatch(/no +channel-lost +gate: most members lost this channel at the same time/);
    expect(out).toMatch(/yes: this decided +opt-ins-off +gate: policy.optIns is off/);
  });

  test('prints what is recorded when the CRM cannot be read, and decides nothing', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.csv('who,where\n1,2\n');
    const told = await tell(world);
    expect(told).toMatchObject({
      known: true,
      crm: { read: false, why: expect.stringContaining('column') },
      snapshot: { ownership: 'created' },
      platform: { read: true, contacts: [{ status: 'subscribed' }] },
      channels: null,
      sends: null,
      history: [{ outcome: 'acked' }],
    });
    expect((await world.call('explain', ann)).out).toContain('so nothing is decided');
  });

  test('asks nobody with --offline, and uses what is recorded when the platform is unreachable', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(ann, 'ch_news');
    const before = world.server.arrived.length;
    const nobody = { read: false, why: 'not asked' };
    expect(await tell(world, ann, '--offline')).toMatchObject({
      crm: { ...nobody, certified: false, records: [], mentions: [] },
      platform: { ...nobody, contacts: [] },
      snapshot: { ownership: 'created', channels: { ch_news: { is: 'opt_in' } } },
      channels: null,
      sends: null,
      missing: [],
    });
    expect(world.server.arrived).toHaveLength(before);
    world.server.fail(() => true, { is: 'answer', status: 403 });
    expect(await tell(world)).toMatchObject({
      platform: { read: false, why: expect.stringContaining('403') },
      news: { by: 'already-in' },
    });
  });

  test('takes no lease, changes nothing, makes no snapshot', async () => {
    const world = await mirrored();
    await tell(world);
    expect(() => readFileSync(world.path)).toThrow(/ENOENT/);
    await world.call('sync');
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    const before = fingerprint(world.path);
    world.people([{ email: ann, news: 'no' }]);
    expect(await tell(world)).toMatchObject({ sends: [{ op: 'opt_out' }] });
    expect(fingerprint(world.path)).toBe(before);
  });

  test('says of somebody who was never in the CRM only that it does not name them', async () => {
    const world = await mirrored();
    world.emulator.seed.contact({ email: 'eve@example.com', channels: { ch_news: 'opt_in' } });
    await world.call('sync');
    const { out } = await world.call('explain', 'eve@example.com', '--verbose');
    expect(out).toContain('the CRM does not name this person; recorded –; the platform shows');
    expect(out).toMatch(
      /yes: this decided +gone-not-ours +missing from the CRM, flagged as deleted, or out of scope; not/,
    );
    expect(out).not.toMatch(/wants gone|left the CRM/);
    world.csv(`id,email,news,product,lost,gone\n1,${bob},yes,,,yes\n`);
    world.config({ contacts: { deleted: 'gone' } });
    const told = (await world.call('explain', bob)).out;
    expect(told).toContain('the CRM has this person as deleted, or out of scope; recorded opt in');
  });

  test('takes a hash, and prints hashes instead of names without --addresses', async () => {
    const world = await mirrored();
    world.emulator.seed.contact({ email: ann, firstName: 'Annabel' });
    await world.call('sync');
    const told = await world.call('explain', ann, '--json');
    expect(told.out).not.toMatch(/ann@example|Annabel/);
    const { person } = told.json;
    expect(person).toMatch(/^#[0-9a-f]{12}$/);
    expect((await world.call('explain', person, '--json')).json).toEqual(told.json);
    const { err } = await world.call('explain', '#9cc428f416d4');
    expect(err).toContain('CRM → hashes hold from the first run on: give the address');
    const loud = await world.call('explain', person, '--json', '--addresses');
    const [contact] = loud.json.platform.contacts;
    expect(loud.json.person).toBe(ann);
    expect(contact.notSynced).toMatchObject({ firstName: 'Annabel' });
    const seen = (await world.seen('explain', ann)).out;
    expect(seen).toContain('not synced: name "Annabel"');
    expect(seen).toContain('ch_news: nothing to do: opt-in wanted; subscribed (already-in)');
    expect(seen).toContain('subscription: column "news" holds "yes": in (line 2)');
  });

  test('announces only opt-outs while the outcome of a change is unknown', async () => {
    const world = await mirrored();
    world.config({ timeoutMs: 1_000 });
    world.server.fail(({ method }) => method === 'POST', { is: 'half' });
    world.server.fail(({ nth, route }) => route === 'contacts.list' && nth > 1, {
      is: 'answer',
      status: 403,
    });
    await world.call('sync');
    const told = await tell(world);
    expect(told).toMatchObject({ sends: [], history: [{ outcome: 'unknown' }] });
    expect(told.keptBack).toMatchObject([{ op: 'create', by: 'outcome-open' }]);
    expect((await world.call('explain', ann)).out).toContain('is not known yet');
  });
});

function counts(groups: Partial<Record<string, unknown[]>>): Record<string, number> {
  return Object.fromEntries(Object.entries(groups).map(([op, all]) => [op, all?.length ?? 0]));
}

test('names the record of a CRM id that has no usable address, and what is wrong with it', async () => {
  const world = await mirrored();
  world.csv(`${head}${record('17', 'eve@', 'yes')}`);
  const { code, err } = await world.call('explain', '17');
  expect(code).toBe(2);
  expect(err).toMatch(/the CRM record with this id \(line 2\) has no usable address: "email" .*→ /);
});
