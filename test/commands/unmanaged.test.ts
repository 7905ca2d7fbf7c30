/** People who are deleted in the CRM, or left out, and subscribed without the mirror. */
import { describe, expect, test } from 'vitest';
import { searchPeople } from '../../src/views/person/person-records.ts';
import { see } from '../../src/views/lookup/seen-mirror.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const eve = 'eve@example.com';
const finn = 'finn@example.com';
const lead = 'lead@example.com';
const gone = [eve, finn];
const contacts = { deleted: 'gone', include: 'record.stage != "lead"' };
const line = (id: number, email: string, rest: string) => `${id},${email},yes,${rest}`;
const crm = (...rows: string[]) => ['id,email,news,product,gone,stage', ...rows, ''].join('\n');
const all = [
  line(1, ann, ',,'),
  line(2, eve, ',yes,'),
  line(3, finn, ',yes,'),
  line(4, lead, ',,lead'),
];

/** Two people deleted and one left out, who are subscribed on the platform. */
async function begun(...more: string[]): Promise<Mirrored> {
  const world = await mirrored({ lines: { contacts } });
  for (const email of [eve, finn, lead, ...more]) {
    world.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  }
  world.csv(crm(...all));
  return world;
}

const isIn = (world: Mirrored, email: string) =>
  world.emulator.world
    .contact(email)
    ?.channels.some(({ id, subscription }) => id === 'ch_news' && subscription === 'opt_in');
const both = { deleted: 2, outOfScope: 1 };
const none = { deleted: 0, outOfScope: 0 };
const deletedWords =
  '2 people whom the CRM marks as deleted are subscribed on the platform and not managed by this mirror';
const leftOutWords =
  '1 person whom contacts.include leaves out is subscribed on the platform and not managed by this mirror';
const unmanagedIn = async (world: Mirrored, ...argv: string[]) =>
  (await world.call(...argv, '--json')).json.contacts.unmanaged;
const hashOf = async (world: Mirrored, ...argv: string[]): Promise<string> =>
  (await world.call('unmanaged', '--json', ...argv)).json.hash;

describe('until somebody decides', () => {
  test('they are counted everywhere, and never touched', async () => {
    const world = await begun('stranger@example.com');
    const check = await world.call('check', '--json');
    expect(check.json.unmanaged).toEqual({ ...both, compared: 4, contacts: 4 });
    expect((await world.call('check')).out).toContain(deletedWords);
    expect((await world.call('plan')).out).toContain(deletedWords);
    expect(await unmanagedIn(world, 'plan')).toEqual(both);
    const first = await world.call('sync');
    expect([first.code, first.out]).toEqual([0, expect.stringContaining(leftOutWords)]);
    expect(first.out).toContain(deletedWords);
    for (const argv of [['sync'], ['sync', '--fast'], ['sync', '--fast'], ['sync']]) {
      expect(await unmanagedIn(world, ...argv)).toEqual(both);
    }
    expect([...gone, lead].map((email) => isIn(world, email))).toEqual([true, true, true]);
    const status = await world.call('status');
    expect(status.out).toContain(deletedWords);
    expect(status.out).toContain(leftOutWords);
    const { json } = await world.call('status', '--json');
    expect(json).toMatchObject({ unmanaged: both, ok: false });
    expect(json.attention).toMatchObject([{ code: 'unmanaged', text: deletedWords }]);
  });

  test('problems and drift list them, explain and the console know them', async () => {
    const world = await begun();
    await world.call('sync');
    const { json } = await world.call('problems', '--json', '--addresses');
    expect(json.groups).toMatchObject([
      { class: 'conflict', cause: 'deleted-subscribed', count: 2 },
      { class: 'conflict', cause: 'out-of-scope-subscribed', count: 1 },
    ]);
    expect(json.problems).toMatchObject([
      { key: eve, crmIds: ['2'] },
      { key: finn },
      { key: lead },
    ]);
    const hidden = await world.call('problems');
    expect(hidden.out).toContain('crm-mirror unmanaged');
    expect(hidden.out).not.toContain(eve);
    const drift = (await world.call('problems', '--drift', '--json')).json.groups;
    expect(drift).toMatchObject([{ cause: 'deleted-subscribed', count: 2 }, { count: 1 }]);
    const { out } = await world.call('explain', eve);
    expect(out).toContain('the platform shows opt in, by a contact that is not ours');
    const seen = see(loadConfig(world.file, {}), true);
    const { snapshot } = seen;
    if (!snapshot) throw new Error('no snapshot');
    expect(await searchPeople({ ...seen, snapshot }, eve)).toEqual([eve]);
    const { answers } = (await world.call('explain', eve, '--offline', '--json')).json;
    expect(answers[0]).toMatchObject({ channel: 'ch_news', state: 'opt_in', reason: 'unmanaged' });
    snapshot.close();
  });
});

