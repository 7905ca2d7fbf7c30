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

describe('allow, of a contact that vanished', () => {
  test.each([
    ['recreate', true, ['opt_out', 'vanished']],
    ['respect', true, ['opt_out', 'vanished']],
    ['respect', false, ['vanished']],
  ])(
    'takes back the entries for it (missing: %s, unsubscribed before: %s)',
    async (missing, leaves, causes) => {
      const world = await vanished(missing, leaves);
      expect(await conflicts(world)).toBe(1);
      const { json } = await world.call('allow', ann, '--reason', 'by letter', '--json');
      expect(json).toMatchObject({ dropped: true, freed: [] });
      expect(json.taken.map(({ cause }: { cause: string }) => cause).toSorted()).toEqual(causes);
      expect(await conflicts(world)).toBe(0);
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
      const again = await world.call('allow', ann, '--reason', 'by letter');
      expect(again).toMatchObject({ code: 0, out: expect.stringMatching(/has no entry for/) });
    },
  );
});

test('keeps what is recorded of a contact that still exists', async () => {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.dashboard.unsubscribe(ann);
  await world.call('sync');
  const { json } = await world.call('allow', ann, '--reason', 'by letter', '--json');
  expect(json).toMatchObject({ taken: [{ cause: 'unsubscribed' }], dropped: false });
  expect(await conflicts(world)).toBe(1);
});

describe('allow, of an opt-out that the mirror sent because the CRM stated it', () => {
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

  test('names the opt-out and releases it: the remaining record opts the person in', async () => {
    const world = await standing();
    expect(await conflicts(world)).toBe(1);
    const { json } = await world.call('allow', ann, '--reason', 'by letter', '--json');
    expect(json).toMatchObject({ taken: [], dropped: false, released: ['ch_news'] });
    expect(await conflicts(world)).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test('releases no opt-out by the person on the platform', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
    await world.call('sync');
    const { json } = await world.call('allow', ann, '--reason', 'by letter', '--json');
    expect(json).toMatchObject({ taken: [{ cause: 'opt_out' }], released: [] });
    expect(await conflicts(world)).toBe(1);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  });
});
