/** allow, of somebody whose contact vanished: no run writes in again what was taken back. */
import { describe, expect, test } from 'vitest';
import {
  ann,
  mirrored,
  type Mirrored,
  conflictsOf,
  ownOptOut,
} from '../support/commands/mirrored-contacts.ts';

async function vanished(missing: string, leaves: boolean): Promise<Mirrored> {
  const world = await mirrored();
  world.config({ policy: { missing } });
  await world.call('sync');
  if (leaves) {
    world.emulator.dashboard.leave(ann, 'ch_news');
    await world.call('sync');
  }
  world.emulator.dashboard.deleteContact(ann);
  return world;
}

describe('allow, of a contact that vanished', () => {
  test.each([
    ['recreate', true, ['opt_out', 'vanished']],
    ['respect', true, ['opt_out', 'vanished']],
    ['respect', false, ['vanished']],
  ])(
    'takes back the entries for it (missing: %s, unsubscribed before: %s)',
    async (missing, leaves, causes) => {
      const world = await vanished(missing, leaves);
      expect(await conflictsOf(world)).toBe(1);
      const { json } = await world.call('allow', ann, '--reason', 'by letter', '--json');
      expect(json).toMatchObject({ dropped: true, freed: [] });
      expect(json.taken.map(({ cause }: { cause: string }) => cause).toSorted()).toEqual(causes);
      expect(await conflictsOf(world)).toBe(0);
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
      const again = await world.call('allow', ann, '--reason', 'by letter');
      expect(again).toMatchObject({ code: 0, out: expect.stringMatching(/has no entry for/) });
    },
  );
});

describe('allow, of an opt-out that the mirror sent because the CRM stated it', () => {
  test('names the opt-out and releases it: the remaining record opts the person in', async () => {
    const world = await ownOptOut();
    const { json } = await world.call('allow', ann, '--reason', 'by letter', '--json');
    expect(json).toMatchObject({ taken: [], dropped: false, released: ['ch_news'] });
    expect(await conflictsOf(world)).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test('releases no opt-out by the person on the platform', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(ann, 'ch_news');
    await world.call('sync');
    const { json } = await world.call('allow', ann, '--reason', 'by letter', '--json');
    expect(json).toMatchObject({ taken: [{ cause: 'opt_out' }], released: [] });
    expect(await conflictsOf(world)).toBe(1);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  });
});