describe('unmanaged', () => {
  test('lists them with a hash, without addresses, and takes no lease', async () => {
    const world = await begun();
    expect((await world.call('unmanaged')).err).toContain('no snapshot yet');
    await world.call('sync');
    const { code, json } = await world.call('unmanaged', '--json');
    expect({ code, json }).toMatchObject({ code: 0, json: { ...both, mirror: 'world' } });
    expect(json.people).toHaveLength(3);
    const { out } = await world.call('unmanaged', '--deleted');
    expect(out).toContain(deletedWords);
    expect(out).not.toContain(leftOutWords);
    expect(out).not.toContain('@');
    expect(out).toContain(`unmanaged --deleted --opt-out ${await hashOf(world, '--deleted')}`);
  });

  test('--acknowledge silences exactly those who are listed', async () => {
    const world = await begun();
    await world.call('sync');
    const hash = await hashOf(world);
    world.emulator.seed.contact({ email: 'new@example.com', channels: { ch_news: 'opt_in' } });
    expect(await world.call('unmanaged', '--acknowledge', hash)).toMatchObject({
      code: 0,
      out: expect.stringContaining('3 people stay subscribed, and are not listed any more.'),
    });
    expect(await unmanagedIn(world, 'sync')).toEqual(none);
    expect((await world.call('status', '--json')).json).toMatchObject({
      ok: true,
      unmanaged: none,
    });
    expect((await world.call('problems', '--json')).json).toMatchObject({
      groups: [],
      problems: [],
    });
    expect((await world.call('problems', '--drift', '--json')).json.groups).toMatchObject([
      { cause: 'foreign-contact', count: 1 },
    ]);
    expect((await world.call('check', '--json')).json.unmanaged).toMatchObject(none);
    expect((await world.call('explain', eve)).out).toContain('acknowledged that they stay');
    world.csv(crm(...all, line(5, 'new@example.com', ',yes,')));
    expect(await unmanagedIn(world, 'sync')).toEqual({ deleted: 1, outOfScope: 0 });
    expect(await unmanagedIn(world, 'sync', '--fast')).toEqual({ deleted: 1, outOfScope: 0 });
    expect(isIn(world, eve)).toBe(true);
  });

  test('--opt-out is planned, sent, recorded and audited by the next full run, once', async () => {
    const world = await begun();
    await world.call('sync');
    const hash = await hashOf(world, '--deleted');
    const decided = await world.call(
      'unmanaged',
      '--deleted',
      '--opt-out',
      hash,
      '--reason',
      'asked',
    );
    expect(decided).toMatchObject({ code: 0, out: expect.stringContaining('opts out 2 people') });
    expect(gone.map((email) => isIn(world, email))).toEqual([true, true]);
    expect((await world.call('plan', '--json')).json.contacts.changes.opt_out).toBe(2);
    expect((await world.call('problems')).out).toContain('an operator decided to opt them out');
    const { json } = await world.call('sync', '--json');
    expect(json.contacts).toMatchObject({ applied: { opt_out: 2, delete: 0 } });
    expect([...gone, lead].map((email) => isIn(world, email))).toEqual([false, false, true]);
    expect((await world.call('status', '--json')).json.unmanaged).toEqual({
      ...none,
      outOfScope: 1,
    });
    expect(await unmanagedIn(world, 'sync')).toEqual({ ...none, outOfScope: 1 });
    const { entries } = (await world.call('audit', 'show', eve, '--json')).json;
    expect(entries).toMatchObject([
      { type: 'decision', what: 'unmanaged: opt out', reason: 'asked' },
      { type: 'write', op: 'opt_out', rule: 'unmanaged-out', outcome: 'acked' },
    ]);
  });

  test('a hash of another list, and two decisions at once, are refused', async () => {
    const world = await begun();
    await world.call('sync');
    const hash = await hashOf(world);
    world.csv(crm(...all.slice(0, 3)));
    await world.call('sync');
    const { code, err } = await world.call('unmanaged', '--opt-out', hash);
    expect([code, err]).toEqual([2, expect.stringContaining('look at the list again')]);
    const two = await world.call('unmanaged', '--opt-out', hash, '--acknowledge', hash);
    expect(two.code).toBe(2);
    const open = await world.call('unmanaged', '--withdraw', hash);
    expect([open.code, open.err]).toEqual([2, expect.stringContaining('--decided')]);
  });
});

