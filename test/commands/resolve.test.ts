/** The command `resolve`: an operator settles a conflict, and the next run acts on it. */
import { describe, expect, test } from 'vitest';
import { operatorName } from '../../src/compose/process-shell.ts';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  ownOptOut,
} from '../support/commands/mirrored-contacts.ts';

const said = ['--reason', 'by letter', '--evidence', 'ticket 7', '--by', 'eva'] as const;
const settle = (world: Mirrored, as: 'in' | 'out', ...more: string[]) =>
  world.call('resolve', ann, '--channel', 'ch_news', `--${as}`, ...said, ...more);
const conflicts = async (world: Mirrored): Promise<number> =>
  (await world.call('sync', '--json')).json.contacts.conflicts;
const contactOf = (world: Mirrored): string => world.emulator.world.contact(ann)?.id ?? '';

/** A person who left the channel on the platform. */
async function left(): Promise<Mirrored> {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.dashboard.leave(contactOf(world), 'ch_news');
  expect(await conflicts(world)).toBe(1);
  return world;
}

/** A person whose opt-out may be a default of the platform. */
async function doubtful(): Promise<Mirrored> {
  const world = await mirrored({
    kinds: ['contact'],
    platform: { quirks: ['all-channels=opt_out'] },
  });
  world.emulator.seed.contact({ email: ann, channels: { ch_product: 'opt_in' } });
  expect(await conflicts(world)).toBe(1);
  return world;
}

describe('resolve --in', () => {
  test.each([
    ['our own opt-out', ownOptOut],
    ['a doubtful opt-out', doubtful],
  ])('settles %s: it sends nothing, and the next run opts the person in', async (_, begin) => {
    const world = await begin();
    world.writes();
    const { code, json } = await settle(world, 'in', '--json');
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
    expect(await conflicts(world)).toBe(0);
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_in' });
    expect(await conflicts(world)).toBe(0);
  });
});

describe('resolve --out', () => {
  test('settles an opt-out made on the platform: it is no open conflict any more', async () => {
    const world = await left();
    expect((await settle(world, 'out')).code).toBe(0);
    expect(await conflicts(world)).toBe(0);
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
