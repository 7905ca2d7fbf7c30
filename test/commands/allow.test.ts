/** allow, of somebody whose contact vanished: no run writes in again what was taken back. */
import { describe, expect, test } from 'vitest';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

async function vanished(missing: string, leaves: boolean): Promise<Mirrored> {
  const world = await mirrored();
  world.config({ policy: { missing } });
  await world.call('sync');
  if (leaves) {
    world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
    await world.call('sync');
  }
  world.emulator.dashboard.deleteContact(ann);
  return world;
}

const conflicts = async (world: Mirrored): Promise<number> =>
  (await world.call('sync', '--json')).json.contacts.conflicts;

describe('her contact vanished', () => {
  test.each([
    ['recreate', true, ['opt_out', 'vanished']],
    ['respect', true, ['opt_out', 'vanished']],
    ['respect', false, ['vanished']],
  ])('missing: %s, and she left before: %s', async (missing, leaves, causes) => {
    const world = await vanished(missing, leaves);
    expect(await conflicts(world)).toBe(1);
    const { json } = await world.call('allow', ann, '--reason', 'she wrote', '--json');
    expect(json).toMatchObject({ dropped: true, freed: [] });
    expect(json.taken.map(({ cause }: { cause: string }) => cause).toSorted()).toEqual(causes);
    expect(await conflicts(world)).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
    const again = await world.call('allow', ann, '--reason', 'she wrote');
    expect(again).toMatchObject({ code: 0, out: expect.stringMatching(/holds nothing/) });
  });

  test('and it is said', async () => {
    const world = await vanished('respect', false);
    await world.call('sync');
    const { out } = await world.call('allow', ann, '--reason', 'she wrote');
    expect(out).toMatch(/taken back:\n.*vanished.*\n.*is dropped/);
  });
});

test('what is recorded of a contact that is there stays', async () => {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.dashboard.unsubscribe(ann);
  await world.call('sync');
  const { json } = await world.call('allow', ann, '--reason', 'she wrote', '--json');
  expect(json).toMatchObject({ taken: [{ cause: 'unsubscribed' }], dropped: false });
  expect(await conflicts(world)).toBe(1);
});

describe('an opt-out that the mirror made on the word of the CRM', () => {
  const first = `1,${ann},yes,,`;
  const crm = (...rows: string[]) => ['id,email,news,product,lost', ...rows, ''].join('\n');

  /** A second record has stated it, and is deleted. */
  async function standing(): Promise<Mirrored> {
    const world = await mirrored();
    world.csv(crm(first));
    await world.call('sync');
    world.csv(crm(first, `2,${ann},no,,`));
    await world.call('sync');
    world.csv(crm(first));
    return world;
  }

  test('is named, and released: the record that is left opts in', async () => {
    const world = await standing();
    expect(await conflicts(world)).toBe(1);
    const { json } = await world.call('allow', ann, '--reason', 'she wrote', '--json');
    expect(json).toMatchObject({ taken: [], dropped: false, released: ['ch_news'] });
    expect(await conflicts(world)).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test('is said at the terminal, once', async () => {
    const world = await standing();
    const { out } = await world.call('allow', ann, '--reason', 'she wrote');
    expect(out).toMatch(/taken back:\n {2}the mirror's own opt-out of ch_news/);
    const again = await world.call('allow', ann, '--reason', 'she wrote');
    expect(again.out).toMatch(/holds nothing/);
  });

  test('is the only one that is: who left on the platform stays out', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
    await world.call('sync');
    const { json } = await world.call('allow', ann, '--reason', 'she wrote', '--json');
    expect(json).toMatchObject({ taken: [{ cause: 'opt_out' }], released: [] });
    expect(await conflicts(world)).toBe(1);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  });
});