describe('protected people', () => {
  const protect = (...protected_: string[]) => ({ contacts: { ...contacts, protect: protected_ } });

  test('are left out of the opt-out, which says so, and stay listed as protected', async () => {
    const world = await begun();
    world.config(protect(eve));
    await world.call('sync');
    const hash = await hashOf(world);
    const { json } = await world.call('unmanaged', '--json', '--addresses');
    expect(json).toMatchObject({
      ...both,
      protected: 1,
      people: [
        { person: eve, protected: true },
        { person: finn, protected: false },
        { person: lead, protected: false },
      ],
    });
    expect((await world.call('unmanaged')).out).toContain('protected by contacts.protect');
    const { code, out } = await world.call('unmanaged', '--opt-out', hash);
    expect(code).toBe(0);
    expect(out).toContain('The next full run opts out 2 people.');
    expect(out).toContain('1 person stays subscribed, because contacts.protect covers them');
    await world.call('sync');
    expect([...gone, lead].map((email) => isIn(world, email))).toEqual([true, false, false]);
    const left = await world.call('unmanaged', '--json', '--addresses');
    expect(left.json.people).toMatchObject([{ person: eve, protected: true, decided: null }]);
    expect((await world.call('problems')).out).toContain('contacts.protect covers');
    expect((await world.call('unmanaged')).out).not.toContain('unmanaged --opt-out');
  });

  test('a decision to opt out ends when they become protected, an acknowledgement stays', async () => {
    const world = await begun();
    await world.call('sync');
    await world.call('unmanaged', '--deleted', '--opt-out', await hashOf(world, '--deleted'));
    const hash = await hashOf(world, '--out-of-scope');
    await world.call('unmanaged', '--out-of-scope', '--acknowledge', hash);
    world.config(protect(eve, lead));
    await world.call('sync');
    world.config({ contacts });
    await world.call('sync');
    expect([...gone, lead].map((email) => isIn(world, email))).toEqual([true, false, true]);
    const { json } = await world.call('unmanaged', '--json', '--addresses');
    expect(json.people).toMatchObject([{ person: eve, protected: false, decided: null }]);
  });

  test('a list that showed somebody as protected decides nothing once that has changed', async () => {
    const world = await begun();
    world.config(protect(eve));
    await world.call('sync');
    const hash = await hashOf(world);
    world.config({ contacts });
    await world.call('sync');
    expect((await world.call('unmanaged', '--opt-out', hash)).code).toBe(2);
  });
});

describe('the way back', () => {
  /** Decides about the people of a list. */
  const decide = async (world: Mirrored, how: string, ...which: string[]) =>
    world.call('unmanaged', ...which, how, await hashOf(world, ...which));

  test('an acknowledgement says how to take it back, and --withdraw lists them again', async () => {
    const world = await begun();
    await world.call('sync');
    const { out } = await decide(world, '--acknowledge', '--deleted');
    expect(out).toContain('crm-mirror unmanaged --decided acknowledge');
    expect((await world.call('explain', eve)).out).toContain('--decided acknowledge');
    await world.call('sync');
    const open = await world.call('unmanaged');
    expect(open.out).toContain('2 people are acknowledged');
    const { json } = await world.call('unmanaged', '--decided', 'acknowledge', '--json');
    expect(json.people).toMatchObject([{ decided: 'acknowledged' }, { decided: 'acknowledged' }]);
    const listed = await world.call('unmanaged', '--decided', 'acknowledge');
    for (const how of ['--opt-out', '--withdraw'])
      expect(listed.out).toContain(`unmanaged --decided acknowledge ${how} ${json.hash}`);
    expect((await decide(world, '--withdraw', '--decided', 'acknowledge')).code).toBe(0);
    expect((await world.call('status', '--json')).json.unmanaged).toEqual(both);
    expect((await world.call('problems')).out).toContain('have them opted out, or acknowledge');
    expect(await unmanagedIn(world, 'sync')).toEqual(both);
    const { entries } = (await world.call('audit', 'show', eve, '--json')).json;
    expect(entries).toMatchObject([
      { what: 'unmanaged: acknowledge' },
      { what: 'unmanaged: withdraw' },
    ]);
  });

  test('an approved opt-out that is withdrawn is not sent', async () => {
    const guards = { deletes: { percent: 0, floor: 1 } };
    const world = await begun();
    world.config({ contacts, guards });
    await world.call('sync');
    await decide(world, '--opt-out');
    const held = await world.call('sync', '--json');
    expect([held.code, held.json.contacts.held.delete]).toEqual([3, 3]);
    await world.call('approve', held.json.plan);
    await decide(world, '--withdraw', '--decided', 'opt-out');
    world.writes();
    expect((await world.call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);
    expect((await world.call('unmanaged', '--json')).json).toMatchObject(both);
  });

  test('an acknowledgement hides no later conflict of the same person', async () => {
    const world = await begun();
    await world.call('sync');
    await decide(world, '--acknowledge');
    world.csv(crm(...all.with(1, line(2, eve, ',,'))));
    world.emulator.dashboard.leave(eve, 'ch_news');
    await world.call('sync');
    const { json } = await world.call('problems', '--json', '--addresses');
    expect(json.problems).toMatchObject([{ key: eve, cause: 'left-channel' }]);
  });
});
