/** The command `resolve`: an operator settles a conflict, and the next run acts on it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { operatorName } from '../../src/compose/process-shell.ts';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  ownOptOut,
  conflictsOf,
} from '../support/commands/mirrored-contacts.ts';

const said = ['--reason', 'by letter', '--evidence', 'ticket 7', '--by', 'eva'] as const;
const settle = (world: Mirrored, as: 'in' | 'out', who = ann, ...more: string[]) =>
  world.call('resolve', who, '--channel', 'ch_news', `--${as}`, ...said, ...more);

/** A person who left the channel on the platform. */
async function left(): Promise<Mirrored> {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.dashboard.leave(ann, 'ch_news');
  expect(await conflictsOf(world)).toBe(1);
  return world;
}

/** A person whose opt-out may be a default of the platform. */
async function doubtful(): Promise<Mirrored> {
  const world = await mirrored({
    kinds: ['contact'],
    platform: { quirks: ['all-channels=opt_out'] },
  });
  world.emulator.seed.contact({ email: ann, channels: { ch_product: 'opt_in' } });
  expect(await conflictsOf(world)).toBe(1);
  return world;
}

describe('resolve --in', () => {
  test.each([
    ['our own opt-out', ownOptOut],
    ['a doubtful opt-out', doubtful],
  ])('settles %s: it sends nothing, and the next run opts the person in', async (_, begin) => {
    const world = await begin();
    world.writes();
    const { code, json } = await settle(world, 'in', ann, '--json');
    expect(code).toBe(0);
    expect(json).toEqual({
      mirror: 'world',
      person: expect.stringMatching(/^#/),
      channel: 'ch_news',
      as: 'in',
      by: 'eva',
      at: expect.any(String),
      reason: 'by letter',
      evidence: 'ticket 7',
    });
    expect(world.writes()).toEqual([]);
    const { entries } = (await world.call('audit', 'show', ann, '--json')).json;
    expect(entries.at(-1)).toMatchObject({ what: 'resolve', name: 'eva', as: operatorName() });
    const { out, err } = await world.call('explain', ann);
    expect(out + err).toMatch(/resolved as an opt-in by eva, .*: by letter \(evidence: ticket 7\)/);
    expect(await conflictsOf(world)).toBe(0);
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_in' });
    expect(await conflictsOf(world)).toBe(0);
  });
});

describe('resolve --out', () => {
  test('settles an opt-out made on the platform: it is no open conflict any more', async () => {
    const world = await left();
    expect((await settle(world, 'out')).code).toBe(0);
    expect(await conflictsOf(world)).toBe(0);
    expect((await world.call('problems', '--json')).json.groups).toEqual([]);
    const { json } = await world.call('explain', ann, '--json');
    expect(json.ledger).toMatchObject([{ cause: 'opt_out' }, { cause: 'operator' }]);
    expect(json.channels[0].settlement).toMatchObject({
      as: 'out',
      by: 'eva',
      evidence: 'ticket 7',
    });
  });
});

describe('resolve', () => {
  test('is refused without one side, a reason, evidence and a conflict', async () => {
    const world = await left();
    const both = ['--reason', 'r', '--evidence', 'e'];
    for (const [who, ...words] of [
      [ann, '--in', '--out', ...both],
      [ann, ...both],
      [ann, '--out', '--evidence', 'e'],
      [ann, '--in', '--reason', 'r'],
      [ann, '--in', '--reason', 'r', '--evidence', ' '],
      [ann, '--out', '--reason', 'r', '--evidence', bob],
      [bob, '--out', ...both],
    ] as const) {
      const { code } = await world.call('resolve', who, '--channel', 'ch_news', ...words);
      expect([words, code]).toEqual([words, 2]);
    }
  });

  test('is refused while the CRM or the platform cannot be read', async () => {
    const world = await left();
    world.server.fail(({ path }) => path.includes('contacts'), { is: 'answer', status: 500 });
    expect((await settle(world, 'out')).code).toBe(1);
  });
});

/** Writes the records of the CRM. One more person keeps it from being empty. */
const crm = (world: Mirrored, ...rows: string[]) =>
  world.csv(['id,email,news,product', ...rows, '9,x@example.com,yes,', ''].join('\n'));
const ben = 'ben@example.com';
const saysIn = `1,${ann},yes,`;
const saysOut = `2,${ann},no,`;

describe('how long a settlement holds: it', () => {
  test.each([
    ['counts while the record that stated the opt-in states it', [saysIn, `3,${ann},,`], 'opt_in'],
    ['ends when another record states it instead', [`3,${ann},yes,`], 'opt_out'],
    ['ends when its record has no opinion any more', [`1,${ann},,`, `3,${ann},yes,`], 'opt_out'],
    ['ends when the record has another address', [`1,${ben},yes,`, `3,${ann},yes,`], 'opt_out'],
    ['goes along with the record to another address', [`1,${ben},yes,`], undefined],
  ] as const)('%s', async (_, rows, shows) => {
    const world = await ownOptOut();
    expect((await settle(world, 'in')).code).toBe(0);
    crm(world, ...rows);
    await world.call('sync');
    expect(world.shown(ann)?.['ch_news']).toBe(shows ?? 'opt_out');
    if (shows === undefined) expect(world.shown(ben)).toEqual({ ch_news: 'opt_in' });
    if (shows !== 'opt_out') return;
    crm(world, saysIn);
    await world.call('sync');
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  });

  test('leaves the opt-out that was resolved for another address of the CRM record', async () => {
    const world = await mirrored();
    crm(world, saysIn, saysOut);
    await world.call('sync');
    expect((await settle(world, 'out')).code).toBe(0);
    crm(world, saysIn, `2,${ben},yes,`);
    await world.call('sync');
    expect((await settle(world, 'in', ben)).code).toBe(0);
    await world.call('sync');
    expect(world.shown(ben)).toMatchObject({ ch_news: 'opt_in' });
    expect(world.shown(ann)).not.toMatchObject({ ch_news: 'opt_in' });
    expect((await world.call('explain', ann, '--json')).json.ledger).toMatchObject([
      { cause: 'operator' },
    ]);
    expect((await world.call('explain', ann)).out).toContain('by letter (evidence: ticket 7)');
  });

  test('is refused for an opt-out that a person made while the runs were limited to others', async () => {
    const world = await mirrored({ platform: { quirks: ['all-channels=opt_out'] } });
    const others = join(world.folder, 'others.txt');
    writeFileSync(others, '9\n');
    crm(world, saysIn);
    world.emulator.seed.contact({ email: ann, channels: { ch_news: 'opt_in' } });
    await world.call('sync', '--people', others);
    world.emulator.dashboard.leave(ann, 'ch_news');
    await world.call('sync', '--people', others);
    await world.call('sync');
    expect((await settle(world, 'in')).code).toBe(2);
    await world.call('sync');
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_out' });
  });
});

test('an opt-in sent before, whose outcome is found later, does not end an opt-out', async () => {
  const world = await mirrored();
  world.emulator.seed.contact({ email: ann });
  crm(world, saysIn);
  const cut = world.server.fail(({ method }) => method === 'POST', { is: 'cut', acts: true });
  await world.call('sync');
  cut.undo();
  crm(world, saysIn, saysOut);
  expect((await settle(world, 'out')).code).toBe(0);
  crm(world, saysIn, `2,${ann},yes,`);
  await world.call('sync');
  await world.call('sync');
  expect(world.shown(ann)?.['ch_news']).toBe('opt_out');
});
